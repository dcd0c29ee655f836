"""Row lengths: the grid they come from, and which few of them suit a set of pieces."""

from __future__ import annotations

import numpy as np

from brb_jax.tokens.forest import attention_cost

# Row lengths are multiples of a TPU's lane count, so that no kernel has to mask the end of a row.
_STEP = 128
_STEPS_AN_OCTAVE = 8

# What compiling one more row length costs, in slots computed: some ten seconds on a laptop, where it matters
# most.
_COMPILATION_SLOTS = 4_096


def round_up(slots: int) -> int:
    """The shortest row length of the grid that holds so many slots.

    The grid is every multiple of 128 up to 2,048, and 8 lengths an octave beyond.

    >>> [round_up(n) for n in (1, 128, 1500, 2049, 100_000)]
    [128, 128, 1536, 2304, 106496]
    """
    step = _step(slots - 1)
    return -(-slots // step) * step


def round_down(slots: int) -> int:
    """The longest row length of the grid that is at most so many slots; 128 if there is none."""
    return max(_STEP, slots // _step(slots) * _step(slots))


def _step(slots: int) -> int:
    octave = 1 << max(slots, 1).bit_length() - 1
    return max(_STEP, octave // _STEPS_AN_OCTAVE)


def row_cost(lengths: np.ndarray) -> np.ndarray:
    """Cost of rows of these lengths, in units of one slot without attention."""
    return lengths + attention_cost(lengths)


def choose_buckets(sizes: np.ndarray, max_buckets: int, longest: int) -> tuple[int, ...]:
    """Chooses row lengths for pieces of these sizes so that the padded cost is small.

    A piece of size s costs its share of a row full of its like: `row_cost(T) / (T // s)` at the best of the
    lengths T chosen. Lengths are added while one more saves more than its compilation costs, then exchanged
    while that helps.

    Args:
        sizes: Slots of each piece; not empty.
        max_buckets: At most so many lengths.
        longest: No row is longer; a length of the grid, at least that of the largest piece.

    Returns:
        Lengths in ascending order; the last one holds the largest piece.
    """
    distinct, counts = np.unique(sizes, return_counts=True)
    grid = _grid(int(distinct[0]), longest)
    fits = grid[None, :] // distinct[:, None]
    costs = np.where(fits > 0, counts[:, None] * row_cost(grid) / np.maximum(fits, 1), np.inf)

    def total(columns: list[int]) -> float:
        return float(costs[:, columns].min(axis=1).sum()) + _COMPILATION_SLOTS * len(columns)

    columns = range(len(grid))
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
            return tuple(sorted(int(grid[c]) for c in chosen))
        chosen = best


def _grid(shortest: int, longest: int) -> np.ndarray:
    """Lengths of the grid from the first that holds `shortest` to the last that is at most `longest`."""
    lengths = []
    length = round_up(shortest)
    while length <= longest:
        lengths.append(length)
        length = round_up(length + 1)
    return np.asarray(lengths, np.int64)
