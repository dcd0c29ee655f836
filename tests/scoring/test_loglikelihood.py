"""The scoring function: exact sums, and everything that must not change a score."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from tiny_decoders import CONFIG, logprobs, random_requests, random_values, scorer

from brb_jax.models.config import LayerKind, RotaryScaling
from brb_jax.scoring.batches import score_batches, sum_by_request
from brb_jax.scoring.loglikelihood import LogLikelihood, TokenScores, token_scores
from brb_jax.scoring.mesh import make_mesh
from brb_jax.tokens.packing import plan
from brb_jax.tokens.request import Request
from brb_jax.tokens.rows import Batch

GEMMA_LIKE = dataclasses.replace(
    CONFIG,
    norm_offset=1.0,
    post_norms=True,
    qk_norm=True,
    activation="gelu_tanh",
    embedding_scale=48**0.5,
    tie_embeddings=True,
    logit_softcap=20.0,
    layer_kinds=(LayerKind(None, 1e5, RotaryScaling("linear", 8.0)), LayerKind(5, 1e4)),
)


class TableModel(nnx.Module):
    """A toy whose next-token logits depend on the present token alone: what every score should be is known."""

    def __init__(self, logits_VV):
        self.table = nnx.Param(jnp.asarray(logits_VV, jnp.float32))

    def hidden_states(self, tokens_BT, positions_BT, subtree_end_BT):
        return self.table[...][tokens_BT]

    def logits(self, hidden_BSD):
        return hidden_BSD


def table_scorer(logits_VV) -> LogLikelihood:
    graph, state = nnx.split(TableModel(logits_VV))
    return LogLikelihood(functools.partial(nnx.merge, graph), state, len(logits_VV), make_mesh({}))


def test_sums_worked_out_by_hand():
    """Next-token probabilities in halves and eighths; options of 1, 2 and 5 tokens behind one prompt."""
    p = np.array(
        [
            [1 / 8, 1 / 8, 1 / 4, 1 / 2],
            [1 / 2, 1 / 4, 1 / 8, 1 / 8],
            [1 / 4, 1 / 4, 1 / 4, 1 / 4],
            [1 / 2, 1 / 8, 1 / 8, 1 / 4],
        ]
    )
    options = [[3], [2, 1], [3, 0, 3, 3, 1]]
    requests = [Request(0, i, np.array([1, 0, *option], np.int32), 2) for i, option in enumerate(options)]
    halvings = [1, 2 + 2, 1 + 1 + 1 + 2 + 3]
    np.testing.assert_allclose(logprobs(table_scorer(np.log(p)), requests), -np.log(2) * np.array(halvings), rtol=1e-6)


def test_greedy_is_the_argmax_of_every_scored_token():
    p = np.full((4, 4), 1.0) + np.eye(4)[[1, 2, 3, 0]]  # after i comes i + 1
    requests = [Request(0, 0, np.array([0, 1, 2], np.int32), 1), Request(0, 1, np.array([0, 1, 3], np.int32), 1)]
    log_likelihood = table_scorer(np.log(p))
    batches = plan(requests, batch_tokens=128, row_multiple=8)
    (scored,) = score_batches(log_likelihood, batches, [0])
    assert scored.greedy_R.tolist() == [True, False]
    assert scored.tokens_R.tolist() == [2, 2]


def test_padded_vocabulary_rows_count_as_in_the_reference():
    """All real logits negative, 28 padded rows of zero: they stay in the denominator and are what is greedy."""
    logits = np.zeros((128, 128))
    logits[:, :100] = -np.linspace(1, 3, 100)
    requests = [Request(0, 0, np.array([5, 7], np.int32), 1)]
    expected = logits[5, 7] - np.log(np.exp(logits[5]).sum())
    assert logprobs(table_scorer(logits), requests) == pytest.approx(expected, abs=1e-6)
    batches = plan(requests, batch_tokens=128, row_multiple=8)
    (scored,) = score_batches(table_scorer(logits), batches, [0])
    assert not scored.greedy_R[0]


def test_close_logits_are_told_apart():
    """−20.03 and −20.06 are the same number in bfloat16; log-probabilities are float32 from the logits on."""
    logits = np.array([[0.0, -20.03, -20.06]] * 3)
    requests = [Request(0, i, np.array([0, i + 1], np.int32), 1) for i in range(2)]
    first, second = logprobs(table_scorer(logits), requests)
    assert first - second == pytest.approx(0.03, abs=1e-5)


@pytest.mark.parametrize("chunk", [1, 3, 8, 50])
def test_chunks_of_positions_change_nothing(chunk):
    rng = np.random.default_rng(0)
    hidden = jnp.asarray(rng.normal(size=(2, 13, 40)), jnp.float32)
    targets = jnp.asarray(rng.integers(0, 40, (2, 13)), jnp.int32)
    scores = token_scores(TableModel(np.zeros((1, 1))), hidden, targets, chunk)
    logits = np.asarray(hidden, np.float64)
    expected = np.take_along_axis(logits, np.asarray(targets)[..., None], -1)[..., 0] - np.log(np.exp(logits).sum(-1))
    np.testing.assert_allclose(scores.logprob_BS, expected, atol=2e-6)
    np.testing.assert_array_equal(scores.greedy_BS, logits.argmax(-1) == np.asarray(targets))


@pytest.fixture(scope="module", params=["llama-like", "gemma-like"])
def decoder(request):
    config = CONFIG if request.param == "llama-like" else GEMMA_LIKE
    values = random_values(config)
    return config, values, scorer(values, config)


@pytest.fixture(scope="module")
def requests():
    """Contexts shared by four options each, and some contexts that begin alike."""
    rng = np.random.default_rng(5)
    found = random_requests(rng, contexts=14)
    stem = rng.integers(0, 128, 70).astype(np.int32)
    for request in random_requests(rng, contexts=5, length=(1, 30)):
        ids = np.concatenate([stem, request.ids])
        found.append(Request(14 + request.case_index, request.option_index, ids, 70 + request.scored_from))
    return found


@pytest.fixture(scope="module")
def one_by_one(decoder, requests):
    """Every request alone in its row, nothing shared."""
    return logprobs(decoder[2], requests, sharing="none", batch_tokens=1, buckets=[256])


@pytest.mark.parametrize("sharing", ["tree", "case", "none"])
@pytest.mark.parametrize(
    "settings",
    [
        {"batch_tokens": 256},
        {"batch_tokens": 4096},
        {"buckets": [256]},
        {"buckets": [128, 512]},
        {"max_buckets": 1, "batch_tokens": 2048},
    ],
    ids=str,
)
def test_sharing_buckets_and_batch_size_change_no_score(decoder, requests, one_by_one, sharing, settings):
    scores = logprobs(decoder[2], requests, sharing=sharing, **settings)
    np.testing.assert_allclose(scores, one_by_one, atol=1e-5)


@pytest.mark.parametrize(
    "mesh",
    [{"data": 1, "fsdp": 1, "tensor": 8}, {"data": 2, "tensor": 4}, {"fsdp": 8}, {"data": 2, "fsdp": 2, "tensor": 2}],
    ids=str,
)
def test_meshes_change_no_score(decoder, requests, one_by_one, mesh):
    config, values, _ = decoder
    np.testing.assert_allclose(logprobs(scorer(values, config, mesh), requests), one_by_one, atol=1e-5)


def test_a_longer_option_is_never_likelier_than_its_prefix(decoder):
    """Options ` new`, ` new york`, ` newer`: one is a prefix of another, sharing on or off alike."""
    context = np.arange(20, dtype=np.int32)
    options = [[30], [30, 31], [30, 32]]
    requests = [Request(0, i, np.array([*context, *option], np.int32), 20) for i, option in enumerate(options)]
    shared = logprobs(decoder[2], requests)
    np.testing.assert_allclose(shared, logprobs(decoder[2], requests, sharing="none"), atol=1e-5)
    assert shared[1] < shared[0] and shared[2] < shared[0]


def test_neighbours_and_padding_change_no_bit(decoder):
    """Another case in the row is replaced by other tokens, and so is padding: the scores keep every bit."""
    _, _, log_likelihood = decoder
    requests = random_requests(np.random.default_rng(1), contexts=6, length=(20, 30))
    batches = plan(requests, batch_tokens=512, buckets=[512], row_multiple=8)
    batch = batches.batch(0)
    own = [i for i, request in enumerate(requests) if request.case_index == 2]
    rows, columns = np.nonzero(np.isin(batch.requests_BS, own))
    row = int(rows[0])
    scored = batch.slots_BS[rows, columns]
    seen = np.zeros(512, bool)  # by the rule: j ≤ i < subtree_end[j] for some scored slot i
    slots = np.arange(512)
    for i in scored:
        seen |= (slots <= i) & (i < batch.subtree_end_BT[row])
    other = np.random.default_rng(2).integers(0, 128, batch.tokens_BT.shape, dtype=np.int32)
    other[row, seen] = batch.tokens_BT[row, seen]
    assert 0 < seen.sum() < 100 and (other[row] != batch.tokens_BT[row]).sum() > 300
    before = log_likelihood(batch)
    after = log_likelihood(dataclasses.replace(batch, tokens_BT=other))
    np.testing.assert_array_equal(
        np.asarray(before.logprob_BS)[rows, columns], np.asarray(after.logprob_BS)[rows, columns]
    )


def test_rows_of_padding_are_finite_and_change_no_bit(decoder):
    _, _, log_likelihood = decoder
    requests = random_requests(np.random.default_rng(3), contexts=3, length=(50, 60))
    batch = plan(requests, batch_tokens=256, row_multiple=8).batch(0)
    used = (batch.requests_BS >= 0).any(1)
    assert used.any() and not used.all()
    scores = log_likelihood(batch)
    assert np.isfinite(np.asarray(scores.logprob_BS)).all()
    tokens = batch.tokens_BT.copy()
    tokens[~used] = 99
    again = log_likelihood(dataclasses.replace(batch, tokens_BT=tokens))
    np.testing.assert_array_equal(np.asarray(scores.logprob_BS)[used], np.asarray(again.logprob_BS)[used])


def test_at_most_one_compilation_a_bucket():
    """Fifty cases of fifty lengths."""
    log_likelihood = scorer(random_values())
    rng = np.random.default_rng(4)
    requests = [Request(i, 0, rng.integers(0, 128, 2 + 9 * i).astype(np.int32), 1 + 4 * i) for i in range(50)]
    batches = plan(requests, batch_tokens=1024, row_multiple=8)
    list(score_batches(log_likelihood, batches, range(batches.num_batches)))
    assert 1 <= log_likelihood.num_traces <= len(batches.buckets) <= 4


def test_logits_exist_at_scored_positions_only(decoder):
    """No array over slots × vocabulary, anywhere in the program."""
    config, _, log_likelihood = decoder
    T, V = 640, config.vocab_size
    shapes = [jax.ShapeDtypeStruct((8, n), jnp.int32) for n in (T, T, T, 24, 24)]
    with jax.set_mesh(log_likelihood.mesh):
        jaxpr = jax.make_jaxpr(log_likelihood.score)(log_likelihood.parameters, *shapes)
    seen = list(shapes_in(jaxpr.jaxpr))
    assert (8, 24, V) in seen
    assert not [shape for shape in seen if V in shape and T in shape]


def shapes_in(jaxpr):
    """The shape of every value a program computes, those inside its loops and calls included."""
    for equation in jaxpr.eqns:
        for variable in equation.outvars:
            yield variable.aval.shape
        for parameter in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                yield from shapes_in(inner)


def test_sums_are_those_of_each_request():
    requests_BS = np.array([[4, 4, 1, -1], [1, 7, -1, -1]])
    batch = Batch(3, *(np.zeros((2, 2), np.int32),) * 3, *(np.zeros((2, 4), np.int32),) * 2, requests_BS)
    logprob = np.array([[-1.0, -2.0, -4.0, np.nan], [-8.0, -16.0, np.nan, np.nan]], np.float32)
    greedy = np.array([[True, True, True, False], [False, True, False, False]])
    scored = sum_by_request(batch, TokenScores(logprob, greedy))
    assert scored.index == 3
    assert scored.requests_R.tolist() == [1, 4, 7]
    assert scored.logprobs_R.tolist() == [-12.0, -3.0, -16.0]
    assert scored.tokens_R.tolist() == [2, 2, 1]
    assert scored.greedy_R.tolist() == [False, True, True]
