"""Gemma 1: Llama with norm scales stored minus one and scaled embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import (
    SIZES,
    activation,
    positive,
    refuse_others,
    require_sizes,
    require_value,
    sizes,
)
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.rotary import flat_rotary
from brb_jax.models.families.tensors import llama_like

_UNDERSTOOD = SIZES | {
    "attention_bias",
    "hidden_act",
    "hidden_activation",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "tie_word_embeddings",
    "use_bidirectional_attention",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Gemma `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import GemmaConfig  # Imported late: it takes seconds.

    defaults = GemmaConfig().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require_sizes(hf, "num_key_value_heads", "head_dim")
    require_value(hf, "use_bidirectional_attention", False, None)
    shape, values = sizes(hf), {**defaults, **hf}
    # The first files say `gelu` and mean its approximation, which is what transformers computes.
    act = "gelu_pytorch_tanh" if values["hidden_act"] == "gelu" else values["hidden_act"]
    require_value(hf, "hidden_activation", act, None)
    base, scaling = flat_rotary(hf, GemmaConfig.default_theta)
    return DecoderConfig(
        family="gemma",
        **shape,
        **by_layer([LayerKind(None, base, scaling)] * shape["num_layers"]),
        activation=activation(act),
        norm_eps=positive(values, "rms_norm_eps"),
        attention_scale=shape["head_dim"] ** -0.5,
        norm_offset=1.0,
        attention_bias=values["attention_bias"],
        embedding_scale=shape["d_model"] ** 0.5,
        tie_embeddings=values["tie_word_embeddings"],
    )


GEMMA = Family(
    name="gemma",
    architectures=("GemmaForCausalLM",),
    model_types=("gemma",),
    config_from_hf=config_from_hf,
    tensors=llama_like,
)
