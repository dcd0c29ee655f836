"""Random rows of prefix trees, and what each of their slots sees, found by walking up to the root."""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class TreeRow:
    """A row in depth-first preorder with its parents: −1 at roots and padding."""

    parent_T: np.ndarray
    position_T: np.ndarray
    subtree_end_T: np.ndarray

    def ancestors(self, slot: int) -> list[int]:
        """The slots from `slot` up to its root, itself first."""
        path = []
        while slot >= 0:
            path.append(slot)
            slot = int(self.parent_T[slot])
        return path


def random_row(rng: np.random.Generator, length: int, padding: int = 0, new_root: float = 0.02, branch: float = 0.1):
    """A row of `length` slots whose last `padding` belong to no tree."""
    parent = np.full(length, -1)
    path: list[int] = []
    for slot in range(length - padding):
        if path and rng.random() < branch:
            path = path[: rng.integers(1, len(path) + 1)]  # back up, and branch off there
        if rng.random() < new_root:
            path = []
        parent[slot] = path[-1] if path else -1
        path.append(slot)
    position, end = np.zeros(length, np.int32), np.arange(1, length + 1, dtype=np.int32)
    row = TreeRow(parent, position, end)
    for slot in range(length):
        ancestors = row.ancestors(slot)
        position[slot] = len(ancestors) - 1
        for ancestor in ancestors:
            end[ancestor] = max(end[ancestor], slot + 1)
    return row


def visible(row: TreeRow, window: int | None = None) -> np.ndarray:
    """bool `[T, T]`, query × key, by definition: a slot sees the nearest `window` slots on its way to the root."""
    T = len(row.parent_T)
    mask = np.zeros((T, T), bool)
    for slot in range(T):
        mask[slot, row.ancestors(slot)[:window]] = True
    return mask
