"""Attention by the prefix-tree rule: query slot i sees key slot j ⇔ j ≤ i < subtree_end[j], within a window.

The portable form: blocks of queries meet blocks of keys under an online softmax, so memory is linear in T, and a pair
of blocks in which nothing is visible is never computed. The softmax recurrence is that of Milakov & Gimelshein,
"Online normalizer calculation for softmax" (2018), as FlashAttention blocks it.

Layout: the query heads of a key/value head are folded into the query axis, and keys are stored `[K, H, T]`. Both
products are then plain batched matrix products over key/value heads, and softmax reductions run along the last axis.
On CPUs a grouped einsum is several times slower, and reductions over a leading axis suffer where its stride is a
power of two.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

# Stands for −∞ where a score is masked. Finite, so that a query none of whose keys were seen yet yields no NaN: what
# such a block adds is multiplied by exp(MASKED − m) = 0 as soon as a visible key (at the latest the slot itself) comes.
MASKED = -1e30

# Window of a layer that has none; larger than any position, small enough for int32 differences.
NO_WINDOW = 2**30

# Larger blocks make larger products, and more of what lies above the diagonal; near 400 the two balance on CPUs.
MAX_BLOCK = 416


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class BlockPairs:
    """Which key blocks each query block meets; `n` is the number of blocks of a row. May carry leading axes.

    Attributes:
        order: `[n, n]` key block ids per query block: first those visible throughout, then in part, then not at all.
        num_full: `[n]` how many are visible throughout, to every query of the block in every row of the batch.
        num_seen: `[n]` how many are visible at all.
    """

    order: Int[Array, "... n n"]
    num_full: Int[Array, "... n"]
    num_seen: Int[Array, "... n"]


def block_size(num_slots: int) -> int:
    """The largest divisor of the row length up to `MAX_BLOCK`: few, large products, with little above the diagonal."""
    return next(size for size in range(min(num_slots, MAX_BLOCK), 0, -1) if num_slots % size == 0)


def block_pairs(
    subtree_end_BT: Int[Array, "B T"],
    positions_BT: Int[Array, "B T"],
    window: Int[Array, ""] | int,
    block: int,
) -> BlockPairs:
    """Finds the pairs of blocks that hold something visible, over all rows of a batch.

    Conservative where positions do not rise with slots (branches of a tree restart): a pair is left out only when no
    query can see any key, and counted as full only when every query surely sees every key.
    """
    B, T = subtree_end_BT.shape
    n = T // block
    first = jnp.arange(n) * block  # first slot of each block
    end_Bnb = subtree_end_BT.reshape(B, n, block)
    position_Bnb = positions_BT.reshape(B, n, block)
    lowest, highest = position_Bnb.min(-1), position_Bnb.max(-1)
    # [B, query block, key block]
    nearest = lowest[:, :, None] - highest[:, None, :]
    farthest = highest[:, :, None] - lowest[:, None, :]
    seen = (
        (first[None, None, :] <= first[None, :, None])
        & (end_Bnb.max(-1)[:, None, :] > first[None, :, None])
        & (nearest < window)
    )
    full = (
        (first[None, None, :] < first[None, :, None])
        & (end_Bnb.min(-1)[:, None, :] >= first[None, :, None] + block)
        & (farthest < window)
    )
    seen, full = seen.any(0), full.all(0)
    return BlockPairs(
        order=jnp.argsort(jnp.where(full, 0, jnp.where(seen, 1, 2)), axis=1, stable=True).astype(jnp.int32),
        num_full=full.sum(1).astype(jnp.int32),
        num_seen=seen.sum(1).astype(jnp.int32),
    )


def visible(
    query_slots: Int[Array, " q"],
    key_slots: Int[Array, " k"],
    query_positions_Bq: Int[Array, "B q"],
    key_positions_Bk: Int[Array, "B k"],
    key_subtree_end_Bk: Int[Array, "B k"],
    window: Int[Array, ""] | int,
) -> Bool[Array, "B q k"]:
    """The rule itself, for any slots of a row. A window counts positions (depths in the tree), not slots."""
    return (
        (key_slots[None, None, :] <= query_slots[None, :, None])
        & (query_slots[None, :, None] < key_subtree_end_Bk[:, None, :])
        & (query_positions_Bq[:, :, None] - key_positions_Bk[:, None, :] < window)
    )


def tree_lengths(positions_BT: Int[Array, "B T"]) -> Int[Array, "B T"]:
    """For every slot, how many positions its tree is deep; a tree begins at position 0."""

    def of_row(positions_T):
        tree_T = jnp.cumsum(positions_T == 0) - 1
        deepest = jax.ops.segment_max(positions_T, tree_T, num_segments=len(positions_T), indices_are_sorted=True)
        return deepest[tree_T] + 1

    return jax.vmap(of_row)(positions_BT)


def tree_attention(
    q_BTNH: Float[Array, "B T N H"],
    k_BTKH: Float[Array, "B T K H"],
    v_BTKW: Float[Array, "B T K W"],
    subtree_end_BT: Int[Array, "B T"],
    positions_BT: Int[Array, "B T"],
    pairs: BlockPairs,
    *,
    window: Int[Array, ""] | int = NO_WINDOW,
    softcap: float | None = None,
    sinks_N: Float[Array, " N"] | None = None,
    precision: jax.lax.Precision | None = None,
) -> Float[Array, "B T N W"]:
    """Softmax attention of every slot over the slots it sees.

    Args:
        q_BTNH: Queries, already scaled; query head n belongs to key/value head n // (N / K).
        k_BTKH, v_BTKW: Keys and values.
        subtree_end_BT: The tree (`tokens/rows.py`). Every slot must see itself: `subtree_end[j] > j`.
        positions_BT: Depth of each slot in its tree, in which `window` is measured.
        pairs: `block_pairs(subtree_end_BT, positions_BT, window, block_size(T))`; the same for all layers of a kind.
        window: Latest positions a slot sees, itself included.
        softcap: c in c·tanh(score / c), or None.
        sinks_N: A score a head that takes its share of every softmax and gives no value; None for none.
        precision: Of both matrix products.

    Returns:
        Float32 averages of the values. Scores, softmax and sums are float32 whatever the operands' dtype.
    """
    B, T, N, H = q_BTNH.shape
    K, W = v_BTKW.shape[2:]
    G = N // K
    n = pairs.order.shape[0]
    b = T // n

    q = q_BTNH.reshape(B, n, b, K, G, H).transpose(1, 0, 3, 4, 2, 5).reshape(n, B, K, G * b, H)
    k = k_BTKH.reshape(B, n, b, K, H).transpose(1, 0, 3, 4, 2)  # [n, B, K, H, b]
    v = v_BTKW.reshape(B, n, b, K, W).transpose(1, 0, 3, 2, 4)  # [n, B, K, b, W]
    ends = subtree_end_BT.reshape(B, n, b).transpose(1, 0, 2)  # [n, B, b]
    positions = positions_BT.reshape(B, n, b).transpose(1, 0, 2)
    offsets = jnp.arange(b)
    if sinks_N is None:
        before = (jnp.full((B, K, G * b), MASKED, jnp.float32), jnp.zeros((B, K, G * b), jnp.float32))
    else:  # A sink is as good as a key that has been met before any other, of value zero.
        sinks = jnp.repeat(sinks_N.astype(jnp.float32).reshape(K, G), b, axis=-1)
        before = (jnp.broadcast_to(sinks, (B, K, G * b)), jnp.ones((B, K, G * b), jnp.float32))

    def take(blocks, index):
        return jax.lax.dynamic_index_in_dim(blocks, index, axis=0, keepdims=False)

    def attend_query_block(block):
        index, q_block, query_positions, order, num_full, num_seen = block

        def attend_key_block(step, carry, *, masked: bool):
            maximum, total, weighted = carry
            key_index = order[step]
            scores = jnp.matmul(
                q_block, take(k, key_index), precision=precision, preferred_element_type=jnp.float32
            )  # [B, K, G·b, b]
            if softcap is not None:
                scores = softcap * jnp.tanh(scores / softcap)
            if masked:
                mask = visible(
                    index * b + offsets,
                    key_index * b + offsets,
                    query_positions,
                    take(positions, key_index),
                    take(ends, key_index),
                    window,
                )
                scores = jnp.where(mask[:, None, None], scores.reshape(B, K, G, b, b), MASKED).reshape(scores.shape)
            new_maximum = jnp.maximum(maximum, scores.max(-1))
            weights = jnp.exp(scores - new_maximum[..., None])
            decay = jnp.exp(maximum - new_maximum)
            values = jnp.matmul(
                weights.astype(v.dtype),
                take(v, key_index),
                precision=precision,
                preferred_element_type=jnp.float32,
            )  # [B, K, G·b, W]
            return new_maximum, total * decay + weights.sum(-1), weighted * decay[..., None] + values

        carry = (*before, jnp.zeros((B, K, G * b, W), jnp.float32))
        carry = jax.lax.fori_loop(0, num_full, lambda s, c: attend_key_block(s, c, masked=False), carry)
        carry = jax.lax.fori_loop(num_full, num_seen, lambda s, c: attend_key_block(s, c, masked=True), carry)
        _, total, weighted = carry
        return weighted / total[..., None]

    out = jax.lax.map(
        attend_query_block, (jnp.arange(n), q, positions, pairs.order, pairs.num_full, pairs.num_seen)
    )  # [n, B, K, G·b, W]
    return out.reshape(n, B, K, G, b, W).transpose(1, 0, 4, 2, 3, 5).reshape(B, T, N, W)
