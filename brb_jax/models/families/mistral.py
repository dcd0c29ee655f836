"""Mistral: Llama with one sliding window in all layers (version 0.1), or none (later ones)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import BASICS, basics, refuse_others, require_sizes
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.rotary import ROTARY, flat_rotary
from brb_jax.models.families.tensors import llama_like

_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    "sliding_window",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Mistral `config.json`, written by transformers 4 or 5.

    A missing `sliding_window` is transformers' default, 4,096; null is none.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import MistralConfig  # Imported late: it takes seconds.

    defaults = MistralConfig().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require_sizes(hf, "num_key_value_heads")
    shape, values = basics(hf, defaults), {**defaults, **hf}
    base, scaling = flat_rotary(hf, MistralConfig.default_theta)
    return DecoderConfig(
        family="mistral",
        **shape,
        **by_layer([LayerKind(values["sliding_window"], base, scaling)] * shape["num_layers"]),
    )


MISTRAL = Family(
    name="mistral",
    architectures=("MistralForCausalLM",),
    model_types=("mistral",),
    config_from_hf=config_from_hf,
    tensors=llama_like,
)
