"""Intervals and calibration of counted outcomes. Knows numbers only, neither cases nor files.

What cannot be computed (nothing was counted) is None, never a division by zero.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence

import numpy as np
import scipy.special
import scipy.stats

BOOTSTRAP_RESAMPLES = 2000
BOOTSTRAP_SEED = 0
CALIBRATION_BINS = 10

Interval = list[float]
"""[low, high], as JSON has it."""


def ratio(part: float, whole: float) -> float | None:
    """`part / whole`, or None of nothing.

    >>> ratio(1, 4), ratio(0, 0)
    (0.25, None)
    """
    return part / whole if whole else None


def wilson_interval(successes: int, trials: int) -> Interval | None:
    """The 95 % score interval of a proportion (Wilson 1927), or None without trials.

    >>> [round(bound, 4) for bound in wilson_interval(8, 10)]
    [0.4902, 0.9433]
    """
    if not trials:
        return None
    interval = scipy.stats.binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    return [float(interval.low), float(interval.high)]


def cluster_bootstrap_interval(correct: Sequence[bool], clusters: Sequence[Hashable]) -> Interval | None:
    """The 95 % percentile interval of an accuracy whose cases come in clusters that may fail together.

    Whole clusters are drawn with replacement (Efron and Tibshirani 1993, section 8.5); the accuracy of a draw
    weighs each case alike. The draws are seeded, so equal outcomes have equal intervals.

    Args:
        correct: Outcome of each case.
        clusters: What each case shares with others, parallel to `correct`.

    Returns:
        [low, high]; None where there are fewer than two clusters, or no two cases share one.
    """
    members: dict[Hashable, list[bool]] = {}
    for outcome, cluster in zip(correct, clusters, strict=True):
        members.setdefault(cluster, []).append(outcome)
    count = len(members)
    if count < 2 or count == len(correct):
        return None
    sizes = np.array([len(outcomes) for outcomes in members.values()])
    successes = np.array([sum(outcomes) for outcomes in members.values()])
    rng = np.random.Generator(np.random.PCG64(BOOTSTRAP_SEED))
    accuracies = np.empty(BOOTSTRAP_RESAMPLES)
    for i in range(BOOTSTRAP_RESAMPLES):
        drawn = rng.integers(count, size=count)
        accuracies[i] = float(successes[drawn].sum()) / float(sizes[drawn].sum())
    low, high = np.percentile(accuracies, [2.5, 97.5])
    return [float(low), float(high)]


@dataclasses.dataclass(frozen=True)
class Calibration:
    """How far the probabilities of a choice among options can be believed.

    Attributes:
        ece: Expected calibration error (Naeini et al. 2015): the mean over cases of |accuracy − confidence|
            of the case's bin, where confidence is the probability of the most probable option.
        brier: Mean over cases of Σ over options (probability − [option is correct])², in 0 … 2 (Brier 1950).
        nll: Mean negative log-probability of the correct option, in nats.
        bins: For each of the equal-width bins of confidence that is not empty: its bounds `low` (included)
            and `high` (excluded, but for 1), and the `cases`, mean `confidence` and `accuracy` in it.
    """

    ece: float
    brier: float
    nll: float
    bins: list[dict[str, float]]


def calibration(
    scores: Sequence[Sequence[float]], answers: Sequence[int], choices: Sequence[int]
) -> Calibration | None:
    """Calibration of the softmax over each case's option scores.

    Args:
        scores: Log-probabilities of each case's options, finite.
        answers: Index of each case's correct option.
        choices: Index of each case's predicted option, one with the highest score.

    Returns:
        None without cases.
    """
    if not scores:
        return None
    # Cases with fewer options are filled up with impossible ones.
    padded = np.full((len(scores), max(map(len, scores))), -np.inf)
    for row, case in zip(padded, scores, strict=True):
        row[: len(case)] = case
    log_probabilities = scipy.special.log_softmax(padded, axis=1)
    probabilities = np.exp(log_probabilities)
    confidence = probabilities.max(axis=1)
    correct = np.equal(answers, choices)
    bin_of = np.minimum((confidence * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    bins = [
        {
            "low": index / CALIBRATION_BINS,
            "high": (index + 1) / CALIBRATION_BINS,
            "cases": int((bin_of == index).sum()),
            "confidence": float(confidence[bin_of == index].mean()),
            "accuracy": float(correct[bin_of == index].mean()),
        }
        for index in range(CALIBRATION_BINS)
        if (bin_of == index).any()
    ]
    return Calibration(
        ece=sum(b["cases"] * abs(b["accuracy"] - b["confidence"]) for b in bins) / len(scores),
        brier=float(((probabilities - np.eye(padded.shape[1])[list(answers)]) ** 2).sum(axis=1).mean()),
        nll=float(-log_probabilities[np.arange(len(scores)), list(answers)].mean()),
        bins=bins,
    )
