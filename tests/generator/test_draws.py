"""Draws: uniform enough, and promised to stay the same."""

import collections
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brb_jax.generator.draws import Draws


def test_stream_is_that_of_the_hashed_seed():
    # sha256 of "a\x1f1", by the command line: printf 'a\x1f1' | sha256sum
    digest = "839e11a421d370be28db56fde67e9aadde2f31514becf2626b521ea3b9009ef4"
    expected = random.Random(int(digest, 16))
    draws = Draws("a", 1)
    assert [draws.below(1000) for _ in range(5)] == [int(expected.random() * 1000) for _ in range(5)]


def test_seed_parts_are_kept_apart():
    def stream(*seed):
        draws = Draws(*seed)
        return [draws.below(2**40) for _ in range(3)]

    assert len({tuple(stream(*seed)) for seed in [("ab", "c"), ("a", "bc"), ("abc",), ("ab", "c", "")]}) == 4
    assert stream("ab", 1) == stream("ab", "1")


@given(st.lists(st.integers()), st.integers())
def test_shuffled_keeps_the_items(items, seed):
    assert sorted(Draws(seed).shuffled(items)) == sorted(items)


@given(st.integers(1, 20), st.data())
def test_sample_takes_different_places(n, data):
    size = data.draw(st.integers(0, n))
    taken = Draws("sample", n, size).sample(range(n), size)
    assert len(taken) == len(set(taken)) == size and set(taken) <= set(range(n))


@pytest.mark.parametrize("draw", [lambda d: d.below(4), lambda d: d.choice("abcd"), lambda d: d.sample("abcd", 2)[1]])
def test_uniform(draw):
    draws = Draws("uniform")
    counts = collections.Counter(draw(draws) for _ in range(4000))
    # Five standard deviations of a binomial(4000, 1/4).
    assert len(counts) == 4 and all(abs(count - 1000) < 5 * 27.4 for count in counts.values())
