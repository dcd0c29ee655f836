"""Where the tests that use a real model find one."""

import os
from pathlib import Path

import pytest

from brb_jax.checkpoints.demo import DEMOS, fetch


@pytest.fixture(scope="session")
def demo_models() -> Path:
    """A folder with `smollm2-135m.gguf` and `gemma-3-270m.gguf`: the one named by BRB_DEMO_MODELS, or a cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "brb_jax" / "demo"
    folder = Path(os.environ.get("BRB_DEMO_MODELS", cache))
    for name in DEMOS:
        fetch(name, folder / f"{name}.gguf")
    return folder
