"""Rows and batches: the arrays the model is fed, and which request each scored position belongs to.

A row of `T` slots holds pieces of the prefix forest in depth-first preorder. One integer a slot says who sees
whom:

    query slot i sees key slot j   ⇔   j ≤ i < subtree_end[j]

`subtree_end[j]` is one past the last slot of the subtree headed by slot j. The rule covers causality, shared
contexts at any depth, and the isolation of packed neighbours. Padding has `subtree_end[j] = j + 1`: it sees
itself only.
"""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
    """One row, before padding to a batch.

    Attributes:
        tokens_T: int32; 0 in padding slots.
        positions_T: int32 depth of each slot in its tree (0 at a root, restarts per branch); 0 in padding
            slots.
        subtree_end_T: int32, see the module's docstring.
        slots_S: int32; the slot whose hidden state predicts each scored token.
        targets_S: int32; the token predicted there.
        requests_S: int32; index of the request, in the list the plan was made from, that the scored token
            belongs to.
    """

    tokens_T: np.ndarray
    positions_T: np.ndarray
    subtree_end_T: np.ndarray
    slots_S: np.ndarray
    targets_S: np.ndarray
    requests_S: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Rows of one bucket, stacked. Rows that only fill up the batch are all padding.

    Attributes:
        index: Position in the plan's list of batches; the same on every process and in a resumed run.
        tokens_BT, positions_BT, subtree_end_BT: int32, as in `Row`.
        slots_BS, targets_BS: int32, as in `Row`; 0 where `requests_BS` is −1.
        requests_BS: int32; −1 where a row has fewer than S scored positions.
    """

    index: int
    tokens_BT: np.ndarray
    positions_BT: np.ndarray
    subtree_end_BT: np.ndarray
    slots_BS: np.ndarray
    targets_BS: np.ndarray
    requests_BS: np.ndarray

    @property
    def segment_ids(self) -> np.ndarray:
        """int32 `[B, T]`; which of a row's trees a slot is in, from 1 on; 0 in padding slots."""
        # A tree begins at position 0, and its last slot predicts a token: padding lies behind the last that does.
        ends_B = np.max(np.where(self.requests_BS >= 0, self.slots_BS + 1, 0), axis=1)
        content_BT = np.arange(self.tokens_BT.shape[1]) < ends_B[:, None]
        return np.where(content_BT, np.cumsum(self.positions_BT == 0, axis=1), 0).astype(np.int32)

    @property
    def request_indices(self) -> list[int]:
        """The requests scored in this batch, ascending. Every request is whole in one row of one batch."""
        return [int(r) for r in np.unique(self.requests_BS) if r >= 0]
