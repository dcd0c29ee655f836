"""Converts a checkpoint to brb_jax's own format: `python -m brb_jax.convert --source=PATH --out=DIR`.

The result is a directory of Orbax parameters, the decoder's config and the tokenizer, which any mesh can
restore. Parameters are converted one at a time: host memory stays near the largest, its layers stacked.
"""

from __future__ import annotations

import math
import sys

import ml_dtypes  # noqa: F401 — teaches numpy the name bfloat16.
import numpy as np
from absl import flags
from etils import epath

from brb_jax import command_line

FLAGS = flags.FLAGS


def convert(source: str, out: str, dtype: str = "float32", overwrite: bool = False) -> str:
    """Converts a checkpoint.

    Args:
        source: As in `open_checkpoint`.
        out: The directory to write.
        dtype: `float32` or `bfloat16`.
        overwrite: Whether `out` may be there already; it is replaced only once the new one is complete.

    Returns:
        One line that says what was written.

    Raises:
        CheckpointError: The source cannot be read, or `out` is there.
    """
    # Imported late, so that --help does not wait for JAX.
    from brb_jax.checkpoints import CheckpointError, open_checkpoint
    from brb_jax.checkpoints.canonical import save_canonical
    from brb_jax.checkpoints.gguf_file import GgufCheckpoint
    from brb_jax.checkpoints.huggingface import HuggingFaceCheckpoint

    checkpoint = open_checkpoint(source)
    if not isinstance(checkpoint, HuggingFaceCheckpoint | GgufCheckpoint):
        raise CheckpointError(f"{source} is converted already")
    shapes = save_canonical(checkpoint, epath.Path(out).expanduser(), np.dtype(dtype), overwrite)
    count = sum(math.prod(shape) for shape in shapes.values())
    config = checkpoint.config
    return (
        f"{out}: a {config.family} decoder with {config.num_layers} layers and {count:,} parameters "
        f"in {dtype}, from {checkpoint.source} ({checkpoint.fingerprint})"
    )


def define_flags() -> None:
    """Defines the flags; see `shared_flags` for when."""
    flags.DEFINE_string(
        "source", None, "Required. A Hugging Face directory or Hub repository, or a .gguf file.", required=True
    )
    flags.DEFINE_string("out", None, "Required. The directory to write; may be in a bucket (gs://…).", required=True)
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "Of the stored parameters.")
    flags.DEFINE_bool("overwrite", False, "Replace --out if it is a converted directory.")


def main() -> None:
    """Calls `convert` as the flags say; an error of the user's becomes one line."""
    from brb_jax.checkpoints import CheckpointError

    try:
        print(convert(FLAGS.source, FLAGS.out, FLAGS.dtype, FLAGS.overwrite))
    except (CheckpointError, OSError) as error:
        sys.exit(f"convert: {error}")


if __name__ == "__main__":
    define_flags()
    command_line.run("convert", main)
