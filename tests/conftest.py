"""Test environment: eight virtual CPU devices, and no hub within reach. Set before JAX or transformers is imported."""

import os
from pathlib import Path

import jaxtyping
import pytest
from filelock import FileLock

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "true"
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"  # torch's threads wait for each other by spinning: test processes share cores.

# Arrays are held to the shapes that annotations state.
jaxtyping.install_import_hook(
    [
        f"brb_jax.{part}"
        for part in (
            "models.attention",
            "models.decoder",
            "models.experts",
            "models.layer_view",
            "models.rotary",
            "scoring",
        )
    ],
    "beartype.beartype",
)


def pytest_collection_modifyitems(items):
    """The slowest file, of pretrained models, begins: were it last, all test processes but one would wait for it."""
    items.sort(key=lambda item: item.path.name != "test_option_logprobs.py")


@pytest.fixture(scope="session")
def demo_models() -> Path:
    """A folder with `smollm2-135m.gguf` and `gemma-3-270m.gguf`: the one named by BRB_DEMO_MODELS, or a cache."""
    from brb_jax.checkpoints.demo import DEMOS, fetch

    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "brb_jax" / "demo"
    folder = Path(os.environ.get("BRB_DEMO_MODELS", cache))
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "fetching.lock"):  # of several test processes, one fetches
        for name in DEMOS:
            fetch(name, folder / f"{name}.gguf")
    return folder
