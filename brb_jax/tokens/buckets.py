"""Row lengths: the grid they come from, and which few of them suit a set of pieces."""

from __future__ import annotations

import numpy as np

# Row lengths are multiples of a TPU's lane count, so that no kernel has to mask the end of a row.
_STEP = 128
_STEPS_AN_OCTAVE = 8

# Slots at which attention among them costs as much as everything else the model does with them. Taken from
# parameter counts (4·D·L a pair against 2·parameters a slot) it lies between 6,000 (135M) and 60,000 (8B).
_ATTENTION_SLOTS = 16_384

# What compiling one more row length costs, in slots computed: some ten seconds on a laptop, where it matters most.
_COMPILATION_SLOTS = 4_096


def row_lengths(batch_tokens: int, longest: int) -> np.ndarray:
    """The grid: every multiple of 128 up to 2,048, and 8 lengths an octave beyond.

    Args:
        batch_tokens: The grid ends at the last length that is at most this …
        longest: … or at the first that holds so many slots, if that is more.

    >>> row_lengths(1, 600)
    array([128, 256, 384, 512, 640])
    >>> row_lengths(2600, 1)[-4:]
    array([1920, 2048, 2304, 2560])
    """
    lengths = [_STEP]
    while True:
        octave = 1 << lengths[-1].bit_length() - 1
        following = lengths[-1] + max(_STEP, octave // _STEPS_AN_OCTAVE)
        if lengths[-1] >= longest and following > batch_tokens:
            return np.asarray(lengths, np.int64)
        lengths.append(following)


def row_cost(slots: np.ndarray) -> np.ndarray:
    """Cost of rows of so many slots, in units of one slot without attention."""
    return slots + np.square(slots, dtype=np.float64) / (2 * _ATTENTION_SLOTS)


def piece_costs(lengths: np.ndarray) -> np.ndarray:
    """Cost of a piece by its size, where rows have these lengths.

    Half way between what its own slots cost and what a row to itself would: another piece may use what the row has
    left, or not.

    Args:
        lengths: Ascending.

    Returns:
        float64 `[lengths[-1] + 1]`.
    """
    sizes = np.arange(lengths[-1] + 1)
    return (row_cost(sizes) + row_cost(lengths)[np.searchsorted(lengths, sizes)]) / 2


def choose_buckets(sizes: np.ndarray, max_buckets: int, possible: np.ndarray, alone: bool = False) -> np.ndarray:
    """Chooses row lengths for pieces of these sizes, so that the padded cost is small.

    A piece of size s costs its share of a row full of its like: `row_cost(T) / (T // s)` at the best of the
    lengths T chosen. Lengths are added while one more saves more than its compilation costs, then exchanged
    while that helps.

    Args:
        sizes: Slots of each piece; not empty.
        max_buckets: At most so many lengths.
        possible: The lengths to choose among, ascending; the last one holds the largest piece.
        alone: Whether a piece has a row to itself.

    Returns:
        Lengths in ascending order; the last one holds the largest piece.
    """
    distinct, counts = np.unique(sizes, return_counts=True)
    fits = possible[None, :] // distinct[:, None]
    if alone:
        fits = np.minimum(fits, 1)
    costs = np.where(fits > 0, counts[:, None] * row_cost(possible) / np.maximum(fits, 1), np.inf)

    def total(columns: list[int]) -> float:
        return float(costs[:, columns].min(axis=1).sum()) + _COMPILATION_SLOTS * len(columns)

    columns = range(len(possible))
    chosen = [min(columns, key=lambda c: total([c]))]
    while len(chosen) < max_buckets:
        added = min(columns, key=lambda c: total([*chosen, c]))
        if total([*chosen, added]) >= total(chosen):
            break
        chosen.append(added)
    while True:
        exchanges = [[c, *chosen[:i], *chosen[i + 1 :]] for i in range(len(chosen)) for c in columns]
        best = min(exchanges, key=total)
        if total(best) >= total(chosen):
            return possible[sorted(chosen)]
        chosen = best
