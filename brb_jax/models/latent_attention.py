"""Multi-head latent attention: keys and values of all heads are made from one narrow vector a token.

DeepSeek-AI, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model" (2024). Nothing is
cached between passes here, so keys and values are made in full and attended to as usual.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from brb_jax.models import rotary
from brb_jax.models.attention import tree_attention
from brb_jax.models.config import DecoderConfig
from brb_jax.models.layer_view import LayerView
from brb_jax.models.layers import Linear, RMSNorm
from brb_jax.models.partitioning import constrain
from brb_jax.models.products import operand, precision


class LatentAttention(nnx.Module):
    """Attention whose heads are each of channels without a position, and of rotated ones that keys have in common."""

    def __init__(self, config: DecoderConfig, *, dtype: jnp.dtype, rngs: nnx.Rngs):
        c, latent = config, config.latent
        assert latent is not None and c.rotary_dim is not None
        self.config, self.latent = c, latent
        self.plain_dim, self.rotary_dim = c.head_dim - c.rotary_dim, c.rotary_dim
        options: dict[str, Any] = {"dtype": dtype, "rngs": rngs}
        biased: dict[str, Any] = {"bias": bool(c.attention_bias), **options}
        norm_config = dataclasses.replace(c, norm_eps=latent.norm_eps)
        if latent.query_rank is None:
            self.query = Linear((c.d_model, c.num_heads, c.head_dim), ("embed", "heads", "head_dim"), **options)
        else:
            self.query_down = Linear((c.d_model, latent.query_rank), ("embed", None), **biased)
            self.query_norm = RMSNorm((latent.query_rank,), (None,), norm_config, **options)
            query_shape = (latent.query_rank, c.num_heads, c.head_dim)
            self.query_up = Linear(query_shape, ("latent", "heads", "head_dim"), **options)
        rank = latent.key_value_rank
        self.key_value_down = Linear((c.d_model, rank + self.rotary_dim), ("embed", None), **biased)
        self.key_value_norm = RMSNorm((rank,), (None,), norm_config, **options)
        key_value_shape = (rank, c.num_heads, self.plain_dim + latent.value_dim)
        self.key_value_up = Linear(key_value_shape, ("latent", "heads", "head_dim"), **options)
        out_shape = (c.num_heads, latent.value_dim, c.d_model)
        self.out = Linear(out_shape, ("heads", "head_dim", "embed"), num_inputs=2, **biased)

    def __call__(self, x_BTD: Float[Array, "B T D"], view: LayerView) -> Float[Array, "B T D"]:
        if self.latent.query_rank is None:
            q_BTNH = self.query(x_BTD)
        else:
            q_BTNH = self.query_up(self.query_norm(self.query_down(x_BTD)))
        narrow, k_rotary = jnp.split(self.key_value_down(x_BTD), [self.latent.key_value_rank], axis=-1)
        k_plain, v_BTNW = jnp.split(self.key_value_up(self.key_value_norm(narrow)), [self.plain_dim], axis=-1)
        q_plain, q_rotary = jnp.split(q_BTNH, [self.plain_dim], axis=-1)
        k_rotary = jnp.broadcast_to(self._rotate(k_rotary[:, :, None], view), (*k_plain.shape[:-1], self.rotary_dim))
        q_BTNH = jnp.concatenate([q_plain, self._rotate(q_rotary, view)], axis=-1) * self.config.attention_scale
        k_BTNH = jnp.concatenate([k_plain, k_rotary], axis=-1)
        dtype = operand(self.out.kernel[...]).dtype
        q_BTNH, k_BTNH, v_BTNW = (
            constrain(heads.astype(dtype), "batch", None, "heads", "head_dim") for heads in (q_BTNH, k_BTNH, v_BTNW)
        )
        return self.out(
            tree_attention(
                q_BTNH,
                k_BTNH,
                v_BTNW,
                view.subtree_end_BT,
                view.positions_BT,
                view.pairs,
                window=view.window,
                softcap=self.config.attention_softcap,
                precision=precision(dtype),
            )
        )

    def _rotate(self, x_BTNh: Float[Array, "B T N h"], view: LayerView) -> Float[Array, "B T N h"]:
        if self.latent.interleaved:  # Any order of channels will do that queries and keys share.
            x_BTNh = jnp.concatenate([x_BTNh[..., ::2], x_BTNh[..., 1::2]], axis=-1)
        return rotary.rotate(x_BTNh, view.cosine_BTh, view.sine_BTh)
