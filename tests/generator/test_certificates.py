"""Certificates and baselines on contexts written by hand."""

import pytest

from brb_jax.data.case import Case, Option
from brb_jax.generator.certificates import choose, nearest_example, possible_answers, prerevision, read, solver
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.lines import parse_query

WORDS, DIGITS = DOMAINS["words"], DOMAINS["digits"]


def answers(domain, context, query, **kwargs):
    return possible_answers(domain, read(domain, context), parse_query(query), **kwargs)


def test_one_rule_left():
    context = "zorav: kite lark jade moss -> moss jade lark kite\nzorav: pond acid rain calf -> calf rain acid pond\n"
    assert solver(WORDS, context, "zorav: sand seed ship shoe ->") == "shoe ship seed sand"


def test_two_rules_left():
    # In order already: sorting and, say, swapping the ends twice look the same.
    context = "zorav: acid calf pond rain -> acid calf pond rain\n"
    left = answers(WORDS, context, "zorav: pond acid rain calf ->")
    assert {"acid calf pond rain", "pond acid rain calf"} <= left
    with pytest.raises(ValueError, match=r"leaves \d+ answers instead of one"):
        solver(WORDS, context, "zorav: pond acid rain calf ->")


def test_a_pair_of_operators_is_a_hypothesis():
    # Reversed, then every word spelled backwards: no single operator does this.
    context = "zorav: kite lark jade moss -> ssom edaj kral etik\nzorav: pond acid rain calf -> flac niar dica dnop\n"
    assert solver(WORDS, context, "zorav: sand seed ship shoe ->") == "eohs pihs dees dnas"


def test_no_rule_left():
    context = "zorav: kite lark jade moss -> rope rope rope rope\n"
    assert answers(WORDS, context, "zorav: sand seed ship shoe ->") == frozenset()
    assert answers(WORDS, context, "mipej: sand seed ship shoe ->") == frozenset()


SINGLES = """\
zorav: kite lark jade moss -> lark jade moss kite
zorav: pond acid rain calf -> acid rain calf pond
mipej: kite lark jade moss -> kite lark jade ssom
mipej: pond acid rain calf -> pond acid rain flac
"""


def test_order_of_a_composition_is_learnt_from_composed_examples():
    # zorav moves the first word to the end, mipej spells the last word backwards.
    query = "zorav then mipej: sand seed ship shoe ->"
    both = {"seed ship shoe dnas", "seed ship eohs sand"}
    assert answers(WORDS, SINGLES, query) == both
    forwards = SINGLES + "mipej then zorav: snow rope lime leaf -> rope lime fael snow\n"
    assert solver(WORDS, forwards, query) == "seed ship shoe dnas"
    # A text in which the name written last acts first is read as such.
    backwards = SINGLES + "mipej then zorav: snow rope lime leaf -> rope lime leaf wons\n"
    assert solver(WORDS, backwards, query) == "seed ship eohs sand"


BEFORE = """\
zorav: 48291067 -> 59302178
zorav: 11223344 -> 22334455
"""
AFTER = """\
zorav: 90817263 -> 36271809
zorav: 55512345 -> 54321555
"""
STATEMENT = "From now on, zorav: put the digits in reverse order.\n"
QUERY = "zorav: 70000001 ->"


@pytest.mark.parametrize("context", [BEFORE + AFTER, BEFORE + STATEMENT, BEFORE + STATEMENT + AFTER])
def test_revision(context):
    assert solver(DIGITS, context, QUERY) == "10000007"
    assert prerevision(DIGITS, context, QUERY) == "81111112"


DEFINITION = "zorav means: add one to every digit, nine becoming zero.\n"


def test_a_definition_is_a_rule():
    assert solver(DIGITS, DEFINITION, QUERY) == "81111112"
    # Examples do not contradict it.
    assert solver(DIGITS, DEFINITION + BEFORE, QUERY) == "81111112"


