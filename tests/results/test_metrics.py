import json
import math
import random

import pytest
from result_cases import make_sample

from brb_jax.data.case import TASKS
from brb_jax.data.filename import FileName
from brb_jax.results.metrics import DIMENSIONS, summarise
from brb_jax.results.statistics import wilson_interval

REV = TASKS["MemoryRev"].option_types  # correct, retrieval_similar, old_rule, random_wrong


def ret(*logprobs, **fields):
    return make_sample(list(logprobs), **fields)


def rev(*logprobs, types=REV, **fields):
    fields = {"task": "MemoryRev", "k": 2, "edit_k": 1, "domain": "sets", "context": "r"} | fields
    return make_sample(list(logprobs), types=types, **fields)


# MemoryRet (A correct, B similar, C random): right, right, similar, overlong.
# MemoryRev (A correct, B similar, C old rule, D random): right, right, old, old, old, random, error.
SAMPLES = [
    ret(-1.0, -3.0, -4.0),
    ret(-2.0, -2.5, -9.0, context="x"),
    ret(-3.0, -1.0, -9.0, context="y"),
    make_sample(None),
    rev(-1.0, -5.0, -6.0, -7.0),
    rev(-1.0, -5.0, -2.0, -7.0),
    rev(-5.0, -6.0, -1.0, -7.0),
    rev(-5.0, -6.0, -1.0, -7.0, m=140),
    rev(-5.0, -6.0, -1.0, -7.0, m=140),
    rev(-5.0, -6.0, -7.0, -1.0, m=140),
    rev(-5.0, math.nan, -7.0, -1.0, m=140),
]
SKIPPED = [FileName("words", "MemoryRet", None, None, 70), FileName("dates", "MemoryCom", 3, None, 70)]
RESULTS = summarise(SAMPLES, skipped=SKIPPED)


def cell(dimension, value):
    (found,) = [c for c in RESULTS["by"][dimension] if c[dimension] == value]
    return found


def test_results_are_strict_json():
    assert json.loads(json.dumps(RESULTS, allow_nan=False)) == RESULTS


def test_counts_by_status():
    counts = ("cases", "ok", "overlong", "error", "skipped")
    assert [RESULTS["overall"][c] for c in counts] == [13, 9, 1, 1, 2]
    assert [cell("task", "MemoryRet")[c] for c in counts] == [5, 3, 1, 0, 1]
    assert [cell("task", "MemoryCom")[c] for c in counts] == [1, 0, 0, 0, 1]
    assert [cell("task", "MemoryRev")[c] for c in counts] == [7, 6, 0, 1, 0]


def test_cases_that_were_cut_are_counted_beside():
    cut = [ret(-1.0, -3.0, -4.0, truncated=7), ret(-3.0, math.nan, -9.0, truncated=1), rev(-1.0, -5.0, -6.0, -7.0)]
    results = summarise(cut)
    assert [results["overall"][c] for c in ("ok", "error", "truncated")] == [2, 1, 1]
    assert [c["truncated"] for c in results["by"]["task"]] == [1, 0]
    assert RESULTS["overall"]["truncated"] == 0


def test_only_ok_cases_enter_an_accuracy():
    assert RESULTS["overall"]["accuracy"] == 4 / 9
    assert RESULTS["overall"]["wilson"] == wilson_interval(4, 9)
    assert cell("task", "MemoryRet")["accuracy"] == 2 / 3
    assert cell("task", "MemoryRev")["accuracy"] == 2 / 6


def test_chance_is_weighted_by_the_cases_counted():
    assert cell("task", "MemoryRet")["chance"] == pytest.approx(1 / 3)
    assert cell("task", "MemoryRev")["chance"] == 0.25
    assert RESULTS["overall"]["chance"] == pytest.approx((3 / 3 + 6 / 4) / 9)


