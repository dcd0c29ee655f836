"""Rotary position embeddings, half-split layout, phases in float32 (positions past 256 are not exact in bfloat16).

Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021); Peng et al., "YaRN: Efficient Context
Window Extension of Large Language Models" (2023); Ding et al., "LongRoPE: Extending LLM Context Window Beyond 2 Million
Tokens" (2024). The scalings are those of transformers' eager models.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from brb_jax.models.config import LayerKind, RotaryScaling


def frequencies(rotary_dim: int, kind: LayerKind) -> Float[np.ndarray, " h"]:
    """Radians per position of each rotated pair, scaled as the layer's kind says: float32 `[rotary_dim / 2]`.

    Zeros, which turn nothing, for a layer without rotary positions. Where the scaling goes by length, those of an input
    within the original maximum.
    """
    if kind.rotary_base is None:
        return np.zeros(rotary_dim // 2, np.float32)
    plain = _plain(rotary_dim, kind.rotary_base)
    return plain if kind.rotary_scaling is None else _scaled(plain, kind.rotary_base, kind.rotary_scaling)


def frequencies_by_length(
    rotary_dim: int, kind: LayerKind, lengths_BT: Int[Array, "B T"]
) -> Float[np.ndarray, " h"] | Float[Array, "B T h"]:
    """As `frequencies`, where the scaling goes by length: of every slot, by the length of the input it belongs to."""
    short = frequencies(rotary_dim, kind)
    scaling = kind.rotary_scaling
    if kind.rotary_base is None or scaling is None or not scaling.by_length:
        return short
    original = scaling.original_max_positions
    long: np.ndarray | Array
    if scaling.kind == "longrope":
        long = _plain(rotary_dim, kind.rotary_base) / np.asarray(scaling.long_factors, np.float32)
    else:
        stretched = scaling.factor * lengths_BT.astype(jnp.float32) / original - (scaling.factor - 1)
        base_BT = kind.rotary_base * jnp.maximum(stretched, 1.0) ** (rotary_dim / (rotary_dim - 2))
        long = 1.0 / base_BT[..., None] ** _exponents(rotary_dim)
    return jnp.where(lengths_BT[..., None] > original, long, short)


def _exponents(rotary_dim: int) -> np.ndarray:
    return np.arange(0, rotary_dim, 2, dtype=np.float32) / np.float32(rotary_dim)


def _plain(rotary_dim: int, base: float) -> np.ndarray:
    return np.float32(1.0) / np.float32(base) ** _exponents(rotary_dim)


def _scaled(plain: np.ndarray, base: float, scaling: RotaryScaling) -> np.ndarray:
    keep: np.ndarray  # How much of a pair's own frequency is left, the rest being divided by the factor.
    match scaling.kind:
        case "dynamic":
            return plain
        case "longrope":
            return plain / np.asarray(scaling.short_factors, np.float32)
        case "linear":
            return plain / np.float32(scaling.factor)
        case "llama3":
            # Wavelengths longer than the pretraining length divided by `low_freq_factor` are stretched, those shorter
            # than it divided by `high_freq_factor` are kept, and the ones between are blended.
            turns = scaling.original_max_positions * plain / (2 * math.pi)
            keep = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
        case "yarn":
            low, high = _yarn_range(2 * len(plain), base, scaling)
            keep = 1 - (np.arange(len(plain)) - low) / (high - low)
    keep = np.clip(keep, 0, 1)
    return ((1 - keep) * plain / np.float32(scaling.factor) + keep * plain).astype(np.float32)


def _yarn_range(rotary_dim: int, base: float, scaling: RotaryScaling) -> tuple[float, float]:
    """The indices, between which pairs are blended, of those that turn `beta_fast` and `beta_slow` times."""

    def index(turns: float) -> float:
        return rotary_dim * math.log(scaling.original_max_positions / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = index(scaling.beta_fast), index(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = float(max(low, 0)), float(min(high, rotary_dim - 1))
    return low, high + 0.001 if low == high else high


def phases(
    positions_BT: Int[Array, "B T"],
    frequencies_BTh: Float[np.ndarray, " h"] | Float[Array, "B T h"],
    attention_factor: float = 1.0,
) -> tuple[Float[Array, "B T h"], Float[Array, "B T h"]]:
    """Cosine and sine of every position's angles, times `attention_factor`, float32."""
    angles = positions_BT[..., None].astype(jnp.float32) * frequencies_BTh
    cosine, sine = jnp.cos(angles), jnp.sin(angles)
    return (cosine, sine) if attention_factor == 1.0 else (attention_factor * cosine, attention_factor * sine)


def rotate(
    x_BTNH: Float[Array, "B T N H"], cosine_BTh: Float[Array, "B T h"], sine_BTh: Float[Array, "B T h"]
) -> Float[Array, "B T N H"]:
    """Rotates pair (i, i + h) of the first 2h channels of every head by its angle; computes and returns float32."""
    h = cosine_BTh.shape[-1]
    x_BTNH = x_BTNH.astype(jnp.float32)
    first, second = x_BTNH[..., :h], x_BTNH[..., h : 2 * h]
    cosine, sine = cosine_BTh[:, :, None], sine_BTh[:, :, None]
    parts = [first * cosine - second * sine, second * cosine + first * sine]
    if 2 * h < x_BTNH.shape[-1]:
        parts.append(x_BTNH[..., 2 * h :])
    return jnp.concatenate(parts, axis=-1)
