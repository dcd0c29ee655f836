"""The settings of one evaluation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

from etils import epath

from brb_jax.data.files import FileFilter
from brb_jax.data.rules import Rules
from brb_jax.results.sample import Selection

# Slots of a batch on each device, unless --batch_tokens says otherwise. A CPU gains nothing from several rows at once.
BATCH_TOKENS = {"cpu": 2_048, "gpu": 32_768, "tpu": 32_768}

# Slots of the longest row that can be asked for: four contexts of a million tokens. Plans count costs by length.
MOST_ROW_TOKENS = 1 << 22


class RunError(ValueError):
    """Settings that contradict each other or the model."""


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Everything one evaluation depends on. Field by field the flags of `brb_jax.main`, which documents them.

    `only` holds the flags that choose files by name, `rules` those that say how cases are to be read.
    """

    model: str
    data: tuple[str, ...]
    out: str
    selection: Selection = "logprob"
    option_delimiter: str = " "
    bos: Literal["auto", "always", "never"] = "auto"
    boundary: Literal["cover", "lm_eval"] = "cover"
    max_length: int | None = None
    allow_extrapolation: bool = False
    overlong: Literal["skip", "truncate_left"] = "skip"
    on_bad_case: Literal["fail", "skip"] = "fail"
    limit: int | None = None
    only: FileFilter = dataclasses.field(default_factory=FileFilter)
    rules: Rules = dataclasses.field(default_factory=Rules)
    baseline_seed: int = 0
    dtype: Literal["float32", "bfloat16"] | None = None
    param_dtype: Literal["float32", "bfloat16", "int8"] | None = None
    activation_dtype: Literal["float32", "bfloat16"] | None = None
    matmul_precision: Literal["default", "high", "highest"] | None = None
    sharing: Literal["tree", "case", "none"] | None = None
    buckets: tuple[int, ...] | None = None
    max_buckets: int = 4
    batch_tokens: int | None = None
    mesh: Mapping[str, int] = dataclasses.field(default_factory=dict)

    @property
    def directory(self) -> epath.Path:
        """Where the run is written; `~` is the home directory."""
        return epath.Path(self.out).expanduser()


def length_limit(max_length: int | None, allow_extrapolation: bool, model_limit: int, has_table: bool = False) -> int:
    """The longest input, in tokens: the model's own limit, or `max_length` where that may differ.

    Args:
        max_length, allow_extrapolation: The flags.
        model_limit: The longest input that the model was made for.
        has_table: Whether the model looks positions up in a table that ends there.

    Raises:
        RunError: More is asked for than the model was made for, without `allow_extrapolation`, or than its table has.
    """
    if max_length is None:
        return model_limit
    if max_length > model_limit and has_table:
        raise RunError(
            f"--max_length={max_length} is more than the model's table of {model_limit} positions has, "
            "with or without --allow_extrapolation: lower it"
        )
    if max_length > model_limit and not allow_extrapolation:
        raise RunError(
            f"--max_length={max_length} is more than the model was made for ({model_limit} tokens): "
            "lower it, or add --allow_extrapolation"
        )
    return max_length
