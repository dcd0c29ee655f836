"""Every slot of a plan sees exactly its own past, whatever the sharing, row lengths and packing."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brb_jax.tokens.buckets import row_cost
from brb_jax.tokens.forest import Piece, build_forest, cut, lay_out
from brb_jax.tokens.packing import Plan, plan
from brb_jax.tokens.request import Request
from brb_jax.tokens.rows import Batch

SHARINGS = ("tree", "case", "none")


def request(case_index: int, option_index: int, ids: list[int] | str, scored_from: int) -> Request:
    ids = [ord(character) for character in ids] if isinstance(ids, str) else ids
    return Request(case_index, option_index, np.asarray(ids, np.int32), scored_from)


@st.composite
def forests(draw: st.DrawFn) -> list[Request]:
    """Requests over three tokens, so that prefixes collide within and between cases, and inputs repeat."""
    requests = []
    for case_index in range(draw(st.integers(1, 6))):
        context = draw(st.lists(st.integers(0, 2), max_size=12))
        for option_index in range(draw(st.integers(1, 4))):
            tail = draw(st.lists(st.integers(0, 2), min_size=2, max_size=5))
            ids = context + tail
            scored_from = draw(st.integers(max(1, len(context)), len(ids) - 1))
            requests.append(request(case_index, option_index, ids, scored_from))
    return requests


def check_row(tokens_T, positions_T, subtree_end_T, entries, requests: list[Request]) -> None:
    """Compares a row with the definition: what a slot sees, in order, is the past of what it predicts."""
    slots = np.arange(len(tokens_T))
    used = set()
    for slot, target, index in entries:
        visible = slots[(slots <= slot) & (slot < subtree_end_T)]
        ids = requests[index].ids
        assert list(tokens_T[visible]) == list(ids[: len(visible)])
        assert list(positions_T[visible]) == list(range(len(visible)))
        assert target == ids[len(visible)]
        assert visible[-1] == slot
        used.update(visible.tolist())
    for slot in set(slots.tolist()) - used:
        # Nothing scored depends on it, so it is padding.
        assert subtree_end_T[slot] == slot + 1
        assert tokens_T[slot] == positions_T[slot] == 0
        assert not [j for j in range(slot) if slot < subtree_end_T[j]]


def check_plan(result: Plan, requests: list[Request], row_multiple: int = 1) -> None:
    seen: dict[tuple[int, int], int] = {}
    for index in range(result.num_batches):
        batch = result.batch(index)
        assert batch.index == index
        assert batch.request_indices == result.request_indices(index)
        assert len(batch.tokens_BT) % row_multiple == 0
        for b in range(len(batch.tokens_BT)):
            entries = entries_of(batch, b)
            check_row(batch.tokens_BT[b], batch.positions_BT[b], batch.subtree_end_BT[b], entries, requests)
            for slot, _, request_index in entries:
                key = (request_index, int(batch.positions_BT[b, slot]) + 1)
                assert key not in seen
                seen[key] = index * 10_000 + b
    wanted = {(r, i) for r, q in enumerate(requests) for i in range(q.scored_from, len(q.ids))}
    assert set(seen) == wanted
    rows_of = [{row for (r, _), row in seen.items() if r == index} for index in range(len(requests))]
    assert all(len(rows) == 1 for rows in rows_of)


def entries_of(batch: Batch, b: int) -> list[tuple[int, int, int]]:
    filled = batch.requests_BS[b] >= 0
    assert not batch.slots_BS[b][~filled].any() and not batch.targets_BS[b][~filled].any()
    columns = (batch.slots_BS[b], batch.targets_BS[b], batch.requests_BS[b])
    return list(zip(*(column[filled].tolist() for column in columns), strict=True))


@settings(max_examples=200, deadline=None)
@given(forests(), st.sampled_from(SHARINGS), st.data())
def test_every_slot_sees_its_own_past_and_nothing_else(requests, sharing, data):
    longest = max(len(r.ids) - 1 for r in requests)
    # Row lengths near the longest request, so that trees are cut and rows hold several pieces.
    buckets = [*data.draw(st.lists(st.integers(1, 40), max_size=3)), longest + data.draw(st.integers(0, 12))]
    row_multiple = data.draw(st.sampled_from((1, 2, 3)))
    result = plan(
        requests,
        batch_tokens=data.draw(st.integers(1, 200)),
        sharing=sharing,
        buckets=buckets,
        row_multiple=row_multiple,
    )
    check_plan(result, requests, row_multiple)
    assert {bucket.T for bucket in result.buckets} <= set(buckets)
    assert result.work.tree_tokens <= result.work.slots


@settings(max_examples=50, deadline=None)
@given(forests(), st.sampled_from(SHARINGS))
def test_chosen_buckets(requests, sharing):
    result = plan(requests, batch_tokens=512, sharing=sharing, max_buckets=2)
    check_plan(result, requests)
    assert len(result.buckets) <= 2


@settings(max_examples=100, deadline=None)
@given(forests(), st.sampled_from(SHARINGS), st.sampled_from((lambda length: length > 7, lambda length: length)))
def test_a_tree_holds_requests_of_one_length_class(requests, sharing, length_class):
    """So the depth of a slot's tree tells a model the class of every request the slot belongs to."""
    result = plan(requests, batch_tokens=64, sharing=sharing, length_class=length_class)
    check_plan(result, requests)
    for batch in map(result.batch, range(result.num_batches)):
        for b, positions_T in enumerate(batch.positions_BT):
            for slot, _, index in entries_of(batch, b):
                start = max(root for root in range(slot + 1) if positions_T[root] == 0)
                end = min([root for root in range(slot + 1, len(positions_T)) if positions_T[root] == 0], default=None)
                depth = positions_T[start:end].max() + 1
                assert length_class(depth) == length_class(len(requests[index].ids) - 1)


