"""Row lengths: the grid, and which of it are chosen."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from brb_jax.tokens.buckets import choose_buckets, piece_costs, row_cost, row_lengths


@given(st.integers(1, 2_000_000), st.integers(1, 2_000_000))
def test_the_grid(batch_tokens, longest):
    lengths = row_lengths(batch_tokens, longest)
    assert not (lengths % 128).any()
    assert lengths[-1] >= longest
    assert len(lengths) == 1 or lengths[-2] < longest or lengths[-1] <= batch_tokens
    # An eighth of an octave at most is lost to a row's padding.
    assert (np.diff(lengths) <= np.maximum(128, lengths[:-1] / 8)).all()


def test_a_piece_costs_between_its_slots_and_its_row():
    lengths = np.asarray([128, 512])
    costs = piece_costs(lengths)
    assert len(costs) == 513
    assert costs[128] == row_cost(np.asarray(128)) and costs[512] == row_cost(np.asarray(512))
    assert costs[129] == (row_cost(np.asarray(129)) + row_cost(np.asarray(512))) / 2
    assert (np.diff(costs) > 0).all()


def padded_cost(sizes: list[int], lengths: tuple[int, ...]) -> float:
    """The definition, plus what each compilation costs."""
    return 4096 * len(lengths) + sum(
        min(float(row_cost(np.asarray(t))) / (t // s) if t >= s else np.inf for t in lengths) for s in sizes
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 1500), st.integers(1, 200)), min_size=1, max_size=6), st.integers(1, 3))
def test_chosen_lengths_are_near_the_best(weighted_sizes, max_buckets):
    """Exchange of one length at a time is no exhaustive search; it comes within a tenth of one."""
    sizes = [size for size, count in weighted_sizes for _ in range(count)]
    possible = row_lengths(1536, max(sizes))
    chosen = tuple(choose_buckets(np.asarray(sizes), max_buckets, possible).tolist())
    assert len(chosen) <= max_buckets and chosen[-1] >= max(sizes)
    weights = {size: sizes.count(size) for size in set(sizes)}

    def cost(lengths: tuple[int, ...]) -> float:
        return 4096 * len(lengths) + sum(
            count * (padded_cost([size], lengths) - 4096 * len(lengths)) for size, count in weights.items()
        )

    best = min(cost(c) for k in range(max_buckets) for c in itertools.combinations(possible.tolist(), k + 1))
    assert cost(chosen) <= 1.1 * best


def test_one_length_suffices_where_all_pieces_are_alike():
    sizes = np.full(100, 1610)
    assert choose_buckets(sizes, 4, row_lengths(16_384, 1610)).tolist() == [1664]


def test_few_short_pieces_do_not_earn_a_compilation():
    few = np.asarray([1600] * 100 + [100] * 2)
    many = np.asarray([1600] * 100 + [100] * 2000)
    assert len(choose_buckets(few, 4, row_lengths(16_384, 1600))) == 1
    assert choose_buckets(many, 4, row_lengths(16_384, 1600)).tolist()[-1] == 1664
