"""What a decoder's layers are made of: products, norms, the MLP. All return float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Float

from brb_jax.models.config import DecoderConfig
from brb_jax.models.partitioning import constrain
from brb_jax.models.products import operand, precision

ACTIVATIONS = {
    "silu": jax.nn.silu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
}


def parameter(value: Array, logical_axes: Sequence[str | None]) -> nnx.Param:
    """A parameter that knows its logical axes; it is placed on a mesh when it is loaded, not when it is declared."""
    return nnx.Param(value, out_sharding=tuple(logical_axes), eager_sharding=False)


class Linear(nnx.Module):
    """A product with a kernel of any rank, `[*inputs, *outputs]`, contracted over its input axes; float32 result."""

    def __init__(
        self,
        shape: Sequence[int],
        logical_axes: Sequence[str | None],
        *,
        num_inputs: int = 1,
        bias: bool = False,
        dtype: jnp.dtype,
        rngs: nnx.Rngs,
    ):
        self.num_inputs, self.num_outputs = num_inputs, len(shape) - num_inputs
        init = jax.nn.initializers.normal(float(np.prod(shape[:num_inputs])) ** -0.5)
        self.kernel = parameter(init(rngs.params(), shape, dtype), logical_axes)
        if bias:
            self.bias = parameter(init(rngs.params(), shape[num_inputs:], dtype), logical_axes[num_inputs:])

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        kernel = operand(self.kernel[...])
        y = jnp.tensordot(
            x.astype(kernel.dtype),
            kernel,
            axes=self.num_inputs,
            precision=precision(kernel.dtype),
            preferred_element_type=jnp.float32,
        )
        if hasattr(self, "kernel_scale"):  # of an int8 kernel
            y *= self.kernel_scale[...].reshape(kernel.shape[self.num_inputs :])
        return y + self.bias[...].astype(jnp.float32) if hasattr(self, "bias") else y


class RMSNorm(nnx.Module):
    """x / rms(x) · (offset + scale) over as many axes as the shape has, in float32. Zhang & Sennrich (2019)."""

    def __init__(
        self,
        shape: Sequence[int],
        logical_axes: Sequence[str | None],
        config: DecoderConfig,
        *,
        dtype: jnp.dtype,
        rngs: nnx.Rngs,
    ):
        self.axes, self.eps, self.offset = tuple(range(-len(shape), 0)), config.norm_eps, config.norm_offset
        init = jax.nn.initializers.normal(0.1)(rngs.params(), shape, dtype) + (1 - config.norm_offset)
        self.scale = parameter(init.astype(dtype), logical_axes)

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        mean_square = jnp.mean(jnp.square(x), axis=self.axes, keepdims=True)
        scale = self.scale[...].astype(jnp.float32)
        return x * jax.lax.rsqrt(mean_square + self.eps) * (self.offset + scale if self.offset else scale)


class LayerNorm(nnx.Module):
    """(x − mean(x)) / deviation(x) · scale + bias over the model width, in float32. Ba, Kiros & Hinton (2016)."""

    def __init__(self, config: DecoderConfig, *, dtype: jnp.dtype, rngs: nnx.Rngs):
        self.eps = config.norm_eps
        init = jax.nn.initializers.normal(0.1)
        self.scale = parameter((init(rngs.params(), (config.d_model,), dtype) + 1).astype(dtype), ("embed",))
        self.bias = parameter(init(rngs.params(), (config.d_model,), dtype), ("embed",))

    def __call__(self, x_BTD: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        centred_BTD = x_BTD - jnp.mean(x_BTD, axis=-1, keepdims=True)
        variance_BT1 = jnp.mean(jnp.square(centred_BTD), axis=-1, keepdims=True)
        scale_D, bias_D = self.scale[...].astype(jnp.float32), self.bias[...].astype(jnp.float32)
        return centred_BTD * jax.lax.rsqrt(variance_BT1 + self.eps) * scale_D + bias_D


def norm(config: DecoderConfig, *, dtype: jnp.dtype, rngs: nnx.Rngs) -> RMSNorm | LayerNorm:
    """A norm over the model width, of the config's kind."""
    if config.norm == "layer":
        return LayerNorm(config, dtype=dtype, rngs=rngs)
    return RMSNorm((config.d_model,), ("embed",), config, dtype=dtype, rngs=rngs)


class MLP(nnx.Module):
    """down(activation(gate(x)) · up(x)), or down(activation(up(x))) without a gate."""

    def __init__(self, config: DecoderConfig, width: int, *, dtype: jnp.dtype, rngs: nnx.Rngs):
        self.activation, self.gated = config.activation, config.gated_mlp
        options: dict[str, Any] = {"bias": config.mlp_bias, "dtype": dtype, "rngs": rngs}
        if self.gated:
            self.gate = Linear((config.d_model, width), ("embed", "mlp"), **options)
        self.up = Linear((config.d_model, width), ("embed", "mlp"), **options)
        self.down = Linear((width, config.d_model), ("mlp", "embed"), **options)

    def __call__(self, x_BTD: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        activation = ACTIVATIONS[self.activation]
        up_BTF = self.up(x_BTD)
        hidden_BTF = activation(self.gate(x_BTD)) * up_BTF if self.gated else activation(up_BTF)
        return self.down(constrain(hidden_BTF, "batch", None, "mlp"))
