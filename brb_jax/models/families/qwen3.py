"""Qwen 3 without experts: Llama with normed queries and keys, and Qwen 2's sliding windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig
from brb_jax.models.families.attributes import SIZES, activation, refuse_others, require, sizes
from brb_jax.models.families.family import Family
from brb_jax.models.families.qwen2 import windowed_layers
from brb_jax.models.families.tensors import llama_like

_UNDERSTOOD = SIZES | {
    "attention_bias",
    "hidden_act",
    "layer_types",
    "max_window_layers",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
    "tie_word_embeddings",
    "use_sliding_window",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Qwen 3 `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import Qwen3Config  # Imported late: it takes seconds.

    defaults = Qwen3Config().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require(hf, "num_key_value_heads", "head_dim")
    shape, values = sizes(hf), {**defaults, **hf}
    return DecoderConfig(
        family="qwen3",
        **shape,
        **windowed_layers(hf, Qwen3Config),
        activation=activation(values["hidden_act"]),
        norm_eps=values["rms_norm_eps"],
        attention_scale=shape["head_dim"] ** -0.5,
        qk_norm=True,
        attention_bias=values["attention_bias"],
        tie_embeddings=values["tie_word_embeddings"],
    )


QWEN3 = Family(
    name="qwen3",
    architectures=("Qwen3ForCausalLM",),
    model_types=("qwen3",),
    config_from_hf=config_from_hf,
    tensors=llama_like,
)
