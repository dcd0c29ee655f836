"""What differs from layer to layer in a Hugging Face config: lists of layer types, as the decoder's kinds of layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from brb_jax.models.config import LayerKind


def layer_types(hf: Mapping[str, Any], otherwise: list[str]) -> list[str]:
    """Each layer's type: of the list `layer_types` if the config has one, as in transformers, or `otherwise`.

    Raises:
        ValueError: It is no list, or holds a type other than `full_attention` and `sliding_attention`.
    """
    types = otherwise if hf.get("layer_types") is None else hf["layer_types"]
    if not isinstance(types, list):
        raise ValueError(f"config.json: layer_types={types!r} is not a list")
    for layer_type in types:
        if layer_type not in ("sliding_attention", "full_attention"):
            raise ValueError(
                f"config.json: layer_types holds {layer_type}, which a {hf.get('model_type')} does not have"
            )
    return types


def by_layer(kinds: Sequence[LayerKind]) -> dict[str, Any]:
    """`layer_kinds` and `layer_pattern` of a `DecoderConfig`, from the kind of every layer."""
    distinct = tuple(dict.fromkeys(kinds))
    return {"layer_kinds": distinct, "layer_pattern": tuple(distinct.index(kind) for kind in kinds)}


def window(hf: Mapping[str, Any], values: Mapping[str, Any], types: Sequence[str]) -> int | None:
    """The window of layers with sliding attention; None where there are no such layers.

    Raises:
        ValueError: There are, and `sliding_window` is null.
    """
    if "sliding_attention" not in types:
        return None
    if values.get("sliding_window") is None:
        raise ValueError("config.json: sliding_window is null, but there are layers with sliding attention")
    return values["sliding_window"]