@pytest.mark.parametrize("revision", [AFTER, STATEMENT, STATEMENT + AFTER, BEFORE + AFTER, BEFORE + STATEMENT])
def test_revision_of_a_definition(revision):
    assert solver(DIGITS, DEFINITION + revision, QUERY) == "10000007"
    assert prerevision(DIGITS, DEFINITION + revision, QUERY) == "81111112"


def test_a_definition_rules_out_what_examples_leave_open():
    # Equal digits look the same after reversing, sorting, or moving the first to the end.
    shown = "zorav: 55555555 -> 55555555\n"
    assert len(answers(DIGITS, shown, QUERY)) > 1
    assert solver(DIGITS, "zorav means: put the digits in reverse order.\n" + shown, QUERY) == "10000007"


def test_definition_that_the_first_examples_belie():
    # One revision, before any example: all of them follow the last rule.
    assert solver(DIGITS, "zorav means: put the digits in ascending order.\n" + AFTER, QUERY) == "10000007"


def test_no_revision_is_believed_without_need():
    assert solver(DIGITS, BEFORE, QUERY) == prerevision(DIGITS, BEFORE, QUERY) == "81111112"


def test_revision_of_another_name_changes_nothing():
    context = BEFORE + "From now on, mipej: put the digits in reverse order.\n"
    assert solver(DIGITS, context, QUERY) == "81111112"


def test_the_place_of_a_silent_revision_may_be_open():
    # The middle example fits the old rule (every digit from nine) and the new one (reverse) alike.
    context = (
        "zorav: 48291067 -> 51708932\nzorav: 11223344 -> 88776655\n"
        "zorav: 45454545 -> 54545454\n"
        "zorav: 90817263 -> 36271809\nzorav: 55512345 -> 54321555\n"
    )
    assert solver(DIGITS, context, QUERY) == "10000007"
    assert prerevision(DIGITS, context, QUERY) == "29999998"


def test_two_silent_revisions_are_one_too_many():
    assert answers(DIGITS, BEFORE + AFTER + BEFORE, QUERY) == frozenset()


def test_statement_that_later_examples_belie():
    context = BEFORE + STATEMENT + BEFORE
    assert answers(DIGITS, context, QUERY) == frozenset()


@pytest.mark.parametrize(
    ("context", "says"),
    [
        (BEFORE + "From now on, zorav: count the sheep.\n", "digits has no rule 'count the sheep'"),
        (BEFORE + STATEMENT + STATEMENT, "zorav is revised 2 times"),
        (DEFINITION + DEFINITION, "zorav is defined 2 times"),
        (BEFORE + DEFINITION, "zorav is defined after it was shown"),
        ("zorav means: count the sheep.\n", "digits has no rule 'count the sheep'"),
        ("zorav: 4829106 -> 59302178\n", "'4829106' is not 8 digits"),
        ("Once upon a time\n", "line 0 of the context"),
    ],
)
def test_unreadable_context(context, says):
    with pytest.raises(ValueError, match=says):
        read(DIGITS, context)


def test_nearest_example_copies():
    context = BEFORE + STATEMENT + AFTER
    assert nearest_example(DIGITS, context, "zorav: 11223300 ->") == "22334455"
    assert nearest_example(DIGITS, context, "zorav: 90817200 ->") == "36271809"


def case(options, domain="digits"):
    options = tuple(Option(label, text, "") for label, text in zip("ABC", options, strict=True))
    return Case("f/1", domain, "MemoryRev", None, 1, 4, BEFORE + AFTER, QUERY, options, "A")


def test_choose():
    options = ["59302178", "81111112", "10000007"]
    assert choose("solver", case(options)) == "C"
    assert choose("prerevision", case(options)) == "B"
    with pytest.raises(ValueError, match="case f/1: no option is '10000007', the answer of baseline solver"):
        choose("solver", case(["1", "2", "3"]))
    with pytest.raises(ValueError, match=f"case f/1: baselines read the domains {', '.join(DOMAINS)}, not 'birds'"):
        choose("solver", case(options, "birds"))
