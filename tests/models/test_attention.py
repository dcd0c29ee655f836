"""Attention by tree against a dense softmax in float64 over visibility found by walking up the tree."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import TreeRow, random_row, visible

from brb_jax.models import attention


def dense_attention(q, k, v, mask_BTT, softcap=None, sinks_N=None):
    """Float64 softmax attention; q already scaled, arrays `[B, T, heads, H]`."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    group = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, group, axis=2), np.repeat(v, group, axis=2)
    scores = np.einsum("btnh,bsnh->bnts", q, k)
    if softcap is not None:
        scores = softcap * np.tanh(scores / softcap)
    scores = np.where(mask_BTT[:, None], scores, -np.inf)
    if sinks_N is not None:
        scores = np.concatenate([scores, np.broadcast_to(sinks_N[:, None, None], (*scores.shape[:3], 1))], axis=-1)
        v = np.concatenate([v, np.zeros_like(v[:, :1])], axis=1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bnts,bsnh->btnh", weights / weights.sum(-1, keepdims=True), v)


def batch_of(rows: list[TreeRow]):
    return (
        jnp.asarray(np.stack([row.subtree_end_T for row in rows]), jnp.int32),
        jnp.asarray(np.stack([row.position_T for row in rows]), jnp.int32),
    )


def heads(rng, B, T, N, K, H):
    return tuple(jnp.asarray(rng.normal(size=(B, T, n, H)), jnp.float32) for n in (N, K, K))


def attend(q, k, v, end, position, *, block, window=attention.NO_WINDOW, softcap=None, sinks_N=None):
    @jax.jit
    def run(q, k, v, end, position):
        pairs = attention.block_pairs(end, position, window, block)
        return attention.tree_attention(q, k, v, end, position, pairs, window=window, softcap=softcap, sinks_N=sinks_N)

    return run(q, k, v, end, position)


@pytest.mark.parametrize("block", [8, 32, 96])
@pytest.mark.parametrize("window", [None, 1, 4, 30])
@pytest.mark.parametrize("seed", range(3))
def test_equals_dense_softmax(block, window, seed):
    rng = np.random.default_rng(seed)
    rows = [random_row(rng, 96, padding=int(rng.integers(0, 40))) for _ in range(3)]
    end, position = batch_of(rows)
    q, k, v = heads(rng, 3, 96, 6, 2, 8)
    out = attend(q, k, v, end, position, block=block, window=window or attention.NO_WINDOW)
    expected = dense_attention(q, k, v, np.stack([visible(row, window) for row in rows]))
    np.testing.assert_allclose(out, expected, atol=2e-6)


@pytest.mark.parametrize(("N", "K", "H"), [(1, 1, 4), (4, 1, 16), (5, 5, 7)])
def test_head_layouts_and_softcap(N, K, H):
    rng = np.random.default_rng(7)
    row = random_row(rng, 64)
    end, position = batch_of([row])
    q, k, v = heads(rng, 1, 64, N, K, H)
    out = attend(3 * q, k, v, end, position, block=16, softcap=5.0)
    np.testing.assert_allclose(out, dense_attention(3 * q, k, v, visible(row)[None], 5.0), atol=3e-6)


@pytest.mark.parametrize("window", [None, 4])
def test_sinks_and_values_of_another_width(window):
    """Sinks below, among and far above the scores of keys."""
    rng = np.random.default_rng(8)
    row = random_row(rng, 64, padding=5)
    end, position = batch_of([row])
    q, k, _ = heads(rng, 1, 64, 6, 2, 8)
    v = jnp.asarray(rng.normal(size=(1, 64, 2, 5)), jnp.float32)
    sinks_N = np.array([-30.0, -1.0, 0.0, 1.0, 3.0, 30.0], np.float32)
    out = attend(q, k, v, end, position, block=16, window=window or attention.NO_WINDOW, sinks_N=jnp.asarray(sinks_N))
    expected = dense_attention(q, k, v, visible(row, window)[None], sinks_N=sinks_N)
    np.testing.assert_allclose(out, expected, atol=2e-6)


def test_the_rule_as_a_grid():
    """Context a b c d e, options f g and h i j, next case k: the eleven slots of the README, written out."""
    end = np.array([[10, 10, 10, 10, 10, 7, 7, 10, 10, 10, 11]])
    position = np.array([[0, 1, 2, 3, 4, 5, 6, 5, 6, 7, 0]])
    slots = jnp.arange(11)
    seen = attention.visible(slots, slots, jnp.asarray(position), jnp.asarray(position), jnp.asarray(end), 2**30)
    grid = [
        "1..........",
        "11.........",
        "111........",
        "1111.......",
        "11111......",
        "111111.....",
        "1111111....",
        "11111..1...",
        "11111..11..",
        "11111..111.",
        "..........1",
    ]
    np.testing.assert_array_equal(np.asarray(seen[0]), [[cell == "1" for cell in line] for line in grid])


def test_tree_lengths():
    """The same row: the longest path through the first tree has eight tokens. Padding is trees of one."""
    position = jnp.asarray([[0, 1, 2, 3, 4, 5, 6, 5, 6, 7, 0, 0], [0, 1, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0]])
    lengths = attention.tree_lengths(position)
    np.testing.assert_array_equal(lengths, [[8] * 10 + [1, 1], [2, 2, 3, 3, 3, 3] + [1] * 6])


def test_window_counts_positions_not_slots():
    """Window 4 at position 6 sees positions 3 to 6, across the slots of a sibling branch in between."""
    end = jnp.asarray([[10, 10, 10, 10, 10, 7, 7, 10, 10, 10, 11]])
    position = jnp.asarray([[0, 1, 2, 3, 4, 5, 6, 5, 6, 7, 0]])
    slots = jnp.arange(11)
    seen = np.asarray(attention.visible(slots, slots, position, position, end, 4))[0]
    assert np.flatnonzero(seen[8]).tolist() == [3, 4, 7, 8]


def test_large_scores_do_not_overflow():
    rng = np.random.default_rng(0)
    row = random_row(rng, 32)
    end, position = batch_of([row])
    q, k, v = heads(rng, 1, 32, 2, 2, 4)
    out = attend(1e4 * q, k, v, end, position, block=8)
    np.testing.assert_allclose(out, dense_attention(1e4 * q, k, v, visible(row)[None]), atol=1e-4)


def test_a_slot_depends_on_what_it_sees_and_on_nothing_else():
    """By gradients: those to visible keys and values are not zero, all others are exactly zero."""
    rng = np.random.default_rng(1)
    row = random_row(rng, 24, padding=3, branch=0.3)
    end, position = batch_of([row])
    q, k, v = heads(rng, 1, 24, 2, 1, 4)
    pairs = attention.block_pairs(end, position, attention.NO_WINDOW, 8)

    def out_of(v):
        return attention.tree_attention(q, k, v, end, position, pairs)[0].sum((1, 2))

    jacobian = jax.jacfwd(out_of)(v)  # [query, 1, key, 1, H]
    np.testing.assert_array_equal(np.abs(np.asarray(jacobian)).sum((1, 3, 4)) != 0, visible(row))


def test_unseen_neighbours_change_nothing_bit_for_bit():
    """Other trees of the row, padding and other rows hold other values: not one bit differs."""
    rng = np.random.default_rng(2)
    row = random_row(rng, 64, padding=8, new_root=0.08)
    end, position = batch_of([row, row])
    q, k, v = heads(rng, 2, 64, 4, 2, 8)
    root = int(np.flatnonzero(row.parent_T[:40] == -1)[-1])
    own = slice(root, int(row.subtree_end_T[root]))
    out = attend(q, k, v, end, position, block=16)

    def replaced(x):
        noise = jnp.asarray(rng.normal(size=x.shape) * 5, x.dtype)
        return noise.at[0, own].set(x[0, own])

    again = attend(*(replaced(x) for x in (q, k, v)), end, position, block=16)
    np.testing.assert_array_equal(out[0, own], again[0, own])


@pytest.mark.parametrize("window", [attention.NO_WINDOW, 20])
def test_block_pairs_cover_all_that_is_seen_and_little_else(window):
    rng = np.random.default_rng(3)
    for _ in range(20):
        rows = [random_row(rng, 128, padding=16) for _ in range(2)]
        end, position = batch_of(rows)
        pairs = attention.block_pairs(end, position, window, 16)
        masks = np.stack([visible(row, None if window == attention.NO_WINDOW else window) for row in rows])
        blocks = masks.reshape(2, 8, 16, 8, 16)
        for i in range(8):
            order = np.asarray(pairs.order)[i].tolist()
            met, full = set(order[: pairs.num_seen[i]]), set(order[: pairs.num_full[i]])
            assert met >= set(np.flatnonzero(blocks[:, i].any((0, 1, 3))).tolist())
            assert full <= set(np.flatnonzero(blocks[:, i].all((0, 1, 3))).tolist())


def test_block_pairs_skip_siblings():
    """One context and long options: an option's blocks meet the context's and their own, no other option's."""
    context, option = 64, 32
    end = np.full(64 + 4 * 32, context + 4 * option, np.int32)
    position = np.concatenate([np.arange(context), np.tile(np.arange(context, context + option), 4)])
    for start in range(context, len(end), option):
        end[start : start + option] = start + option
    pairs = attention.block_pairs(jnp.asarray(end[None]), jnp.asarray(position[None]), attention.NO_WINDOW, 32)
    met = [sorted(pairs.order[i, : pairs.num_seen[i]].tolist()) for i in range(6)]
    assert met == [[0], [0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 4], [0, 1, 5]]
    assert pairs.num_full.tolist() == [0, 1, 2, 2, 2, 2]


def test_memory_is_linear_in_the_row_length():
    """The largest array in the program grows with T, not with its square."""

    def largest(T):
        shape = jax.ShapeDtypeStruct
        args = [shape((1, T, n, 8), jnp.float32) for n in (2, 1, 1)] + [shape((1, T), jnp.int32)] * 2

        def run(q, k, v, end, position):
            pairs = attention.block_pairs(end, position, attention.NO_WINDOW, attention.block_size(T))
            return attention.tree_attention(q, k, v, end, position, pairs)

        compiled = jax.jit(run).lower(*args).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    small, large = largest(4096), largest(16384)
    assert large < 5 * small


@pytest.mark.parametrize(
    ("T", "block"), [(1, 1), (7, 7), (128, 128), (640, 320), (1664, 416), (2048, 256), (131072, 256)]
)
def test_block_size_divides_the_row(T, block):
    assert attention.block_size(T) == block
