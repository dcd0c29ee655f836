"""Qwen 2 and 2.5: Llama with biases on query, key and value, and sliding windows in the upper layers if asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import BASICS, basics, refuse_others, require_sizes, require_value
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer, layer_types, window
from brb_jax.models.families.rotary import ROTARY, flat_rotary
from brb_jax.models.families.tensors import llama_like

_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    "layer_types",
    "max_window_layers",
    "sliding_window",
    "use_mrope",
    "use_sliding_window",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Qwen 2 `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import Qwen2Config  # Imported late: it takes seconds.

    defaults = Qwen2Config().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require_sizes(hf, "num_key_value_heads")
    require_value(hf, "use_mrope", False)
    return DecoderConfig(
        family="qwen2",
        **basics(hf, defaults),
        **windowed_layers(hf, Qwen2Config),
        attention_bias="qkv",
    )


def windowed_layers(hf: Mapping[str, Any], config_class: Any) -> dict[str, Any]:
    """A Qwen's layers: `sliding_window` counts if `use_sliding_window`, from layer `max_window_layers` on."""
    # A null `sliding_window` stays null; one left out is the class's own, which `to_dict` hides while it is not in use.
    values = {key: hf.get(key, getattr(config_class, key)) for key in ("sliding_window", "max_window_layers")}
    if not hf.get("use_sliding_window", False):
        values["sliding_window"] = None
    else:
        require_sizes(values, "max_window_layers", least=0)
    first = hf["num_hidden_layers"] if values["sliding_window"] is None else values["max_window_layers"]
    types = layer_types(
        hf, ["sliding_attention" if i >= first else "full_attention" for i in range(hf["num_hidden_layers"])]
    )
    base, scaling = flat_rotary(hf, config_class.default_theta)
    kinds = {
        "full_attention": LayerKind(None, base, scaling),
        "sliding_attention": LayerKind(window(hf, values, types), base, scaling),
    }
    return by_layer([kinds[layer_type] for layer_type in types])


QWEN2 = Family(
    name="qwen2",
    architectures=("Qwen2ForCausalLM",),
    model_types=("qwen2",),
    config_from_hf=config_from_hf,
    tensors=llama_like,
)
