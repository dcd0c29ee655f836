"""Hugging Face's rotary parameters, of either transformers generation, as the decoder's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import RotaryScaling

_KEYS = {
    "default": frozenset(),
    "linear": frozenset({"factor"}),
    "llama3": frozenset({"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}),
}
_SHARED_KEYS = frozenset({"type", "rope_type", "rope_theta", "partial_rotary_factor"})


def read_rotary(
    parameters: Mapping[str, Any], where: str, base: float, max_positions: int
) -> tuple[float, RotaryScaling | None]:
    """Base and scaling from one flat dict of rotary parameters.

    Args:
        parameters: transformers 5's `rope_parameters` or 4's `rope_scaling`; empty for plain embeddings.
        where: The attribute's name, for errors.
        base: Used where `parameters` has no `rope_theta`, which otherwise wins, as in transformers.
        max_positions: What transformers takes for a missing `original_max_position_embeddings`.

    Raises:
        ValueError: An unsupported kind of scaling, a key that kind lacks or should not have, or a partial
            rotation.
    """
    kind = parameters.get("rope_type") or parameters.get("type") or "default"
    if kind not in _KEYS:
        raise ValueError(f"config.json: {where} of type {kind!r} is not supported, only {', '.join(_KEYS)}")
    unknown = sorted(set(parameters) - _KEYS[kind] - _SHARED_KEYS)
    if unknown:
        raise ValueError(f"config.json: {where} of type {kind!r} sets what brb_jax does not know: {', '.join(unknown)}")
    if parameters.get("partial_rotary_factor") not in (None, 1, 1.0):
        raise ValueError(f"config.json: {where}.partial_rotary_factor is not supported, only 1.0")
    if parameters.get("rope_theta") is not None:
        base = parameters["rope_theta"]
    if kind == "default":
        return float(base), None
    values = {"original_max_position_embeddings": max_positions, **parameters}
    missing = sorted(key for key in _KEYS[kind] if values.get(key) is None)
    if missing:
        raise ValueError(f"config.json: {where} of type {kind!r} lacks {', '.join(missing)}")
    if kind == "linear":
        return float(base), RotaryScaling("linear", float(values["factor"]))
    return float(base), RotaryScaling(
        "llama3",
        float(values["factor"]),
        low_freq_factor=float(values["low_freq_factor"]),
        high_freq_factor=float(values["high_freq_factor"]),
        original_max_positions=int(values["original_max_position_embeddings"]),
    )
