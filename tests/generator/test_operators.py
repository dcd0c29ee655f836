"""Domains: each operator against values worked out by hand, and what every domain promises."""

import itertools

import pytest

from brb_jax.generator.domain import Domain, Operator, run
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.draws import Draws

BY_HAND = {
    "words": {
        "reverse": ("kite lark jade moss", "moss jade lark kite"),
        "rotate_left": ("kite lark jade moss", "lark jade moss kite"),
        "rotate_right": ("kite lark jade moss", "moss kite lark jade"),
        "swap_halves": ("kite lark jade moss", "jade moss kite lark"),
        "swap_ends": ("kite lark jade moss", "moss lark jade kite"),
        "swap_middle": ("kite lark jade moss", "kite jade lark moss"),
        "swap_front": ("kite lark jade moss", "lark kite jade moss"),
        "swap_pairs": ("kite lark jade moss", "lark kite moss jade"),
        "sort": ("kite lark jade moss", "jade kite lark moss"),
        "sort_down": ("kite lark jade moss", "moss lark kite jade"),
        "sort_by_last": ("moss kite lark jade", "kite jade lark moss"),
        "repeat_first": ("kite lark jade moss", "kite lark jade kite"),
        "spell_backwards": ("kite lark jade moss", "etik kral edaj ssom"),
        "first_backwards": ("kite lark jade moss", "etik lark jade moss"),
        "last_backwards": ("kite lark jade moss", "kite lark jade ssom"),
        "letter_to_end": ("kite lark jade moss", "itek arkl adej ossm"),
        "swap_outer_letters": ("kite lark jade moss", "eitk karl eadj sosm"),
    },
    "digits": {
        "add_one": ("48291067", "59302178"),
        "add_three": ("48291067", "71524390"),
        "complement": ("48291067", "51708932"),
        "double": ("48291067", "86482024"),
        "triple": ("48291067", "24673081"),
        "square": ("48291067", "64411069"),
        "add_place": ("48291067", "50536635"),
        "add_first": ("48291067", "42635401"),
        "running_sums": ("48291067", "42434407"),
        "differences": ("48291067", "44472961"),
        "running_max": ("48291067", "48899999"),
        "reverse": ("48291067", "76019284"),
        "rotate_left": ("48291067", "82910674"),
        "swap_halves": ("48291067", "10674829"),
        "swap_neighbours": ("48291067", "84920176"),
        "sort": ("48291067", "01246789"),
        "even_first": ("48291067", "48206917"),
    },
}

EACH_DOMAIN = pytest.mark.parametrize("domain", DOMAINS.values(), ids=list(DOMAINS))


def values_of(domain, n=200):
    draws = Draws("values", domain.name)
    return [domain.sample(draws) for _ in range(n)]


def test_every_domain_is_covered():
    assert BY_HAND.keys() == DOMAINS.keys()


@EACH_DOMAIN
def test_operators_by_hand(domain):
    assert list(BY_HAND[domain.name]) == [operator.key for operator in domain.operators]
    for operator in domain.operators:
        given, expected = BY_HAND[domain.name][operator.key]
        assert domain.render(operator.apply(domain.parse(given))) == expected, operator.key


@EACH_DOMAIN
def test_render_and_parse_are_inverses(domain):
    for value in values_of(domain):
        text = domain.render(value)
        assert domain.parse(text) == value
        assert text == text.strip() and "\n" not in text and "->" not in text and text.isascii()
    for bad in ("", " ", text + " ", " " + text, text + "x", text.upper() + "A", text[:-1]):
        with pytest.raises(ValueError):
            domain.parse(bad)


@EACH_DOMAIN
def test_operators_and_pairs_of_them_keep_type_and_length(domain):
    for value in values_of(domain, 20):
        for pair in itertools.product(domain.operators, repeat=2):
            output = run(pair, value)
            assert domain.parse(domain.render(output)) == output
            assert len(domain.render(output)) == len(domain.render(value))
            assert len(domain.parts(output)) == len(domain.parts(value))


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
