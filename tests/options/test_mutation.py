"""Mutations keep type, shape and length, and differ from what is taken."""

import datetime
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brb_jax.generator.draws import Draws
from brb_jax.generator.options.mutation import mutated
from brb_jax.generator.options.shape import pattern

CONTEXT = "a -> kite lark\nb -> Jade moss\nc -> ▲▼◆ rook\n"
DATES = ("%Y-%m-%d", "%d/%m/%Y", "%d %B %Y", "%B %d, %Y", "%H:%M", "%I:%M %p")


def many(text, context=CONTEXT, taken=(), number=80):
    return [mutated([text], [text, *taken], context, Draws("test", i)) for i in range(number)]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("48291067", r"[1-9]\d{7}"),
        ("00120", r"\d{5}"),
        ("7", r"\d"),
        ("-7", r"-[1-9]"),
        ("-12.50", r"-[1-9]\d\.\d\d"),
        ("[3, 1, 20]", r"\[\d, \d, [1-9]\d\]"),
        ("{1, 2} {3}", r"\{\d, \d\} \{\d\}"),
        ("1 0 1\n0 1 0", r"\d \d \d\n\d \d \d"),
        ("name=kite; size=4", r"\w{4}=\w{4}; \w{4}=\d"),
        ("KITE lark", r"[A-Z]{4} [a-z]{4}"),
        ("Robin", r"[A-Z][a-z]{4}"),
    ],
)
def test_numbers_stay_numbers_and_lists_lists(text, form):
    for value in many(text):
        assert value != text and len(value) == len(text)
        assert re.fullmatch(form, value) and pattern(value) == pattern(text)
        assert sum(a != b for a, b in zip(re.split(r"\W+", value), re.split(r"\W+", text), strict=True)) == 1


@pytest.mark.parametrize("form", DATES)
def test_dates_and_times_stay_valid_ones_of_their_form(form):
    text = datetime.datetime(2024, 2, 29, 11, 59).strftime(form)
    for value in many(text):
        assert value != text and len(value) == len(text)
        datetime.datetime.strptime(value, form)


def test_a_date_that_can_be_read_two_ways_stays_one():
    for value in many("03/04/2024"):
        for form in ("%d/%m/%Y", "%m/%d/%Y"):
            datetime.datetime.strptime(value, form)


@pytest.mark.parametrize(("text", "other"), [("true", "false"), ("NO", "YES"), ("No", "Yes"), ("[yes]", "[no]")])
def test_a_boolean_has_one_other_value(text, other):
    assert mutated([text], [text], CONTEXT, Draws(0)) == other
    assert mutated([text], [text, other], CONTEXT, Draws(0)) is None


def test_words_are_those_shown_of_the_same_length():
    assert set(many("rook")) == {"kite", "lark", "moss"}
    assert set(many("Moss")) == {"Jade"}


def test_without_such_a_word_a_letter_is_changed_to_one_shown():
    for value in many("heron"):
        [(old, new)] = [pair for pair in zip("heron", value, strict=True) if pair[0] != pair[1]]
        assert new in set("kitelarkademossrook") - {old}


def test_symbols_are_changed_where_there_is_nothing_else():
    for value in many("▲ ▲"):
        assert sorted(value) in (sorted(" ▲▼"), sorted(" ▲◆"))


def test_nothing_to_change_to():
    assert mutated(["▲"], ["▲"], "no examples", Draws(0)) is None
    assert mutated(["aaa"], ["aaa"], "no examples", Draws(0)) is None


def test_taken_texts_are_avoided():
    taken = [str(digit) for digit in range(9)]
    assert set(many("4", taken=taken)) == {"9"}
    assert set(many("4", taken=[*taken, "9"])) == {None}


def test_what_examples_show_is_avoided_if_it_can_be():
    # In one place: 31 and 20 are shown, 30 and 21 are not.
    assert set(many("31", context="x -> 31\nx -> 20\nx -> 30\n")) == {"21"}
    assert set(many("31", context="x -> 31\nx -> 20\nx -> 30\nx -> 21\n")) == {"21", "30"}


def test_pieces_that_differ_go_on_differing():
    for value in many("0 1 2 3 4 5 6 7 8"):
        assert len(set(value.split())) == 9
    assert any(len(set(value.split())) < 3 for value in many("0 0 1"))


@pytest.mark.parametrize(
    ("text", "outputs", "values"),
    [
        # A grid of zeros and ones stays one, even if its neighbours are shown.
        ("0 1 / 0 0", ["0 1 / 1 0", "1 1 / 0 0"], {"0 1 / 1 0", "1 1 / 0 0"}),
        # Keys stay, values change.
        ("size=9; name=moss", ["size=3; name=kite", "size=4; name=lark"], None),
        # Digits that stand in the same place elsewhere.
        ("20", ["31", "42", "5"], {"30", "40", "21", "22"}),
        # Another count of elements says nothing of this one's places.
        ("[7, 7]", ["[8, 9]", "[1, 2, 3]"], {"[8, 7]", "[7, 9]"}),
    ],
)
def test_pieces_are_those_that_stand_in_the_same_place_elsewhere(text, outputs, values):
    context = "".join(f"x -> {output}\n" for output in outputs)
    found = set(many(text, context))
    if values is None:
        values = {"size=3; name=moss", "size=4; name=moss", "size=9; name=kite", "size=9; name=lark"}
    assert found == values


def test_equal_draws_make_equal_values():
    assert many("48291067") == many("48291067")


@given(st.text(max_size=30), st.integers(0, 5))
def test_any_text_keeps_its_pattern_or_is_refused(text, seed):
    if not text.strip():
        return
    value = mutated([text], [text.strip()], CONTEXT, Draws(seed))
    if value is not None:
        assert value.strip() != text.strip()
        lowered = text.lower()
        if not any(word in lowered for word in ("true", "false", "yes", "no")):
            assert len(value) == len(text)