def test_every_dimension_and_every_combination_that_occurs():
    assert [c["task"] for c in RESULTS["by"]["task"]] == ["MemoryRet", "MemoryCom", "MemoryRev"]
    assert [c["domain"] for c in RESULTS["by"]["domain"]] == ["dates", "sets", "words"]
    assert [c["k"] for c in RESULTS["by"]["k"]] == [None, 2, 3]
    assert [c["edit_k"] for c in RESULTS["by"]["edit_k"]] == [None, 1]
    assert [c["m"] for c in RESULTS["by"]["m"]] == [70, 140]
    assert [tuple(c[d] for d in DIMENSIONS) for c in RESULTS["combinations"]] == [
        ("MemoryRet", "words", None, None, 70),
        ("MemoryCom", "dates", 3, None, 70),
        ("MemoryRev", "sets", 2, 1, 70),
        ("MemoryRev", "sets", 2, 1, 140),
    ]
    assert [c["accuracy"] for c in RESULTS["combinations"]] == [2 / 3, None, 2 / 3, 0.0]
    for cells in [*RESULTS["by"].values(), RESULTS["combinations"]]:
        assert sum(c["cases"] for c in cells) == 13 and sum(c["correct"] for c in cells) == 4


def test_wrong_types_against_a_random_choice():
    revision = cell("task", "MemoryRev")["wrong_types"]
    assert list(revision) == ["retrieval_similar", "old_rule", "random_wrong"]
    assert revision["old_rule"] == {
        "count": 3,
        "offered": 6,
        "share": 3 / 6,
        "random_share": 1 / 4,
        "share_of_errors": 3 / 4,
        "wilson": wilson_interval(3, 4),
        "random_share_of_errors": pytest.approx(1 / 3),
    }
    assert revision["retrieval_similar"]["count"] == 0 and revision["retrieval_similar"]["share_of_errors"] == 0
    # Over all tasks `old_rule` is offered in 6 of 9 cases and in 4 of the 5 that were answered wrongly.
    everywhere = RESULTS["overall"]["wrong_types"]
    assert everywhere["old_rule"]["random_share"] == pytest.approx(6 * 0.25 / 9)
    assert everywhere["old_rule"]["random_share_of_errors"] == pytest.approx(4 / 3 / 5)
    assert everywhere["retrieval_similar"]["random_share_of_errors"] == pytest.approx((1 / 2 + 4 / 3) / 5)
    assert sum(t["share_of_errors"] for t in everywhere.values()) == pytest.approx(1)
    assert sum(t["random_share_of_errors"] for t in everywhere.values()) == pytest.approx(1)
    assert sum(t["share"] for t in everywhere.values()) == pytest.approx(5 / 9)


def test_update_rate():
    expected = {"rate": 2 / 5, "wilson": wilson_interval(2, 5), "correct": 2, "old_rule": 3}
    assert cell("task", "MemoryRev")["update_rate"] == expected
    # Correct answers of other tasks have nothing to do with it.
    assert RESULTS["overall"]["update_rate"] == expected
    none = {"rate": None, "wilson": None, "correct": 0, "old_rule": 0}
    assert cell("task", "MemoryRet")["update_rate"] == none


def test_retrieval_bias():
    bias = RESULTS["overall"]["retrieval_bias"]
    assert (bias["count"], bias["offered"], bias["share"]) == (1, 9, 1 / 9)
    assert bias["random_share"] == pytest.approx((3 / 3 + 6 / 4) / 9)
    composed = summarise([make_sample([-2.0, -1.0, -3.0, -4.0], task="MemoryCom", k=2)])
    assert composed["overall"]["retrieval_bias"]["share"] == 1.0


def test_labels():
    assert RESULTS["overall"]["labels"] == {
        "A": {"predicted": 4, "answer": 9},
        "B": {"predicted": 1, "answer": 0},
        "C": {"predicted": 3, "answer": 0},
        "D": {"predicted": 1, "answer": 0},
    }


def test_margin_is_correct_minus_best_wrong():
    assert cell("task", "MemoryRet")["margin"] == pytest.approx((2.0 + 0.5 - 2.0) / 3)
    assert cell("task", "MemoryRev")["margin"] == pytest.approx((4 + 1 - 4 - 4 - 4 - 4) / 6)


