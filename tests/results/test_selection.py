import dataclasses
import math

import pytest
from result_cases import make_case, make_sample, tokenized

from brb_jax.results.sample import OptionScore
from brb_jax.results.selection import sample


def test_the_highest_logprob_is_the_prediction():
    result = make_sample([-12.31, -9.5, -20.0], tokens=[5, 2, 4])
    assert (result.prediction, result.correct, result.chosen_type) == ("B", False, "retrieval_similar")
    assert (result.status, result.note, result.tied) == ("ok", None, ())
    assert round(result.options[0].ppl, 2) == 11.73  # exp(12.31 / 5)
    assert result.options[1].ppl == math.exp(4.75)
    assert [option.bytes for option in result.options] == [12, 22, 17]


@pytest.mark.parametrize(
    ("selection", "prediction"),
    [("logprob", "A"), ("ppl", "B"), ("bytes", "B")],
)
def test_pitfall_15_sum_and_perplexity_disagree_and_both_are_reported(selection, prediction):
    # Sums −4 over 1 token and −6 over 4: means −4 and −1.5; per byte (2 and 8 bytes) −2 and −0.75.
    result = make_sample([-4.0, -6.0, -90.0], [1, 4, 1], selection, texts=["ab", "ab cd ef", "z"])
    assert result.prediction == prediction
    assert result.predictions == {"logprob": "A", "ppl": "B", "bytes": "B"}
    assert [option.ppl for option in result.options[:2]] == [math.exp(4), math.exp(1.5)]


@pytest.mark.parametrize("selection", ["logprob", "ppl", "bytes"])
@pytest.mark.parametrize(
    ("logprobs", "note"),
    [
        ([math.nan, -1.0, -2.0], "log-probability of option A is nan"),
        ([-1.0, -2.0, math.nan], "log-probability of option C is nan"),
        ([-1.0, -math.inf, -2.0], "log-probability of option B is -inf"),
        ([-1.0, math.inf, -2.0], "log-probability of option B is inf"),
    ],
)
def test_pitfall_16_a_score_that_is_not_finite_is_an_error(selection, logprobs, note):
    result = make_sample(logprobs, selection=selection)
    assert (result.status, result.note) == ("error", note)
    assert (result.prediction, result.correct, result.chosen_type) == (None, None, None)
    assert (result.tied, result.predictions) == ((), {})
    finite = [logprob if math.isfinite(logprob) else None for logprob in logprobs]
    assert [option.logprob for option in result.options] == finite
    assert [option.ppl is None for option in result.options] == [logprob is None for logprob in finite]


def test_pitfall_16_all_minus_infinity_is_an_error_that_names_every_option():
    result = make_sample([-math.inf] * 3)
    assert result.status == "error"
    assert [f"option {label} is -inf" in result.note for label in "ABC"] == [True] * 3


def test_pitfall_17_a_tie_predicts_the_lowest_label_and_is_recorded():
    result = make_sample([-5.0, -3.0, -3.0], types=("random_wrong", "retrieval_similar", "correct"))
    assert (result.prediction, result.correct, result.tied) == ("B", False, ("B", "C"))


def test_pitfall_17_the_lowest_label_not_the_first_option():
    case = make_case()
    turned = dataclasses.replace(case, options=case.options[::-1])
    result = sample(turned, tokenized(), [OptionScore(-3.0, 1, False)] * 3)
    assert (result.prediction, result.tied) == ("A", ("A", "B", "C"))


def test_ties_are_those_of_the_rule_in_use():
    # Sums −4 and −8 over 1 and 2 tokens: equal perplexities only.
    assert make_sample([-9.0, -4.0, -8.0], [1, 1, 2], "logprob").tied == ()
    assert make_sample([-9.0, -4.0, -8.0], [1, 1, 2], "ppl").tied == ("B", "C")


def test_pitfall_19_the_rule_counts_bytes_not_characters():
    # 北京 is 2 characters and 6 bytes. Per character −3 and −16/7 (Beijing wins), per byte −1 and −16/7.
    texts = ["Beijing", "北京", "x"]
    result = make_sample([-16.0, -6.0, -50.0], selection="bytes", texts=texts)
    assert [option.bytes for option in result.options] == [7, 6, 1]
    assert result.prediction == "B"


def test_a_perplexity_beyond_floats_is_none_and_still_compared():
    result = make_sample([-800.0, -900.0, -1000.0], selection="ppl")
    assert (result.prediction, result.status) == ("A", "ok")
    assert [option.ppl for option in result.options] == [None, None, None]


def test_an_overlong_case_has_options_but_no_scores():
    result = sample(make_case(), tokenized("overlong", "needs 50 tokens, the limit is 32"), None)
    assert (result.status, result.note) == ("overlong", "needs 50 tokens, the limit is 32")
    assert (result.prediction, result.correct, result.predictions) == (None, None, {})
    assert {(o.logprob, o.tokens, o.ppl, o.greedy) for o in result.options} == {(None, None, None, None)}
    assert [o.text for o in result.options] == [o.text for o in make_case().options]


def test_a_truncated_case_keeps_its_note():
    scores = [OptionScore(-1.0, 1, True), OptionScore(math.nan, 1, False), OptionScore(-3.0, 1, False)]
    cut = tokenized(note="truncated 12 tokens")
    assert sample(make_case(), cut, [scores[0], scores[2], scores[2]]).note == "truncated 12 tokens"
    assert sample(make_case(), cut, scores).note == "truncated 12 tokens; log-probability of option B is nan"


def test_scores_that_contradict_the_status_are_refused():
    scores = [OptionScore(-1.0, 1, False)] * 3
    with pytest.raises(ValueError, match="words_MemoryRet_M70/1 is ok, yet its scores are None"):
        sample(make_case(), tokenized(), None)
    with pytest.raises(ValueError, match="is overlong, yet"):
        sample(make_case(), tokenized("overlong"), scores)
    with pytest.raises(ValueError, match="3 options but 2 scores"):
        sample(make_case(), tokenized(), scores[:2])


def test_context_id_is_shared_with_equal_contexts_only():
    one, same, other = (make_sample([-1.0, -2.0, -3.0], context=c) for c in ("x\n", "x\n", "y\n"))
    assert one.context_id == same.context_id != other.context_id
