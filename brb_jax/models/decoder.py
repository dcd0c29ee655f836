"""The decoder: one Flax NNX model that a `DecoderConfig` turns into any supported family.

Consecutive layers with the same parameters are stacked on a leading axis and scanned. What else differs by layer
(window, rotary table) is looked up by the layer's kind inside the scan. The residual stream, norms, rotary phases and
softmax are float32, and so are the results of matrix products; their operands have the dtype that `products` says.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from brb_jax.models import rotary
from brb_jax.models.attention import tree_attention
from brb_jax.models.config import DecoderConfig, Stack
from brb_jax.models.experts import ExpertsMLP
from brb_jax.models.latent_attention import LatentAttention
from brb_jax.models.layer_view import LayerView, layer_views
from brb_jax.models.layers import MLP, Linear, RMSNorm, norm, parameter
from brb_jax.models.partitioning import constrain
from brb_jax.models.products import DEFAULT_PRODUCTS, Products, multiplying, operand, precision


class Attention(nnx.Module):
    """Grouped-query attention over the prefix tree, with rotary positions where the config has them."""

    def __init__(self, config: DecoderConfig, *, dtype: jnp.dtype, rngs: nnx.Rngs):
        c = config
        self.config = c
        options: dict[str, Any] = {"bias": bool(c.attention_bias), "dtype": dtype, "rngs": rngs}
        kv_shape, kv_axes = (c.d_model, c.num_kv_heads, c.head_dim), ("embed", "kv_heads", "head_dim")
        self.query = Linear((c.d_model, c.num_heads, c.head_dim), ("embed", "heads", "head_dim"), **options)
        self.key = Linear(kv_shape, kv_axes, **options)
        self.value = Linear(kv_shape, kv_axes, **options)
        options["bias"] = c.attention_bias is True
        self.out = Linear((c.num_heads, c.head_dim, c.d_model), ("heads", "head_dim", "embed"), num_inputs=2, **options)
        if c.attention_sinks:
            init = jax.nn.initializers.normal(1.0)
            self.sinks = parameter(init(rngs.params(), (c.num_heads,), dtype), ("heads",))
        if c.qk_norm:
            first = 0 if c.qk_norm == "joint" else 1
            shape, axes = (c.num_heads, c.head_dim), ("heads", "head_dim")
            self.query_norm = RMSNorm(shape[first:], axes[first:], c, dtype=dtype, rngs=rngs)
            self.key_norm = RMSNorm(kv_shape[1:][first:], kv_axes[1:][first:], c, dtype=dtype, rngs=rngs)

    def __call__(self, x_BTD: Float[Array, "B T D"], view: LayerView) -> Float[Array, "B T D"]:
        q_BTNH, k_BTKH, v_BTKH = self.query(x_BTD), self.key(x_BTD), self.value(x_BTD)
        if self.config.qk_norm:
            q_BTNH, k_BTKH = self.query_norm(q_BTNH), self.key_norm(k_BTKH)
        if self.config.rotary:
            q_BTNH = rotary.rotate(q_BTNH, view.cosine_BTh, view.sine_BTh)
            k_BTKH = rotary.rotate(k_BTKH, view.cosine_BTh, view.sine_BTh)
        q_BTNH *= self.config.attention_scale
        dtype = operand(self.query.kernel[...]).dtype
        q_BTNH = constrain(q_BTNH.astype(dtype), "batch", None, "heads", "head_dim")
        k_BTKH = constrain(k_BTKH.astype(dtype), "batch", None, "kv_heads", "head_dim")
        v_BTKH = constrain(v_BTKH.astype(dtype), "batch", None, "kv_heads", "head_dim")
        return self.out(
            tree_attention(
                q_BTNH,
                k_BTKH,
                v_BTKH,
                view.subtree_end_BT,
                view.positions_BT,
                view.pairs,
                window=view.window,
                softcap=self.config.attention_softcap,
                sinks_N=self.sinks[...] if self.config.attention_sinks else None,
                precision=precision(dtype),
            )
        )


class DecoderLayer(nnx.Module):
    """Attention and MLP around the residual stream, with norms before them, behind them, or both."""

    def __init__(self, config: DecoderConfig, experts: bool, *, dtype: jnp.dtype, rngs: nnx.Rngs):
        self.config = config
        attention = Attention if config.latent is None else LatentAttention
        self.attention = attention(config, dtype=dtype, rngs=rngs)
        self.mlp: ExpertsMLP | MLP
        if experts:
            self.mlp = ExpertsMLP(config, dtype=dtype, rngs=rngs)
        else:
            self.mlp = MLP(config, config.d_mlp, dtype=dtype, rngs=rngs)
        if config.pre_norms:
            self.attention_norm, self.mlp_norm = (norm(config, dtype=dtype, rngs=rngs) for _ in range(2))
        if config.post_norms:
            self.post_attention_norm, self.post_mlp_norm = (norm(config, dtype=dtype, rngs=rngs) for _ in range(2))

    def __call__(self, x_BTD: Float[Array, "B T D"], view: LayerView) -> Float[Array, "B T D"]:
        c = self.config
        attended_BTD = self.attention(self.attention_norm(x_BTD) if c.pre_norms else x_BTD, view)
        if c.post_norms:
            attended_BTD = self.post_attention_norm(attended_BTD)
        if c.residual_scale != 1.0:
            attended_BTD *= c.residual_scale
        summed_BTD = x_BTD + attended_BTD
        mlp_input_BTD = x_BTD if c.parallel_residual else summed_BTD
        hidden_BTD = self.mlp(self.mlp_norm(mlp_input_BTD) if c.pre_norms else mlp_input_BTD)
        if c.post_norms:
            hidden_BTD = self.post_mlp_norm(hidden_BTD)
        if c.residual_scale != 1.0:
            hidden_BTD *= c.residual_scale
        return constrain(summed_BTD + hidden_BTD, "batch", None, None)


class Embedder(nnx.Module):
    """A table of vectors, `[rows, D]`."""

    def __init__(self, rows: int, logical_axis: str, config: DecoderConfig, *, dtype: jnp.dtype, rngs: nnx.Rngs):
        table = jax.nn.initializers.normal(1.0)(rngs.params(), (rows, config.d_model), dtype)
        self.logical_axis = logical_axis
        self.table = parameter(table, (logical_axis, "embed"))

    def __call__(self, rows_BT: Int[Array, "B T"]) -> Float[Array, "B T D"]:
        """Some of the vectors, float32."""
        # Rows are looked up in a table that is whole along `embed`: the result is then split by batch alone.
        table = constrain(self.table[...], self.logical_axis, None)
        x_BTD = jnp.take(table, rows_BT, axis=0).astype(jnp.float32)
        if hasattr(self, "table_scale"):  # of an int8 table
            x_BTD *= jnp.take(self.table_scale[...], rows_BT, axis=0)
        return x_BTD


def _stacked_layers(config: DecoderConfig, stack: Stack, *, dtype: jnp.dtype, rngs: nnx.Rngs) -> DecoderLayer:
    """The layers of a stack as one, whose parameters have a leading axis."""

    @nnx.split_rngs(splits=len(stack.layers))
    @nnx.vmap(in_axes=0, out_axes=0, transform_metadata={nnx.PARTITION_NAME: "layers"})
    def stacked(rngs: nnx.Rngs) -> DecoderLayer:
        return DecoderLayer(config, stack.experts, dtype=dtype, rngs=rngs)

    return stacked(rngs)


class Decoder(nnx.Module):
    """Tokens in a tree ─► hidden states ─► logits at the positions asked for."""

    def __init__(
        self,
        config: DecoderConfig,
        *,
        dtype: DTypeLike = jnp.float32,
        products: Products = DEFAULT_PRODUCTS,
        rngs: nnx.Rngs,
    ):
        """
        Args:
            config: What the family varies in.
            dtype: Of the parameters.
            products: How matrices are multiplied.
            rngs: Of the initial parameters.
        """
        self.config = config
        self.products = products
        dtype = jnp.dtype(dtype)
        self.embedder = Embedder(config.vocab_size, "vocab", config, dtype=dtype, rngs=rngs)
        if config.learned_positions:
            self.position_embedder = Embedder(config.max_positions, "positions", config, dtype=dtype, rngs=rngs)

        for stack in config.stacks:
            setattr(self, stack.name, _stacked_layers(config, stack, dtype=dtype, rngs=rngs))
        self.final_norm = norm(config, dtype=dtype, rngs=rngs)
        if not config.tie_embeddings:
            self.unembedding = Linear((config.d_model, config.vocab_size), ("embed", "vocab"), dtype=dtype, rngs=rngs)

    def hidden_states(
        self,
        tokens_BT: Int[Array, "B T"],
        positions_BT: Int[Array, "B T"],
        subtree_end_BT: Int[Array, "B T"],
    ) -> Float[Array, "B T D"]:
        """Normed hidden state of every slot, float32. Arguments as in `tokens/rows.py`."""
        with multiplying(self.products):
            return self._hidden_states(tokens_BT, positions_BT, subtree_end_BT)

    def _hidden_states(
        self,
        tokens_BT: Int[Array, "B T"],
        positions_BT: Int[Array, "B T"],
        subtree_end_BT: Int[Array, "B T"],
    ) -> Float[Array, "B T D"]:
        x_BTD = self.embedder(tokens_BT)
        if self.config.embedding_scale != 1.0:
            x_BTD *= self.config.embedding_scale
        if self.config.learned_positions:
            x_BTD += self.position_embedder(positions_BT)
        x_BTD = constrain(x_BTD, "batch", None, None)
        views = layer_views(self.config, positions_BT, subtree_end_BT)
        for stack in self.config.stacks:
            x_BTD = self._through(stack, x_BTD, views)
        return self.final_norm(x_BTD)

    def _through(self, stack: Stack, x_BTD: Float[Array, "B T D"], views: LayerView) -> Float[Array, "B T D"]:
        graph, stacked = nnx.split(getattr(self, stack.name))

        def apply_layer(x_BTD, scanned):
            parameters, kind = scanned
            view = jax.tree.map(lambda leaf: leaf[kind], views)
            return nnx.merge(graph, parameters)(x_BTD, view), None

        pattern = jnp.asarray([self.config.layer_pattern[layer] for layer in stack.layers], jnp.int32)
        return jax.lax.scan(apply_layer, x_BTD, (stacked, pattern))[0]

    def logits(self, hidden_BSD: Float[Array, "B S D"]) -> Float[Array, "B S V"]:
        """Float32 logits of normed hidden states. Give it only the positions that are scored."""
        with multiplying(self.products):
            return self._logits(hidden_BSD)

    def _logits(self, hidden_BSD: Float[Array, "B S D"]) -> Float[Array, "B S V"]:
        if self.config.tie_embeddings:
            table_VD = operand(self.embedder.table[...])
            logits_BSV = jnp.einsum(
                "bsd,vd->bsv",
                hidden_BSD.astype(table_VD.dtype),
                table_VD,
                precision=precision(table_VD.dtype),
                preferred_element_type=jnp.float32,
            )
            if hasattr(self.embedder, "table_scale"):
                logits_BSV *= self.embedder.table_scale[..., 0]
        else:
            logits_BSV = self.unembedding(hidden_BSD)
        if self.config.logit_scale != 1.0:
            logits_BSV *= self.config.logit_scale
        if self.config.logit_softcap is not None:
            logits_BSV = self.config.logit_softcap * jnp.tanh(logits_BSV / self.config.logit_softcap)
        return constrain(logits_BSV, "batch", None, "vocab")
