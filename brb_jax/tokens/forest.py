"""The prefix forest of all requests, its cuts, and its layout in rows.

Sorted by their input ids, the requests are the leaves of the forest from left to right, and the number of ids
each shares with the one before it says all there is to know of the forest's shape. Any run of consecutive
leaves is a *piece*: laid out in depth-first preorder it holds every id of its first leaf and, of each further
one, the ids it does not share with its predecessor. What a piece shares with the piece before it is computed
again.

Knows nothing of row lengths and batches.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from brb_jax.tokens.request import Request
from brb_jax.tokens.rows import Row

Sharing = Literal["tree", "case", "none"]

# Ids compared at first when sorting. Requests that agree so far are compared further, twice as many each time, so
# that the sort holds keys of what tells requests apart and not a copy of a million-token context per request.
_FIRST_KEY = 256


@dataclasses.dataclass(frozen=True)
class Piece:
    """The leaves `start:stop` of a forest, laid out together."""

    start: int
    stop: int


@dataclasses.dataclass(frozen=True, eq=False)
class Forest:
    """Requests as the leaves of prefix trees, from left to right.

    Attributes:
        requests: In the order given.
        order: int64 `[n]`; the index in `requests` of each leaf.
        lengths: int64 `[n]`; the number of inputs of each leaf, `len(ids) - 1`.
        shared: int64 `[n]`; how many inputs a leaf shares with the leaf before it; 0 where a tree begins.
    """

    requests: Sequence[Request]
    order: np.ndarray
    lengths: np.ndarray
    shared: np.ndarray

    def inputs(self, leaf: int) -> np.ndarray:
        return self.requests[self.order[leaf]].ids[:-1]

    def sizes(self, pieces: Sequence[Piece]) -> np.ndarray:
        """int64 `[len(pieces)]`; the slots each piece takes."""
        starts = np.asarray([piece.start for piece in pieces], np.int64)
        stops = np.asarray([piece.stop for piece in pieces], np.int64)
        new = np.append(0, np.cumsum(self.lengths - self.shared))
        return new[stops] - new[starts] + self.shared[starts]


def build_forest(
    requests: Sequence[Request], sharing: Sharing, length_class: Callable[[int], int] = lambda length: 0
) -> Forest:
    """Sorts requests by their inputs and finds what neighbours share.

    Args:
        requests: All requests of a run.
        sharing: Which requests may share: any (`tree`), those of the same case (`case`), or none.
        length_class: Of a number of inputs. Requests of different classes never share: the model computes their
            common inputs differently (`DecoderConfig.length_class`).
    """
    indices = list(range(len(requests)))
    lengths = np.asarray([len(request.ids) - 1 for request in requests], np.int64)
    if sharing == "none":
        return Forest(requests, np.arange(len(requests)), lengths, np.zeros(len(requests), np.int64))
    classes = [length_class(int(length)) for length in lengths]

    def group_of(i: int) -> tuple[int, int]:
        return (requests[i].case_index if sharing == "case" else 0, classes[i])

    groups = [list(group) for _, group in itertools.groupby(sorted(indices, key=group_of), key=group_of)]
    order: list[int] = []
    shared: list[int] = []
    for group in groups:
        ordered = _sorted_by_inputs(requests, group, 0, _FIRST_KEY)
        shared += [0] * min(1, len(ordered))
        shared += [_common_prefix(requests[a], requests[b]) for a, b in itertools.pairwise(ordered)]
        order += ordered
    order_n = np.asarray(order, np.int64)
    return Forest(requests, order_n, lengths[order_n], np.asarray(shared, np.int64))


def _sorted_by_inputs(requests: Sequence[Request], indices: list[int], start: int, width: int) -> list[int]:
    """Sorts requests that agree on `ids[:start]`.

    By the bytes of the ids as they lie in memory: not numerical order, but as good a total order of tokens as
    any, and all that is asked is that a prefix precedes what it is a prefix of, and that equal beginnings
    meet.
    """
    keys = {i: requests[i].ids[:-1][start : start + width].tobytes() for i in indices}
    ordered = []
    for key, group in itertools.groupby(sorted(indices, key=keys.__getitem__), key=keys.__getitem__):
        equal = list(group)
        undecided = len(equal) > 1 and len(key) == width * requests[equal[0]].ids.itemsize
        ordered += _sorted_by_inputs(requests, equal, start + width, 2 * width) if undecided else equal
    return ordered


def _common_prefix(a: Request, b: Request) -> int:
    length = min(len(a.ids), len(b.ids)) - 1
    differs = a.ids[:length] != b.ids[:length]
    first = int(differs.argmax())
    return first if differs[first] else length


def cut(forest: Forest, cost_of_slots: np.ndarray) -> list[Piece]:
    """Cuts the forest into pieces at the least total cost.

    Trees are cut one by one; which pieces share a row is not decided here. Fewer, larger pieces compute less
    shared context twice; smaller ones attend over less. Leaves are in line, so this is the partition of a
    line into segments, solved exactly by dynamic programming over the last segment.

    Args:
        forest: No leaf longer than a piece may be.
        cost_of_slots: float64 `[max_slots + 1]`; the cost of a piece of each size. No piece is larger.
    """
    pieces: list[Piece] = []
    # Leaves with the inputs of their predecessor take no slots; a cut there can only cost.
    atoms = np.flatnonzero(forest.lengths > forest.shared)
    tree_starts = np.flatnonzero(forest.shared[atoms] == 0)
    # Slots of the piece from atom i to atom j: reached[j] - before[i].
    reached = np.cumsum(forest.lengths - forest.shared)[atoms]
    before = reached - forest.lengths[atoms]
    bounds = np.append(atoms, len(forest.order))
    for first, end in itertools.pairwise([*tree_starts, len(atoms)]):
        for i, j in _cheapest_segments(reached[first:end], before[first:end], cost_of_slots):
            pieces.append(Piece(int(bounds[first + i]), int(bounds[first + j])))
    return pieces


def _cheapest_segments(reached: np.ndarray, before: np.ndarray, cost_of_slots: np.ndarray) -> list[tuple[int, int]]:
    """Segments `(i, j)`, j exclusive, of sizes `reached[j - 1] - before[i]`."""
    if len(reached) == 1:
        return [(0, 1)]
    max_slots = len(cost_of_slots) - 1
    lowest = np.searchsorted(before, reached - max_slots)  # `before` ascends: dropping a leaf adds no slots
    best = np.zeros(len(reached) + 1)
    last_start = np.zeros(len(reached), np.int64)
    for j in range(len(reached)):
        low = lowest[j]
        costs = best[low : j + 1] + cost_of_slots[reached[j] - before[low : j + 1]]
        cheapest = costs.argmin()
        last_start[j], best[j + 1] = low + cheapest, costs[cheapest]
    segments = []
    stop = len(reached)
    while stop:
        start = int(last_start[stop - 1])
        segments.append((start, stop))
        stop = start
    return segments[::-1]


def lay_out(forest: Forest, pieces: Sequence[Piece], length: int) -> Row:
    """Lays pieces out one behind the other in a row of `length` slots, padding behind them."""
    tokens_T = np.zeros(length, np.int32)
    positions_T = np.zeros(length, np.int32)
    subtree_end_T = np.arange(1, length + 1, dtype=np.int32)
    scored: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    slot = 0
    for piece in pieces:
        leaves = range(piece.start, piece.stop)
        deepest = int(forest.lengths[piece.start : piece.stop].max())
        slot_at_depth = np.zeros(deepest, np.int32)  # on the branch of the present leaf
        branches = []
        for leaf in leaves:
            shared = 0 if leaf == piece.start else int(forest.shared[leaf])
            depths = np.arange(shared, forest.lengths[leaf], dtype=np.int32)
            here = slice(slot, slot + len(depths))
            tokens_T[here] = forest.inputs(leaf)[shared:]
            positions_T[here] = depths
            slot_at_depth[depths] = np.arange(here.start, here.stop)
            request = int(forest.order[leaf])
            ids, scored_from = forest.requests[request].ids, forest.requests[request].scored_from
            predicting = slot_at_depth[scored_from - 1 : len(ids) - 1].copy()
            scored.append((predicting, ids[scored_from:], np.full(len(predicting), request, np.int32)))
            branches.append((here, shared, len(ids) - 1))
            slot = here.stop
        end_at_depth = np.full(deepest, slot, np.int32)
        for here, shared, depth in reversed(branches):
            subtree_end_T[here] = end_at_depth[shared:depth]
            # What the leaf before does not share with this one ends where this one's own slots begin.
            end_at_depth[shared:] = here.start
    slots_S, targets_S, requests_S = (np.concatenate(arrays) for arrays in zip(*scored, strict=True))
    return Row(tokens_T, positions_T, subtree_end_T, slots_S, targets_S, requests_S)
