"""The loop over batches: the next ones are dispatched before the last one's result is read."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from jaxtyping import Bool, Float, Int

from brb_jax.scoring.loglikelihood import TokenScores
from brb_jax.tokens.packing import Plan
from brb_jax.tokens.rows import Batch

# Batches in flight: one computes while the next one's arrays are already on the device.
IN_FLIGHT = 2


@dataclasses.dataclass(frozen=True, eq=False)
class ScoredBatch:
    """The scores of the requests of one batch.

    Attributes:
        index: The batch's position in the plan.
        requests_R: Indices of the requests, ascending.
        logprobs_R: Summed log-probability of each request's scored tokens, in nats: float64 sum of float32 terms.
        tokens_R: How many tokens that sums over.
        greedy_R: Whether each of them was the argmax.
    """

    index: int
    requests_R: Int[np.ndarray, " R"]
    logprobs_R: Float[np.ndarray, " R"]
    tokens_R: Int[np.ndarray, " R"]
    greedy_R: Bool[np.ndarray, " R"]


def score_batches(
    log_likelihood: Callable[[Batch], TokenScores], plan: Plan, indices: Iterable[int]
) -> Iterator[ScoredBatch]:
    """Scores the batches `indices` of a plan, in that order.

    On several processes each must iterate over the same indices to the end: the scoring is a collective.
    """
    pending: collections.deque[tuple[Batch, TokenScores]] = collections.deque()
    for index in indices:
        batch = plan.batch(index)
        pending.append((batch, log_likelihood(batch)))
        if len(pending) == IN_FLIGHT:
            yield sum_by_request(*pending.popleft())
    while pending:
        yield sum_by_request(*pending.popleft())


def sum_by_request(batch: Batch, scores: TokenScores) -> ScoredBatch:
    """Waits for a batch's token scores and adds them up for each request."""
    scored = batch.requests_BS >= 0
    requests_R, owner = np.unique(batch.requests_BS[scored], return_inverse=True)
    logprobs = np.asarray(scores.logprob_BS)[scored].astype(np.float64)
    greedy = np.asarray(scores.greedy_BS)[scored]
    tokens_R = np.bincount(owner, minlength=len(requests_R))
    return ScoredBatch(
        index=batch.index,
        requests_R=requests_R,
        logprobs_R=np.bincount(owner, weights=logprobs, minlength=len(requests_R)),
        tokens_R=tokens_R,
        greedy_R=np.bincount(owner, weights=greedy, minlength=len(requests_R)) == tokens_R,
    )
