"""Rotary position embeddings, half-split layout, phases in float32 (positions past 256 are not exact in bfloat16).

Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021).
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from brb_jax.models.config import LayerKind, RotaryScaling


def frequencies(head_dim: int, kind: LayerKind) -> np.ndarray:
    """Radians per position of each rotated pair: float32 `[head_dim / 2]`, scaled as the layer's kind says."""
    exponents = np.arange(0, head_dim, 2, dtype=np.float32) / np.float32(head_dim)
    plain = np.float32(1.0) / np.float32(kind.rotary_base) ** exponents
    return plain if kind.rotary_scaling is None else _scaled(plain, kind.rotary_scaling)


def _scaled(plain: np.ndarray, scaling: RotaryScaling) -> np.ndarray:
    slow = plain / np.float32(scaling.factor)
    if scaling.kind == "linear":
        return slow
    # Llama 3.1: wavelengths longer than the pretraining length divided by `low_freq_factor` are stretched, those
    # shorter than it divided by `high_freq_factor` are kept, and the ones between are blended.
    wavelengths = 2 * math.pi / plain
    turns = scaling.original_max_positions / wavelengths
    blend = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    blend = np.clip(blend, 0, 1)
    return ((1 - blend) * slow + blend * plain).astype(np.float32)


def phases(
    positions_BT: Int[Array, "B T"], frequencies_h: Float[np.ndarray, " h"]
) -> tuple[Float[Array, "B T h"], Float[Array, "B T h"]]:
    """Cosine and sine of every position's angles, float32."""
    angles = positions_BT[..., None].astype(jnp.float32) * frequencies_h
    return jnp.cos(angles), jnp.sin(angles)


def rotate(
    x_BTNH: Float[Array, "B T N H"], cosine_BTh: Float[Array, "B T h"], sine_BTh: Float[Array, "B T h"]
) -> Float[Array, "B T N H"]:
    """Rotates pair (i, i + H/2) of every head by its angle; computes and returns float32."""
    first, second = jnp.split(x_BTNH.astype(jnp.float32), 2, axis=-1)
    cosine, sine = cosine_BTh[:, :, None], sine_BTh[:, :, None]
    return jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)
