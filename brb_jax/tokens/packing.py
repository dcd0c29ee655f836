"""Requests ─► plan: which pieces of the prefix forest share a row, and which rows a batch.

A plan is a function of the requests and the settings alone, so every process of a pod, and a resumed run,
makes the same one. It holds a few integers a row; arrays are made when a batch is asked for.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from brb_jax.tokens.buckets import choose_buckets, piece_costs, row_cost, row_lengths
from brb_jax.tokens.forest import Forest, Piece, Sharing, build_forest, cut, lay_out
from brb_jax.tokens.request import Request
from brb_jax.tokens.rows import Batch

# Scored positions are padded to a multiple of this.
_SCORED_STEP = 8

# Requests that `Plan.some_ids` looks at.
_SAMPLED_REQUESTS = 64


class PlanError(ValueError):
    """Requests that the row lengths asked for cannot hold."""


@dataclasses.dataclass(frozen=True)
class Bucket:
    """All rows of one length. Its batches have one shape, so it is compiled for once.

    Attributes:
        T: Slots of a row.
        B: Rows of a batch.
        S: Scored positions of a row, padding included.
        rows: How many rows hold requests.
    """

    T: int
    B: int
    S: int
    rows: int

    @property
    def num_batches(self) -> int:
        return math.ceil(self.rows / self.B)


@dataclasses.dataclass(frozen=True)
class Work:
    """What a plan computes, in tokens, against what it would without sharing.

    Attributes:
        option_tokens: Inputs of one pass per option.
        tree_tokens: Distinct inputs of the prefix forest.
        slots: Slots computed: tree tokens, shared ones that are computed again, and padding.
    """

    option_tokens: int
    tree_tokens: int
    slots: int


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """The batches of a run, longest rows first. Make one with `plan`.

    Attributes:
        buckets: By descending row length.
        work: What it all costs.
        forest: The requests as prefix trees.
        rows: The pieces in each row; the rows of `buckets[0]` first.
    """

    buckets: tuple[Bucket, ...]
    work: Work
    forest: Forest
    rows: tuple[tuple[Piece, ...], ...]

    @property
    def num_batches(self) -> int:
        return sum(bucket.num_batches for bucket in self.buckets)

    def request_indices(self, index: int) -> list[int]:
        """The requests scored in a batch, ascending, without making its arrays."""
        _, rows = self._find(index)
        leaves = [self.forest.order[piece.start : piece.stop] for row in rows for piece in row]
        return sorted(int(r) for r in np.concatenate(leaves))

    def num_tokens(self, index: int) -> int:
        """Inputs a batch computes, padding not counted."""
        _, rows = self._find(index)
        return int(sum(self.forest.sizes(pieces).sum() for pieces in rows))

    def some_ids(self) -> np.ndarray:
        """The distinct ids of the first requests, two at least: what a text of this run is made of."""
        requests = self.forest.requests[:_SAMPLED_REQUESTS]
        ids = np.unique(np.concatenate([request.ids for request in requests]))
        return ids if len(ids) > 1 else np.arange(2, dtype=np.int32)

    def batch(self, index: int) -> Batch:
        """Makes the arrays of a batch.

        Args:
            index: `0 ≤ index < num_batches`.
        """
        bucket, rows = self._find(index)
        shape_BT, shape_BS = (bucket.B, bucket.T), (bucket.B, bucket.S)
        tokens_BT, positions_BT = np.zeros(shape_BT, np.int32), np.zeros(shape_BT, np.int32)
        subtree_end_BT = np.tile(np.arange(1, bucket.T + 1, dtype=np.int32), (bucket.B, 1))
        slots_BS, targets_BS = np.zeros(shape_BS, np.int32), np.zeros(shape_BS, np.int32)
        requests_BS = np.full(shape_BS, -1, np.int32)
        for b, pieces in enumerate(rows):
            row = lay_out(self.forest, pieces, bucket.T)
            tokens_BT[b], positions_BT[b], subtree_end_BT[b] = (
                row.tokens_T,
                row.positions_T,
                row.subtree_end_T,
            )
            scored = len(row.slots_S)
            slots_BS[b, :scored], targets_BS[b, :scored] = row.slots_S, row.targets_S
            requests_BS[b, :scored] = row.requests_S
        return Batch(index, tokens_BT, positions_BT, subtree_end_BT, slots_BS, targets_BS, requests_BS)

    def _find(self, index: int) -> tuple[Bucket, tuple[tuple[Piece, ...], ...]]:
        """The bucket of a batch, and its rows."""
        if not 0 <= index < self.num_batches:
            raise IndexError(f"batch {index} of a plan of {self.num_batches}")
        first_row = 0
        for bucket in self.buckets:
            if index < bucket.num_batches:
                start = first_row + index * bucket.B
                return bucket, self.rows[start : min(start + bucket.B, first_row + bucket.rows)]
            index -= bucket.num_batches
            first_row += bucket.rows
        raise AssertionError("the buckets' batches are those counted")


def plan(
    requests: Sequence[Request],
    *,
    batch_tokens: int,
    sharing: Sharing = "tree",
    buckets: Sequence[int] | None = None,
    max_buckets: int = 4,
    row_multiple: int = 1,
    alone: bool = False,
    longest_row: int | None = None,
    length_class: Callable[[int], int] = lambda length: 0,
    name: Callable[[Request], str] = lambda request: f"case #{request.case_index}, option #{request.option_index}",
) -> Plan:
    """Plans the batches of a run.

    Args:
        requests: All requests of the run.
        batch_tokens: Slots a batch should have at most on each shard; a longer row is alone on its shard. Rows
            that hold several pieces are no longer than this.
        sharing: Which requests may share inputs; see `build_forest`.
        buckets: The row lengths to use; by default, at most `max_buckets` are chosen that suit the requests.
        max_buckets: The number of row lengths, so the number of compilations.
        row_multiple: Rows of a batch are a multiple of this: the number of shards of the mesh's data axes.
        alone: Whether every piece has a row to itself, for models that cannot keep two apart.
        longest_row: No row has more slots, for models that cannot take more, padding included.
        length_class: The model's; see `build_forest`.
        name: How an error names a request.

    Raises:
        PlanError: A request is longer than the longest of `buckets`, or a bucket than `longest_row`.
    """
    forest = build_forest(requests, sharing, length_class)
    if not len(requests):
        return Plan((), Work(0, 0, 0), forest, ())
    if buckets is not None:
        _check_longest(forest, max(buckets), name)
        if longest_row is not None and max(buckets) > longest_row:
            raise PlanError(
                f"--buckets: a row of {max(buckets)} is longer than the model takes ({longest_row} tokens)."
            )
        possible = np.unique(buckets)
    else:
        possible = row_lengths(batch_tokens, int(forest.lengths.max()))
        if longest_row is not None:
            possible = np.unique(np.minimum(possible, longest_row))
    pieces = cut(forest, piece_costs(possible))
    sizes = forest.sizes(pieces)
    lengths = possible if buckets is not None else choose_buckets(sizes, max_buckets, possible, alone)
    # Longest first: what does not fit in memory shows at once.
    contents = sorted(_pack(sizes, lengths, alone).items(), reverse=True)
    rows = [[tuple(pieces[p] for p in sorted(row)) for row in filled] for _, filled in contents]
    for bucket_rows in rows:
        # In the order of the dataset as far as it goes: results come in as a reader expects them.
        bucket_rows.sort(key=lambda row: min(forest.order[p.start : p.stop].min() for p in row))
    filled_buckets = tuple(
        _bucket(forest, length, bucket_rows, max(1, batch_tokens // length) * row_multiple, row_multiple)
        for (length, _), bucket_rows in zip(contents, rows, strict=True)
    )
    work = Work(
        option_tokens=int(forest.lengths.sum()),
        tree_tokens=int((forest.lengths - forest.shared).sum()),
        slots=sum(bucket.T * bucket.B * bucket.num_batches for bucket in filled_buckets),
    )
    return Plan(filled_buckets, work, forest, tuple(itertools.chain(*rows)))


def _bucket(forest: Forest, length: int, rows: Sequence[Sequence[Piece]], most: int, row_multiple: int) -> Bucket:
    """The bucket of these rows, in as few batches of at most `most` rows as will do, equally filled."""
    scored = max(
        sum(forest.requests[r].num_scored for p in row for r in forest.order[p.start : p.stop]) for row in rows
    )
    batches = math.ceil(len(rows) / most)
    return Bucket(
        T=length,
        B=_round_up(math.ceil(len(rows) / batches), row_multiple),
        S=_round_up(scored, _SCORED_STEP),
        rows=len(rows),
    )


def _round_up(number: int, multiple: int) -> int:
    return math.ceil(number / multiple) * multiple


def _check_longest(forest: Forest, longest: int, name: Callable[[Request], str]) -> None:
    leaf = int(np.argmax(forest.lengths))
    if forest.lengths[leaf] > longest:
        request = forest.requests[forest.order[leaf]]
        raise PlanError(
            f"{name(request)} takes {forest.lengths[leaf]} slots, but the longest row of --buckets has {longest}. "
            "Add a longer one, or leave --buckets out."
        )


def _pack(sizes: np.ndarray, lengths: np.ndarray, alone: bool) -> dict[int, list[list[int]]]:
    """Packs pieces into rows by best fit, largest first; each in a row of its own if they are to be `alone`.

    A piece goes to the fullest open row that holds it. Where none does, a row is opened of the length that is
    cheapest for pieces of this size. Afterwards each row takes the shortest length that holds its content.

    Returns:
        For each length used, its rows; a row is a list of indices of pieces.
    """
    costs = row_cost(lengths)
    smallest = int(sizes.min())
    rows: list[list[int]] = []
    open_rows: list[tuple[int, int]] = []  # (slots left, row), ascending
    for piece in np.argsort(-sizes, kind="stable"):
        size = int(sizes[piece])
        position = bisect.bisect_left(open_rows, (size, -1))
        if position < len(open_rows):
            left, row = open_rows.pop(position)
            rows[row].append(int(piece))
        else:
            fits = lengths // size
            shares = np.where(fits > 0, costs / np.maximum(fits, 1), np.inf)
            left, row = int(lengths[np.argmin(shares)]), len(rows)
            rows.append([int(piece)])
        if left - size >= smallest and not alone:
            bisect.insort(open_rows, (left - size, row))
    by_length: dict[int, list[list[int]]] = {}
    for row_pieces in rows:
        length = int(lengths[np.searchsorted(lengths, sizes[row_pieces].sum())])
        by_length.setdefault(length, []).append(row_pieces)
    return by_length
