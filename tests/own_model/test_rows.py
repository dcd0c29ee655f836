"""What packed and plain models are fed: segments as MaxText has them, and one text a row."""

from __future__ import annotations

import numpy as np
import pytest

from brb_jax.scoring.loglikelihood import inputs
from brb_jax.tokens.packing import PlanError, plan
from brb_jax.tokens.request import Request


def requests(*lengths: int) -> list[Request]:
    """Requests of so many inputs, of which the last two predict scored tokens; token = 10 · request + position."""
    return [
        Request(i, 0, np.arange(10 * i, 10 * i + n + 1, dtype=np.int32), max(1, n - 1)) for i, n in enumerate(lengths)
    ]


def test_segments_of_a_packed_row_worked_out_by_hand():
    """Three texts, two of them of one token; segments count from 1, positions restart, padding is 0."""
    batch = plan(requests(3, 1, 1), batch_tokens=8, sharing="none", buckets=[8]).batch(0)
    tokens, positions, segments = inputs(batch, "packed")
    assert tokens.tolist() == [[0, 1, 2, 10, 20, 0, 0, 0]]
    assert positions.tolist() == [[0, 1, 2, 0, 0, 0, 0, 0]]
    assert segments.tolist() == [[1, 1, 1, 2, 3, 0, 0, 0]]
    assert segments.dtype == np.int32


def test_rows_that_fill_up_a_batch_are_all_padding():
    batch = plan(requests(3), batch_tokens=8, sharing="none", buckets=[8], row_multiple=2).batch(0)
    assert batch.segment_ids.tolist() == [[1, 1, 1, 0, 0, 0, 0, 0], [0] * 8]


def test_segments_are_what_the_tree_rule_isolates():
    """Independently: two slots are in one segment if and only if the later sees the earlier."""
    rng = np.random.default_rng(0)
    result = plan(requests(*rng.integers(1, 40, 60).tolist()), batch_tokens=256, sharing="none", max_buckets=2)
    for index in range(result.num_batches):
        batch = result.batch(index)
        slots = np.arange(batch.tokens_BT.shape[1])
        sees = (slots <= slots[:, None]) & (slots[:, None] < batch.subtree_end_BT[:, None, :])
        segments = batch.segment_ids
        same = (slots <= slots[:, None]) & (segments[:, :, None] == segments[:, None, :])
        content = segments > 0
        np.testing.assert_array_equal(sees[content], same[content])
        assert not (sees & ~content[:, None, :])[content].any()


def test_one_text_a_row():
    result = plan(requests(5, 90, 130, 7, 3), batch_tokens=512, sharing="none", alone=True)
    seen = []
    for index in range(result.num_batches):
        batch = result.batch(index)
        (tokens,) = inputs(batch, "plain")
        for row in range(len(tokens)):
            owners = set(batch.requests_BS[row].tolist()) - {-1}
            assert len(owners) <= 1
            for owner in owners:
                seen.append(owner)
                n = len(result.forest.requests[owner].ids) - 1
                assert tokens[row].tolist() == list(range(10 * owner, 10 * owner + n)) + [0] * (tokens.shape[1] - n)
                assert batch.positions_BT[row, :n].tolist() == list(range(n))
    assert sorted(seen) == [0, 1, 2, 3, 4]


def test_rows_are_no_longer_than_the_model_takes():
    """A limit of 200 is no multiple of 128, and a row of 256 would hold more slots than a table of positions."""
    result = plan(requests(200, 10, 150), batch_tokens=4096, sharing="none", alone=True, longest_row=200)
    assert max(bucket.T for bucket in result.buckets) == 200
    with pytest.raises(PlanError, match=r"--buckets: a row of 256 is longer than the model takes \(200 tokens\)"):
        plan(requests(10), batch_tokens=4096, sharing="none", buckets=[256], alone=True, longest_row=200)


def test_row_lengths_suit_texts_that_are_alone():
    """Ten texts of 100 would fit two rows of 512 if they could share one; alone, rows of 128 are the least."""
    result = plan(requests(*[100] * 10), batch_tokens=512, sharing="none", alone=True)
    assert [bucket.T for bucket in result.buckets] == [128]
