"""Llama 2, 3, 3.1 to 3.3 and what shares their architecture, such as SmolLM2."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import activation, refuse_others, require, require_value
from brb_jax.models.families.family import Family
from brb_jax.models.families.rotary import read_rotary
from brb_jax.models.families.tensors import Tensor, llama_like

_UNDERSTOOD = frozenset(
    {
        "attention_bias",
        "head_dim",
        "hidden_act",
        "hidden_size",
        "intermediate_size",
        "is_llama_config",
        "max_position_embeddings",
        "mlp_bias",
        "num_attention_heads",
        "num_hidden_layers",
        "num_key_value_heads",
        "partial_rotary_factor",
        "rms_norm_eps",
        "rope_interleaved",
        "rope_parameters",
        "rope_scaling",
        "rope_theta",
        "tie_word_embeddings",
        "vocab_size",
    }
)


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Llama `config.json`, written by transformers 4 or 5.

    Sizes have no default: transformers would fill in those of Llama 2 7B, and its limit of 2,048 positions.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import LlamaConfig  # Imported late: it takes seconds.

    defaults = LlamaConfig().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require(
        hf,
        "vocab_size",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "max_position_embeddings",
    )
    require_value(hf, "partial_rotary_factor", 1.0, None)
    # Nanotron writes these two into SmolLM2's config.
    require_value(hf, "rope_interleaved", False)
    require_value(hf, "is_llama_config", True)
    if hf.get("rope_scaling") and hf.get("rope_parameters"):
        raise ValueError("config.json sets both rope_scaling and rope_parameters")
    where = "rope_scaling" if hf.get("rope_scaling") else "rope_parameters"
    base, scaling = read_rotary(
        hf.get(where) or {},
        where,
        hf.get("rope_theta") or LlamaConfig.default_theta,
        hf["max_position_embeddings"],
    )
    values = {**defaults, **hf}
    heads = hf["num_attention_heads"]
    head_dim = hf.get("head_dim") or hf["hidden_size"] // heads
    return DecoderConfig(
        family="llama",
        vocab_size=hf["vocab_size"],
        num_layers=hf["num_hidden_layers"],
        d_model=hf["hidden_size"],
        num_heads=heads,
        num_kv_heads=hf.get("num_key_value_heads") or heads,
        head_dim=head_dim,
        d_mlp=hf["intermediate_size"],
        max_positions=hf["max_position_embeddings"],
        layer_kinds=(LayerKind(window=None, rotary_base=base, rotary_scaling=scaling),),
        layer_pattern=(0,) * hf["num_hidden_layers"],
        activation=activation(values["hidden_act"]),
        norm_eps=values["rms_norm_eps"],
        attention_scale=head_dim**-0.5,
        attention_bias=values["attention_bias"],
        mlp_bias=values["mlp_bias"],
        tie_embeddings=values["tie_word_embeddings"],
    )


def tensors(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The tensors of a Llama checkpoint, by their names in transformers."""
    layer = "model.layers.{layer}"
    return (
        *llama_like(config),
        Tensor(f"{layer}.input_layernorm.weight", "layers/attention_norm/scale", "D -> D"),
        Tensor(f"{layer}.post_attention_layernorm.weight", "layers/mlp_norm/scale", "D -> D"),
    )


def canonical_name(name: str) -> str | None:
    """`name` itself; None for the rotary frequencies old checkpoints store, which follow from the config."""
    return None if re.fullmatch(r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq", name) else name


LLAMA = Family(
    name="llama",
    architectures=("LlamaForCausalLM",),
    model_types=("llama",),
    config_from_hf=config_from_hf,
    tensors=tensors,
    canonical_name=canonical_name,
)
