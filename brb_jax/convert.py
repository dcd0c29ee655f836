"""Converts a checkpoint to brb_jax's own format: `python -m brb_jax.convert --source=PATH --out=DIR`.

The result is a directory of Orbax parameters, the decoder's config and the tokenizer, which any mesh can
restore. Parameters are converted one at a time: host memory stays near the largest, its layers stacked.
`--verify` then compares it with transformers and torch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import ml_dtypes  # noqa: F401 — teaches numpy the name bfloat16.
import numpy as np
from absl import flags

from brb_jax import command_line

FLAGS = flags.FLAGS


def convert(
    source: str,
    out: str,
    dtype: str = "float32",
    overwrite: bool = False,
    verify: bool = False,
    hf_config: str | None = None,
    maxtext_settings: Sequence[str] = (),
) -> str:
    """Converts a checkpoint.

    Args:
        source: As in `open_checkpoint`.
        out: The directory to write.
        dtype: `float32` or `bfloat16`.
        overwrite: Whether `out` may be there already; it is replaced only once the new one is complete.
        verify: Whether to compare what was written with transformers and torch.
        hf_config: For a checkpoint of another JAX framework; see `open_framework`.
        maxtext_settings: Of a checkpoint of MaxText's, as `rope_type=default`.

    Returns:
        One line that says what was written; another one of what the comparison found.

    Raises:
        CheckpointError: The source cannot be read, or `out` is there. If `verify`: torch is not installed, it cannot
            read the source, or finds other log-probabilities.
    """
    # Imported late, so that --help does not wait for JAX.
    from brb_jax.checkpoints import CheckpointError, open_checkpoint, open_framework
    from brb_jax.checkpoints.canonical import save_canonical
    from brb_jax.checkpoints.framework_checkpoint import FrameworkCheckpoint
    from brb_jax.checkpoints.gguf_file import GgufCheckpoint
    from brb_jax.checkpoints.huggingface import HuggingFaceCheckpoint
    from brb_jax.checkpoints.opening import located
    from brb_jax.checkpoints.tokenizer_files import has_tokenizer
    from brb_jax.verification import check_torch, compare_with_torch

    settings = dict(_setting(item) for item in maxtext_settings)
    if len(settings) < len(maxtext_settings):
        raise CheckpointError(f"--maxtext_settings={','.join(maxtext_settings)} names a setting twice")
    target = located(out)
    if hf_config is None:
        if settings:
            raise CheckpointError(
                "--maxtext_settings is for a checkpoint of MaxText's, which needs --hf_config as well"
            )
        checkpoint = open_checkpoint(source)
    else:
        checkpoint = open_framework(source, hf_config, settings)
    if not isinstance(checkpoint, HuggingFaceCheckpoint | GgufCheckpoint | FrameworkCheckpoint):
        raise CheckpointError(f"{source} is converted already")
    if verify:
        if not isinstance(checkpoint, HuggingFaceCheckpoint):
            raise CheckpointError(
                f"--verify: {source} is no Hugging Face directory, which alone torch can read; leave --verify out"
            )
        check_torch()
    shapes = save_canonical(checkpoint, target, np.dtype(dtype), overwrite)
    count = sum(math.prod(shape) for shape in shapes.values())
    config = checkpoint.config
    written = (
        f"{out}: a {config.family} decoder with {config.num_layers} layers and {count:,} parameters "
        f"in {dtype}, from {checkpoint.source} ({checkpoint.fingerprint})"
    )
    if not has_tokenizer(checkpoint.tokenizer_path):
        written += f"; without a tokenizer, since {checkpoint.tokenizer_path} has none: put tokenizer.json into {out}"
    if not verify:
        return written
    comparison = compare_with_torch(checkpoint.tokenizer_path, out, np.dtype(dtype))
    if not comparison.passes:
        raise CheckpointError(f"{out} is written, but do not use it: {comparison}")
    return f"{written}\n{comparison}"


def _setting(item: str) -> tuple[str, str]:
    """Name and value of `rope_type=default`."""
    from brb_jax.checkpoints import CheckpointError

    name, equals, value = item.partition("=")
    if not equals:
        raise CheckpointError(f"--maxtext_settings: {item!r} is not of the form rope_type=default")
    return name.strip(), value.strip()


def define_flags() -> None:
    """Defines the flags; see `shared_flags` for when."""
    flags.DEFINE_string(
        "source",
        None,
        "Required. A Hugging Face directory or Hub repository, a .gguf file, or a checkpoint of another JAX framework.",
        required=True,
    )
    flags.DEFINE_string(
        "hf_config",
        None,
        "For a checkpoint of another JAX framework: a Hugging Face directory or Hub repository with the config and the "
        "tokenizer of its model.",
    )
    flags.DEFINE_list(
        "maxtext_settings",
        [],
        "For a checkpoint of MaxText's: what its config says under rope_type or normalize_embedding_logits, as "
        "rope_type=default, where an error asks for it.",
    )
    flags.DEFINE_string("out", None, "Required. The directory to write; may be in a bucket (gs://…).", required=True)
    flags.DEFINE_enum("dtype", "float32", ["float32", "bfloat16"], "Of the stored parameters.")
    flags.DEFINE_bool("overwrite", False, "Replace --out if it is a converted directory.")


def main() -> None:
    """Calls `convert` as the flags say; an error of the user's becomes one line."""
    from brb_jax.checkpoints import CheckpointError

    try:
        print(
            convert(
                FLAGS.source,
                FLAGS.out,
                FLAGS.dtype,
                FLAGS.overwrite,
                FLAGS.verify,
                FLAGS.hf_config,
                FLAGS.maxtext_settings,
            )
        )
    except (CheckpointError, OSError) as error:
        sys.exit(f"convert: {error}")


if __name__ == "__main__":
    define_flags()
    flags.DEFINE_bool("verify", False, "Compare the result with transformers and torch, which must be installed.")
    command_line.run("convert", main)