def test_the_design_s_row():
    """The literal row of the design: a context, two options and the next case."""
    requests = [request(0, 0, "abcdefg.", 5), request(0, 1, "abcdehij.", 5), request(1, 0, "k.", 1)]
    forest = build_forest(requests, "tree")
    row = lay_out(forest, [Piece(0, 2), Piece(2, 3)], 12)
    assert "".join(map(chr, row.tokens_T[:11])) == "abcdefghijk"
    assert row.positions_T.tolist() == [0, 1, 2, 3, 4, 5, 6, 5, 6, 7, 0, 0]
    assert row.subtree_end_T.tolist() == [10, 10, 10, 10, 10, 7, 7, 10, 10, 10, 11, 12]
    assert row.slots_S.tolist() == [4, 5, 6, 4, 7, 8, 9, 10]
    assert "".join(map(chr, row.targets_S)) == "fg.hij.."
    assert row.requests_S.tolist() == [0, 0, 0, 1, 1, 1, 1, 2]


def brute_force_trie_size(requests: list[Request]) -> int:
    return len({tuple(r.ids[:depth]) for r in requests for depth in range(1, len(r.ids))})


@settings(max_examples=100, deadline=None)
@given(forests())
def test_the_forest_holds_each_distinct_prefix_once(requests):
    result = plan(requests, batch_tokens=4096, sharing="tree")
    assert result.work.tree_tokens == brute_force_trie_size(requests)
    cases = {r.case_index for r in requests}
    by_case = sum(brute_force_trie_size([r for r in requests if r.case_index == c]) for c in cases)
    assert plan(requests, batch_tokens=4096, sharing="case").work.tree_tokens == by_case
    option_tokens = sum(len(r.ids) - 1 for r in requests)
    assert plan(requests, batch_tokens=4096, sharing="none").work.tree_tokens == option_tokens
    assert result.work.option_tokens == option_tokens


def test_requests_longer_than_a_first_sort_key_share_all_they_can():
    rng = np.random.default_rng(0)
    context = rng.integers(0, 2**31 - 1, 3000).tolist()
    lengths = (255, 256, 257, 767, 768, 769, 2999)
    requests = [request(i, 0, [*context[:n], *tail], n) for i, n in enumerate(lengths) for tail in ((7, 7), (9, 7))]
    rng.shuffle(requests)
    assert plan(requests, batch_tokens=8192).work.tree_tokens == brute_force_trie_size(requests)


@settings(max_examples=100, deadline=None)
@given(forests(), st.data())
def test_cuts_are_the_cheapest_partition(requests, data):
    """Against all ways to split the sorted leaves of each tree, at any price that rises with a piece's size."""
    requests = requests[:9]
    forest = build_forest(requests, "tree")
    longest = int(forest.lengths.max())
    rises = st.floats(0, 10, allow_subnormal=False)
    prices = np.cumsum(data.draw(st.lists(rises, min_size=longest + 1, max_size=longest + 21)))

    @functools.cache
    def trie_size(start: int, stop: int) -> int:
        return brute_force_trie_size([requests[i] for i in forest.order[start:stop]])

    def cost(bounds: tuple[int, ...]) -> float:
        sizes = [trie_size(a, b) for a, b in itertools.pairwise(bounds)]
        return sum(prices[s] for s in sizes) if max(sizes) < len(prices) else np.inf

    n = len(requests)
    roots = {leaf for leaf in range(n) if leaf == 0 or forest.inputs(leaf)[0] != forest.inputs(leaf - 1)[0]}
    subsets = (c for k in range(n + 1) for c in itertools.combinations(range(n), k))
    best = min(cost((*c, n)) for c in subsets if roots <= set(c))
    pieces = cut(forest, prices)
    assert [p.start for p in pieces] == [0, *(p.stop for p in pieces[:-1])] and pieces[-1].stop == n
    assert cost((0, *(p.stop for p in pieces))) == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert forest.sizes(pieces).tolist() == [trie_size(p.start, p.stop) for p in pieces]


