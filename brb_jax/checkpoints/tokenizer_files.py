"""Which files of a checkpoint make up its tokenizer."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from etils import epath

TOKENIZER_FILES = (
    "added_tokens.json",
    "chat_template.jinja",
    "config.json",  # Where tokenizer_config.json names no class, AutoTokenizer goes by the model's type.
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
)


def copy_tokenizer(source: epath.Path, target: epath.Path) -> None:
    """Copies those of `TOKENIZER_FILES` that `source` has into the existing folder `target`."""
    for name in TOKENIZER_FILES:
        if (source / name).exists():
            (target / name).write_bytes((source / name).read_bytes())


def has_tokenizer(folder: Path) -> bool:
    """Whether any of a folder's files is a vocabulary."""
    return any((folder / name).exists() for name in ("tokenizer.json", "tokenizer.model", "vocab.json"))


def temporary_folder() -> Path:
    """A folder for a tokenizer that has none of its own; deleted when the process ends."""
    folder = tempfile.mkdtemp(prefix="brb_jax_tokenizer_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
