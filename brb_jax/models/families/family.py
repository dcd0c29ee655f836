"""What the rest of the package asks of a model family."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig
from brb_jax.models.families.tensors import Tensor


@dataclasses.dataclass(frozen=True)
class Family:
    """Everything that reading a family's Hugging Face checkpoints takes.

    Attributes:
        name: As in `DecoderConfig.family`.
        architectures: The `architectures` of a `config.json` that mean this family.
        model_types: Its `model_type`s, for a config that names no architecture.
        config_from_hf: Reads a `config.json`; raises ValueError naming any attribute it does not understand.
        tensors: The tensors a checkpoint of a config holds.
        canonical_name: The name `tensors` uses for a stored tensor, or None if the decoder has no part in it; by
            default the stored one.
    """

    name: str
    architectures: tuple[str, ...]
    model_types: tuple[str, ...]
    config_from_hf: Callable[[Mapping[str, Any]], DecoderConfig]
    tensors: Callable[[DecoderConfig], tuple[Tensor, ...]]
    canonical_name: Callable[[str], str | None] = lambda name: name
