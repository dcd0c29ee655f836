"""Tiny tokenizers, written once a session; a test names the family it wants."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_tokenizers import FAMILIES

from brb_jax.tokens.tokenizer import Tokenizer, load_tokenizer


@pytest.fixture(scope="session")
def tokenizer_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    paths: dict[str, Path] = {}

    def path(family: str) -> Path:
        if family not in paths:
            paths[family] = FAMILIES[family](tmp_path_factory.mktemp(family))
        return paths[family]

    return path


@pytest.fixture(scope="session")
def load(tokenizer_path: Callable[[str], Path]) -> Callable[..., Tokenizer]:
    return lambda family, bos="auto": load_tokenizer(tokenizer_path(family), bos)