def test_a_long_tree_is_cut_where_little_is_shared():
    """Two contexts that share only BOS part ways; options of one context stay together."""
    rng = np.random.default_rng(0)
    contexts = [[1, *rng.integers(2, 100, 500).tolist()] for _ in range(2)]
    requests = [request(c, o, [*contexts[c], 100 + o, 5, 6], 501) for c in range(2) for o in range(4)]
    pieces = cut(build_forest(requests, "tree"), row_cost(np.arange(4096)))
    assert [(p.start, p.stop) for p in pieces] == [(0, 4), (4, 8)]


def test_options_that_are_prefixes_of_each_other():
    """` new`, ` new york`, ` newer`: one ends inside the other's branch and adds no slot."""
    requests = [request(0, 0, "c new", 1), request(0, 1, "c new york", 1), request(0, 2, "c newer", 1)]
    result = plan(requests, batch_tokens=128)
    assert result.work.tree_tokens == len("c new yor") + len("e")
    check_plan(result, requests)


@pytest.mark.parametrize("row_multiple", [1, 2, 3, 8])
@pytest.mark.parametrize("cases", [1, 5, 7, 22])
def test_every_case_once_over_any_number_of_shards(cases, row_multiple):
    requests = [request(c, o, [c + 3] * 100 + [o, 1], 100) for c in range(cases) for o in range(3)]
    result = plan(requests, batch_tokens=512, row_multiple=row_multiple)
    indices = [i for b in range(result.num_batches) for i in result.request_indices(b)]
    assert sorted(indices) == list(range(3 * cases))
    (bucket,) = result.buckets
    assert bucket.B % row_multiple == 0
    assert bucket.rows + row_multiple > bucket.B
    check_plan(result, requests, row_multiple)


def test_rows_do_not_depend_on_batch_shape():
    """So neither the mesh nor the batch size can change a score."""
    requests = [request(c, o, [c % 5] * (20 + c) + [o, 1], 20 + c) for c in range(40) for o in range(3)]
    rows = {plan(requests, batch_tokens=2048, row_multiple=m).rows for m in (1, 2, 8)}
    assert len(rows) == 1


def test_fifty_lengths_few_shapes():
    rng = np.random.default_rng(0)
    requests = [request(c, 0, rng.integers(0, 9, 40 * (c + 1)).tolist(), 40 * c + 39) for c in range(50)]
    result = plan(requests, batch_tokens=8192, max_buckets=4)
    batches = [result.batch(i) for i in range(result.num_batches)]
    shapes = {(batch.tokens_BT.shape, batch.slots_BS.shape) for batch in batches}
    assert len(shapes) == len(result.buckets) <= 4
    assert shapes == {((b.B, b.T), (b.B, b.S)) for b in result.buckets}
    assert all(bucket.T % 128 == 0 and bucket.S % 8 == 0 for bucket in result.buckets)
    lengths = [batch.tokens_BT.shape[1] for batch in batches]
    assert lengths == sorted(lengths, reverse=True)
    one = plan(requests, batch_tokens=8192, max_buckets=1)
    assert len(one.buckets) == 1
    assert result.work.slots < one.work.slots


def test_no_requests():
    result = plan([], batch_tokens=1024)
    assert result.num_batches == 0
    assert result.buckets == ()
    assert result.work.slots == 0
    with pytest.raises(IndexError, match="batch 0 of a plan of 0"):
        result.batch(0)


def test_a_request_longer_than_every_bucket_is_named():
    requests = [request(0, 0, [1, 2], 1), request(7, 2, list(range(300)), 290)]
    with pytest.raises(ValueError, match=r"^case #7, option #2 takes 299 slots.*--buckets has 256"):
        plan(requests, batch_tokens=1024, buckets=[128, 256])


def test_a_plan_is_a_function_of_its_arguments():
    requests = [request(c, o, [c % 4] * 30 + [o, c, 1], 30) for c in range(30) for o in range(3)]
    first, second = (plan(list(requests), batch_tokens=512) for _ in range(2))
    assert first.rows == second.rows and first.buckets == second.buckets
    for i in range(first.num_batches):
        np.testing.assert_array_equal(first.batch(i).tokens_BT, second.batch(i).tokens_BT)