def test_bootstrap_over_contexts_only_where_they_are_shared():
    assert cell("task", "MemoryRet")["contexts"] == 3 and cell("task", "MemoryRet")["bootstrap"] is None
    assert RESULTS["overall"]["contexts"] == 4
    low, high = RESULTS["overall"]["bootstrap"]
    assert 0 <= low <= 4 / 9 <= high <= 1


def test_ties_are_counted_and_credited():
    samples = [
        ret(-1.0, -1.0, -2.0),  # tied with the correct one: predicted A, credit 1/2
        ret(-2.0, -1.0, -1.0),  # tied without it: credit 0
        ret(-1.0, -1.0, -1.0, types=("random_wrong", "correct", "retrieval_similar")),  # credit 1/3
        ret(-1.0, -2.0, -3.0),
    ]
    overall = summarise(samples)["overall"]
    assert (overall["tied"], overall["accuracy"]) == (3, 2 / 4)
    assert overall["accuracy_tie_credit"] == pytest.approx((1 / 2 + 0 + 1 / 3 + 1) / 4)


def test_selection_rules_side_by_side():
    # Pitfall 15: sum −4 (1 token) against −6 (4 tokens, correct); 2 bytes against 8.
    sample = make_sample(
        [-4.0, -6.0, -90.0],
        [1, 4, 1],
        types=("random_wrong", "correct", "retrieval_similar"),
        texts=["ab", "ab cd ef", "z"],
    )
    results = summarise([sample])
    assert results["selection"] == "logprob" and results["overall"]["accuracy"] == 0.0
    assert results["overall"]["accuracy_by_rule"] == {"logprob": 0.0, "ppl": 1.0, "bytes": 1.0}


def test_calibration_is_of_the_summed_logprobs_whatever_the_rule():
    by_ppl, by_logprob = (
        summarise([make_sample([-4.0, -6.0, -90.0], [1, 4, 1], rule) for _ in range(3)], rule)
        for rule in ("ppl", "logprob")
    )
    assert by_ppl["overall"]["accuracy"] == 0.0 and by_logprob["overall"]["accuracy"] == 1.0
    assert by_ppl["overall"]["calibration"] == by_logprob["overall"]["calibration"]
    assert by_ppl["overall"]["calibration"]["nll"] == pytest.approx(math.log(1 + math.exp(-2)))


@pytest.mark.parametrize("samples", [[], [make_sample(None)], [ret(math.nan, -1.0, -2.0)]])
def test_pitfall_44_nothing_to_count_is_null(samples):
    results = summarise(samples)
    overall = results["overall"]
    names = ("accuracy", "wilson", "bootstrap", "chance", "accuracy_tie_credit", "margin", "calibration")
    assert {overall[name] for name in names} == {None}
    assert set(overall["accuracy_by_rule"].values()) == {None}
    assert overall["update_rate"]["rate"] is None and overall["retrieval_bias"]["share"] is None
    assert overall["wrong_types"] == {} and overall["labels"] == {}
    json.dumps(results, allow_nan=False)


def test_all_right_leaves_shares_of_errors_null():
    types = summarise([ret(-1.0, -2.0, -3.0)])["overall"]["wrong_types"]
    assert types["random_wrong"]["share"] == 0.0
    assert types["random_wrong"]["share_of_errors"] is types["random_wrong"]["random_share_of_errors"] is None


def test_random_choice_scores_what_is_said_of_random_choice():
    rng = random.Random(3)
    samples = [
        make_sample([rng.random() for _ in TASKS[task].option_types], task=task)
        for task in ("MemoryRet", "MemoryCom", "MemoryRev")
        for _ in range(1500)
    ]
    overall = summarise(samples)["overall"]
    assert overall["accuracy"] == pytest.approx(overall["chance"], abs=0.03)
    assert overall["update_rate"]["rate"] == pytest.approx(0.5, abs=0.05)
    assert overall["retrieval_bias"]["share"] == pytest.approx(overall["retrieval_bias"]["random_share"], abs=0.03)
    for type_ in overall["wrong_types"].values():
        assert type_["share"] == pytest.approx(type_["random_share"], abs=0.03)
        assert type_["share_of_errors"] == pytest.approx(type_["random_share_of_errors"], abs=0.03)
