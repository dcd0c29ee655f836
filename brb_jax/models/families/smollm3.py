"""SmolLM 3: Llama in which every fourth layer has no rotary positions."""

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
    "attention_bias",
    "layer_types",
    "max_window_layers",
    "mlp_bias",
    "no_rope_layer_interval",
    "no_rope_layers",
    "sliding_window",
    "use_sliding_window",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a SmolLM 3 `config.json`, written by transformers 4 or 5.

    `max_window_layers`, which published files have, counts for nothing: transformers reads it nowhere.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import SmolLM3Config  # Imported late: it takes seconds.

    defaults = SmolLM3Config().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require_sizes(hf, "num_key_value_heads")
    shape, values = basics(hf, defaults), {**defaults, **hf}
    rotates = _rotates(hf, values, shape["num_layers"])
    windowed = bool(values["use_sliding_window"]) and values["sliding_window"] is not None
    otherwise = ["full_attention" if turns or not windowed else "sliding_attention" for turns in rotates]
    types = layer_types(hf, otherwise)
    if not windowed:
        require_value({"layer_types": types}, "layer_types", ["full_attention"] * len(types))
    windows = {"full_attention": None, "sliding_attention": window(hf, values, types)}
    base, scaling = flat_rotary(hf, SmolLM3Config.default_theta)
    kinds = [
        LayerKind(windows[layer_type], base, scaling) if turns else LayerKind(windows[layer_type], None)
        for layer_type, turns in zip(types, rotates, strict=True)
    ]
    return DecoderConfig(
        family="smollm3",
        **shape,
        **by_layer(kinds),
        attention_bias=values["attention_bias"],
        mlp_bias=values["mlp_bias"],
    )


def _rotates(hf: Mapping[str, Any], values: Mapping[str, Any], num_layers: int) -> list[bool]:
    """Whether each layer has rotary positions: the list `no_rope_layers` says where it is 1, or else its interval."""
    listed = hf.get("no_rope_layers")
    if listed is None:
        require_sizes(values, "no_rope_layer_interval")
        return [(i + 1) % values["no_rope_layer_interval"] != 0 for i in range(num_layers)]
    if len(listed) != num_layers:
        raise ValueError(f"config.json: no_rope_layers holds {len(listed)} layers, num_hidden_layers is {num_layers}")
    return [bool(layer) for layer in listed]


SMOLLM3 = Family(
    name="smollm3",
    architectures=("SmolLM3ForCausalLM",),
    model_types=("smollm3",),
    config_from_hf=config_from_hf,
    tensors=llama_like,
)
