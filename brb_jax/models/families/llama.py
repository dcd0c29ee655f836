"""Llama 2, 3, 3.1 to 3.3 and what shares their architecture, such as SmolLM2."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import BASICS, basics, refuse_others, require_value
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.rotary import ROTARY, flat_rotary
from brb_jax.models.families.tensors import llama_like

_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    "attention_bias",
    "is_llama_config",
    "mlp_bias",
    "partial_rotary_factor",
    "rope_interleaved",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Llama `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import LlamaConfig  # Imported late: it takes seconds.

    defaults = LlamaConfig().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require_value(hf, "partial_rotary_factor", 1.0, None)
    # Nanotron writes these two into SmolLM2's config.
    require_value(hf, "rope_interleaved", False)
    require_value(hf, "is_llama_config", True)
    shape, values = basics(hf, defaults), {**defaults, **hf}
    base, scaling = flat_rotary(hf, LlamaConfig.default_theta)
    return DecoderConfig(
        family="llama",
        **shape,
        **by_layer([LayerKind(window=None, rotary_base=base, rotary_scaling=scaling)] * shape["num_layers"]),
        attention_bias=values["attention_bias"],
        mlp_bias=values["mlp_bias"],
    )


def canonical_name(name: str) -> str | None:
    """`name` itself; None for the rotary frequencies old checkpoints store, which follow from the config."""
    return None if re.fullmatch(r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq", name) else name


LLAMA = Family(
    name="llama",
    architectures=("LlamaForCausalLM",),
    model_types=("llama",),
    config_from_hf=config_from_hf,
    tensors=llama_like,
    canonical_name=canonical_name,
)
