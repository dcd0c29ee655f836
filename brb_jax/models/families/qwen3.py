"""Qwen 3 without experts: Llama with normed queries and keys, and Qwen 2's sliding windows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig
from brb_jax.models.families.attributes import BASICS, basics, refuse_others, require_sizes
from brb_jax.models.families.family import Family
from brb_jax.models.families.qwen2 import windowed_layers
from brb_jax.models.families.rotary import ROTARY
from brb_jax.models.families.tensors import llama_like

_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    "attention_bias",
    "layer_types",
    "max_window_layers",
    "sliding_window",
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
    require_sizes(hf, "num_key_value_heads", "head_dim")
    shape, values = basics(hf, defaults), {**defaults, **hf}
    return DecoderConfig(
        family="qwen3",
        **shape,
        **windowed_layers(hf, Qwen3Config),
        qk_norm=True,
        attention_bias=values["attention_bias"],
    )


QWEN3 = Family(
    name="qwen3",
    architectures=("Qwen3ForCausalLM",),
    model_types=("qwen3",),
    config_from_hf=config_from_hf,
    tensors=llama_like,
)
