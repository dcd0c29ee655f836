"""What counts as an example in a context of any hand, and which is the nearest, worked out by hand."""

import pytest
from hand_written import BIRDS

from brb_jax.generator.surface import Shown, ranked, shown_examples


def test_examples_of_any_arrow():
    assert shown_examples(BIRDS) == (
        Shown(2, "young", "grey heron with two rings", "heron"),
        Shown(3, "old", "grey heron with six rings", "stork"),
        Shown(4, "young", "a white stork with six rings", "crane"),
    )


@pytest.mark.parametrize("line", ["no arrow", "-> 3", "3 ->", "  ", "a = > b", ""])
def test_what_is_no_example(line):
    assert shown_examples(line) == ()


def test_a_time_of_day_is_no_head():
    assert shown_examples("10:30 -> 30:10\nclock: 10:30 -> 30:10") == (
        Shown(0, "", "10:30", "30:10"),
        Shown(1, "clock", "10:30", "30:10"),
    )


def order(context, query):
    return [example.line for example in ranked(context, query)]


def test_an_equal_head_goes_before_an_equal_input():
    assert order(BIRDS, "young: grey heron with six rings ->") == [2, 4, 3]
    assert order(BIRDS, "old: grey heron with six rings") == [3, 2, 4]
    # No line has this head, so the inputs alone decide: 5, 4 and 3 of 5, 5 and 6 parts in common.
    assert order(BIRDS, "lost: grey heron with six rings ->") == [3, 2, 4]


def test_likeness_is_the_share_of_parts_in_common_in_order():
    # Of a b c d: all but one moved (6/8); the same four and four more (8/12); two of four (4/8).
    context = "b c d a -> 1\nx x a b c d x x -> 2\nb a c x -> 3"
    assert order(context, "a b c d ->") == [0, 1, 2]


def test_ties_go_to_more_parts_in_common_in_any_order_then_to_the_later_line():
    # One part in order each: `d a` holds two of the query's parts, the others one.
    assert order("a x -> 1\nd a -> 2\na y -> 3", "a b c d ->") == [1, 2, 0]


def test_single_words_are_compared_by_character():
    assert order("zzzzzz -> 1\n482910 -> 2\n111111 -> 3", "482911 ->") == [1, 2, 0]


def test_the_input_asked_about_is_that_of_the_open_line():
    context = "kite -> 1\nlark -> 2"
    for query in ("lark ->", "Complete.\nlark -> \nAnswer:", "What of this?\nlark", "lark\n\n"):
        assert order(context, query) == [1, 0], query


def test_nothing_shown_or_asked():
    assert ranked("", "a ->") == [] and order("a -> 1", "") == [0]
