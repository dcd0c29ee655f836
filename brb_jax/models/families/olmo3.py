"""OLMo 3: OLMo 2 with sliding windows in three layers of four. Rotary scaling is for the layers without a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import BASICS, basics, refuse_others
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import layer_types, window
from brb_jax.models.families.olmo2 import post_normed, tensors
from brb_jax.models.families.rotary import ROTARY, nested_parameters, nested_rotary, rotary_base

_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    "attention_bias",
    "layer_types",
    "sliding_window",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads an OLMo 3 `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import Olmo3Config  # Imported late: it takes seconds.

    defaults = Olmo3Config().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    shape, values = basics(hf, defaults), {**defaults, **hf}
    types = layer_types(
        hf, ["sliding_attention" if (i + 1) % 4 else "full_attention" for i in range(shape["num_layers"])]
    )
    windows = {"full_attention": None, "sliding_attention": window(hf, values, types)}
    base = rotary_base(hf, Olmo3Config.default_theta)
    parameters = nested_parameters(hf)
    if base != Olmo3Config.default_theta and any("rope_theta" not in of_type for of_type in parameters.values()):
        raise ValueError(
            f"config.json: rope_theta={base} is that of all layers to transformers 4, and to transformers 5 that of "
            "layers with full attention; set rope_parameters.full_attention and .sliding_attention, each with a "
            "rope_theta, instead"
        )
    kinds = {
        layer_type: LayerKind(
            windows[layer_type], *nested_rotary(parameters[layer_type], layer_type, base, shape["max_positions"])
        )
        for layer_type in windows
    }
    return post_normed("olmo3", shape, [kinds[layer_type] for layer_type in types], values)


OLMO3 = Family(
    name="olmo3",
    architectures=("Olmo3ForCausalLM",),
    model_types=("olmo3",),
    config_from_hf=config_from_hf,
    tensors=tensors,
)
