"""Matrices as int8 with one float32 scale for each output channel: a quarter of the memory of float32.

Weight-only: activations keep their dtype, products are those of the int8 values converted on the way in, and results
are scaled. Rounding the matrices is thus the only difference. The quantiser is qwix's: symmetric, by the largest
absolute value.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import qwix
from flax import nnx
from jaxtyping import Array, Float, Int8

from brb_jax.models.decoder import Decoder
from brb_jax.models.experts import ExpertLinear
from brb_jax.models.layers import Linear, parameter

# qwix maps the largest absolute value to 127.5, halfway to a step that int8 has on one side only: its last bit would
# decide how it is rounded. Here it becomes 127.
CALIBRATION = f"absmax,{127.5 / 127}"

_SCALE = "_scale"


@functools.partial(jax.jit, static_argnames="channels")
def quantise(array: Float[Array, "..."], channels: Sequence[int]) -> tuple[Int8[Array, "..."], Float[Array, "..."]]:
    """The nearest multiples of each channel's scale.

    Args:
        array: Any matrix; quantised in float32.
        channels: The axes that have a scale for every index.

    Returns:
        The multiples, −127 to 127, and the scales: of the array's rank, with size 1 where an axis is not in `channels`.
    """
    quantised = qwix.quantize(
        array.astype(jnp.float32), jnp.int8, channelwise_axes=tuple(channels), calibration_method=CALIBRATION
    )
    return quantised.qvalue, quantised.scale


def with_int8_matrices(decoder: Decoder) -> Decoder:
    """The decoder with its matrices as int8: those of all linear layers, experts and vocabulary rows.

    What is left float32: norms, biases, routers, sinks and learned positions.
    """
    for _, module in nnx.iter_modules(decoder):
        if isinstance(module, Linear):
            _quantise_variable(module, "kernel", range(-module.num_inputs - module.num_outputs, -module.num_outputs))
        elif isinstance(module, ExpertLinear):
            _quantise_variable(module, "kernel", [-2])
    _quantise_variable(decoder.embedder, "table", [-1])
    return decoder


def _quantise_variable(module: nnx.Module, name: str, contracted: Sequence[int]) -> None:
    variable = getattr(module, name)
    array, logical_axes = variable[...], variable.get_metadata("out_sharding")
    summed = {axis % array.ndim for axis in contracted}
    values, scale = quantise(array, tuple(axis for axis in range(array.ndim) if axis not in summed))
    setattr(module, name, parameter(values, logical_axes))
    setattr(module, f"{name}{_SCALE}", parameter(scale, logical_axes))


def scale_path(path: str) -> str:
    """Where the scales of the int8 parameter at a canonical path are."""
    return f"{path}{_SCALE}"


def without_scales(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by path, those left out that are made when an int8 one is loaded."""
    scales = {scale_path(path) for path, leaf in asked.items() if leaf.dtype == np.int8}
    return {path: leaf for path, leaf in asked.items() if path not in scales}
