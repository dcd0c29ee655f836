"""What layers see of the input besides the residual stream, computed once for each kind, before the scan of layers."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from brb_jax.models import rotary
from brb_jax.models.attention import NO_WINDOW, BlockPairs, block_pairs, block_size, tree_lengths
from brb_jax.models.config import DecoderConfig


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LayerView:
    """What a layer of one kind sees of the input; with a leading axis over kinds until the scan picks one."""

    cosine_BTh: Float[Array, "... B T h"]
    sine_BTh: Float[Array, "... B T h"]
    window: Int[Array, "..."]
    pairs: BlockPairs
    positions_BT: Int[Array, "... B T"]
    subtree_end_BT: Int[Array, "... B T"]


def layer_views(config: DecoderConfig, positions_BT: Int[Array, "B T"], subtree_end_BT: Int[Array, "B T"]) -> LayerView:
    """The views of all layer kinds, stacked."""
    block = block_size(positions_BT.shape[1])
    rotary_dim = config.rotary_dim or config.head_dim
    views = []
    for kind in config.layer_kinds:
        scaling = kind.rotary_scaling
        if scaling is not None and scaling.by_length:
            frequencies = rotary.frequencies_by_length(rotary_dim, kind, tree_lengths(positions_BT))
        else:
            frequencies = rotary.frequencies(rotary_dim, kind)
        attention_factor = 1.0 if scaling is None else scaling.attention_factor
        cosine_BTh, sine_BTh = rotary.phases(positions_BT, frequencies, attention_factor)
        window = jnp.asarray(NO_WINDOW if kind.window is None else kind.window, jnp.int32)
        pairs = block_pairs(subtree_end_BT, positions_BT, window, block)
        views.append(LayerView(cosine_BTh, sine_BTh, window, pairs, positions_BT, subtree_end_BT))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *views)
