"""Domains: each operator against values worked out by hand, and what every domain promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worked_operators import BY_HAND

from brb_jax.generator.domain import Domain, Operator, run
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.draws import Draws

EACH_DOMAIN = pytest.mark.parametrize("domain", DOMAINS.values(), ids=list(DOMAINS))


def values_of(domain, n=200):
    draws = Draws("values", domain.name)
    return [domain.sample(draws) for _ in range(n)]


def test_every_domain_is_covered():
    assert BY_HAND.keys() == DOMAINS.keys() and len(DOMAINS) >= 8


@pytest.mark.parametrize(
    ("domain", "operator"),
    [(domain, operator) for domain in DOMAINS.values() for operator in domain.operators],
    ids=lambda part: getattr(part, "key", None) or part.name,
)
def test_operator_by_hand(domain, operator):
    value, expected = BY_HAND[domain.name][operator.key]
    assert domain.render(operator.apply(domain.parse(value))) == expected


@EACH_DOMAIN
def test_every_operator_is_covered(domain):
    assert list(BY_HAND[domain.name]) == [operator.key for operator in domain.operators]


@EACH_DOMAIN
@given(st.data())
def test_whatever_operators_make_is_a_value_of_the_same_length(domain, data):
    value = domain.sample(Draws("property", data.draw(st.integers(0, 10**9))))
    length, parts = len(domain.render(value)), len(domain.parts(value))
    for operator in data.draw(st.lists(st.sampled_from(domain.operators), max_size=6)):
        value = operator.apply(value)
        text = domain.render(value)
        assert domain.parse(text) == value and type(domain.parse(text)) is type(value)
        assert len(text) == length and len(domain.parts(value)) == parts
        assert text == text.strip() and "\n" not in text and "->" not in text and text.isascii()


@EACH_DOMAIN
@given(st.data())
def test_parse_refuses_what_render_does_not_write(domain, data):
    """A text with a stretch replaced is either that of another value or refused."""
    text = domain.render(domain.sample(Draws("property", data.draw(st.integers(0, 10**9)))))
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    other = text[:start] + data.draw(st.text(st.sampled_from(text + " 0139azAZ,-:=/\n٣é"), max_size=4)) + text[end:]
    assert_read_or_refused(domain, other)


@EACH_DOMAIN
@given(st.text())
def test_parse_of_any_text(domain, text):
    assert_read_or_refused(domain, text)


def assert_read_or_refused(domain, text):
    try:
        value = domain.parse(text)
    except ValueError as error:
        assert f"{text!r} is not" in str(error)
    else:
        assert domain.render(value) == text


REFUSED = {
    "sets": [
        "{b1, a2, c3, d4, e5, f6}",
        "{a1, a1, c3, d4, e5, f6}",
        "{a1, b2, c3, d4, e5}",
        "{a0, b2, c3, d4, e5, f9}",
    ],
    "records": [
        "(item=lamp, hue=blue, size=37, size=38)",
        "(item=lamp, hue=blue, size=37)",
        "(item=lamp, hue=blue, size=07, code=482)",
    ],
    "dates": ["1987-02-29 10:00", "1987-13-01 10:00", "1987-06-05 24:00", "0987-06-05 10:00", "1987-06-05T10:00"],
    "numbers": ["[47, 12, 80, 35, 06]", "[47,12,80,35,66]", "[47, 12, 80, 35]"],
    "letters": ["kQzTbaU", "kQzTbaU1", "kQzTbaUé"],
    "grids": ["bgrw/yybg/rwrb/gwyx", "bgrw/yybg/rwrb", "bgrw yybg rwrb gwyy"],
}


@pytest.mark.parametrize(("domain", "text"), [(d, text) for d, texts in REFUSED.items() for text in texts])
def test_parse_refuses(domain, text):
    with pytest.raises(ValueError, match="is not "):
        DOMAINS[domain].parse(text)


@EACH_DOMAIN
def test_operators_are_different_functions(domain):
    values = values_of(domain)
    tables = {operator.key: tuple(operator.apply(value) for value in values) for operator in domain.operators}
    assert len(set(tables.values())) == len(tables)
    assert tuple(values) not in tables.values(), "no operator is the identity"


@EACH_DOMAIN
def test_edit_changes_one_part(domain):
    draws = Draws("edits", domain.name)
    for value in values_of(domain):
        for place in range(len(domain.parts(value))):
            edited = domain.edit(value, place, draws)
            before, after = domain.parts(value), domain.parts(edited)
            assert [i for i in range(len(before)) if before[i] != after[i]] == [place]
            assert domain.parse(domain.render(edited)) == edited


@EACH_DOMAIN
def test_definitions_are_one_line(domain):
    for operator in domain.operators:
        assert operator.definition == operator.definition.strip()
        assert "\n" not in operator.definition and "->" not in operator.definition


def test_first_operator_acts_first():
    domain = DOMAINS["words"]
    by_key = {operator.key: operator for operator in domain.operators}
    program = [by_key["rotate_left"], by_key["last_backwards"]]
    assert domain.render(run(program, domain.parse("kite lark jade moss"))) == "lark jade moss etik"


def test_a_library_is_checked():
    def domain(operators):
        return Domain("d", tuple(operators), *[len] * 5)

    operators = [Operator(f"key {i}", f"definition {i}", len) for i in range(12)]
    domain(operators)
    with pytest.raises(ValueError, match="has 11 operators, needs 12"):
        domain(operators[1:])
    with pytest.raises(ValueError, match="same key"):
        domain([*operators, Operator("key 3", "other", len)])
    with pytest.raises(ValueError, match="same definition"):
        domain([*operators, Operator("other", "definition 3", len)])
