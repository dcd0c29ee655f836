import math

import numpy as np
import pytest

from brb_jax.results.statistics import calibration, cluster_bootstrap_interval, ratio, wilson_interval


@pytest.mark.parametrize(("successes", "trials"), [(0, 1), (1, 1), (0, 20), (7, 20), (20, 20), (633, 1000), (1, 40000)])
def test_wilson_is_the_closed_form(successes, trials):
    z, p = 1.959963984540054, successes / trials
    centre = (p + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * math.sqrt(p * (1 - p) / trials + z**2 / (4 * trials**2))
    expected = [max(0, centre - half), min(1, centre + half)]
    np.testing.assert_allclose(wilson_interval(successes, trials), expected, atol=1e-12)


def test_of_nothing_comes_none():
    assert ratio(0, 0) is None
    assert wilson_interval(0, 0) is None
    assert cluster_bootstrap_interval([], []) is None
    assert calibration([], [], []) is None


def test_bootstrap_is_left_out_where_it_says_nothing():
    assert cluster_bootstrap_interval([True, False, True], ["a", "b", "c"]) is None
    assert cluster_bootstrap_interval([True, False, True], ["a", "a", "a"]) is None


def test_bootstrap_of_two_clusters():
    # Draws of two clusters of two: accuracy 0, 1/2 and 1 with probability 1/4, 1/2, 1/4.
    assert cluster_bootstrap_interval([True, True, False, False], "aabb") == [0.0, 1.0]
    # Cluster a: 1 of 1; cluster b: 0 of 3. Draws aa, ab, bb: 1, 1/4, 0.
    assert cluster_bootstrap_interval([True, False, False, False], "abbb") == [0.0, 1.0]
    assert cluster_bootstrap_interval([True, False, True, False], "aabb") == [0.5, 0.5]


def test_bootstrap_knows_that_cases_of_a_context_fail_together():
    # 200 contexts of 5 cases, each all right or all wrong: as little is known as from 200 cases.
    rng = np.random.default_rng(1)
    outcomes = rng.random(200) < 0.6
    low, high = cluster_bootstrap_interval(np.repeat(outcomes, 5).tolist(), np.repeat(np.arange(200), 5).tolist())
    p = outcomes.mean()
    half = 1.96 * math.sqrt(p * (1 - p) / 200)
    np.testing.assert_allclose([low, high], [p - half, p + half], atol=0.01)
    independent = wilson_interval(int(outcomes.sum()) * 5, 1000)
    assert high - low > 2 * (independent[1] - independent[0])


def test_bootstrap_is_the_same_each_time_and_whatever_the_names():
    correct = [i % 3 == 0 or i % 7 == 0 for i in range(60)]
    clusters = [i // 4 for i in range(60)]
    first = cluster_bootstrap_interval(correct, clusters)
    assert first == cluster_bootstrap_interval(correct, [f"context {c}" for c in clusters])


def test_calibration_by_hand():
    # Probabilities ¾ ¼ (right), ¾ ¼ (wrong), 0.55 0.45 (right) of two options each.
    scores = [[math.log(3), 0.0], [-5 + math.log(3), -5.0], [math.log(0.55), math.log(0.45)]]
    result = calibration(scores, [0, 1, 0], [0, 0, 0])
    # Bin 0.7–0.8: confidence 0.75, accuracy 0.5; bin 0.5–0.6: 0.55 and 1.
    assert result.ece == pytest.approx((2 * 0.25 + 0.45) / 3)
    assert result.brier == pytest.approx((2 * 0.25**2 + 2 * 0.75**2 + 2 * 0.45**2) / 3)
    assert result.nll == pytest.approx(-(math.log(0.75) + math.log(0.25) + math.log(0.55)) / 3)
    assert [(b["low"], b["high"], b["cases"], b["accuracy"]) for b in result.bins] == [
        (0.5, 0.6, 1, 1.0),
        (0.7, 0.8, 2, 0.5),
    ]
    assert [b["confidence"] for b in result.bins] == pytest.approx([0.55, 0.75])


def test_calibration_of_scores_far_from_zero():
    result = calibration([[-80000.0, -90000.0, -90000.0]], [0], [0])
    assert (result.ece, result.brier, result.nll) == (0.0, 0.0, 0.0)
    assert result.bins == [{"low": 0.9, "high": 1.0, "cases": 1, "confidence": 1.0, "accuracy": 1.0}]


def test_calibration_against_brute_force():
    rng = np.random.default_rng(2)
    scores = [list(rng.normal(0, 3, rng.integers(3, 5)) - 40) for _ in range(300)]
    answers = [int(rng.integers(len(case))) for case in scores]
    choices = [int(np.argmax(case)) for case in scores]
    result = calibration(scores, answers, choices)
    brier = nll = 0.0
    bins = {}
    for case, answer, choice in zip(scores, answers, choices, strict=True):
        weights = [math.exp(s + 40) for s in case]
        probabilities = [w / sum(weights) for w in weights]
        brier += sum((p - (i == answer)) ** 2 for i, p in enumerate(probabilities))
        nll -= math.log(probabilities[answer])
        bins.setdefault(int(probabilities[choice] * 10), []).append((probabilities[choice], choice == answer))
    ece = sum(abs(sum(p for p, _ in b) - sum(c for _, c in b)) for b in bins.values())
    assert result.brier == pytest.approx(brier / 300)
    assert result.nll == pytest.approx(nll / 300)
    assert result.ece == pytest.approx(ece / 300)
    assert sum(b["cases"] for b in result.bins) == 300
