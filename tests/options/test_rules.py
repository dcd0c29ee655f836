"""Options that follow from the program in a question's metadata, computed by hand."""

import itertools

import pytest
from question_cases import question

from brb_jax.generator.draws import Draws
from brb_jax.generator.options.rules import by_program, has_program

# First word to the end, then the last word backwards; and the other way round.
COMPOSED = {"input": "kite lark jade moss", "program": ["rotate_left", "last_backwards"]}
NAMED = COMPOSED | {
    "wrong_names": ["mipej", "zorav"],
    "operators": {"zorav": {"operator": "rotate_left"}, "mipej": {"operator": "last_backwards"}},
}
FORWARDS, BACKWARDS = "lark jade moss etik", "lark jade ssom kite"
REVISED = {"input": "48291067", "program": ["reverse"], "old_program": ["add_one"]}


def composed(metadata=COMPOSED, answer=FORWARDS, domain="words"):
    return question(answer=answer, task="MemoryCom", domain=domain, metadata=metadata)


def revised(metadata=REVISED, answer="76019284"):
    return question(answer=answer, task="MemoryRev", domain="digits", metadata=metadata)


def test_wrong_order():
    for metadata in (COMPOSED, NAMED):
        assert has_program(composed(metadata), "wrong_rule")
        assert by_program(composed(metadata), "wrong_rule", [FORWARDS], Draws(0)) == BACKWARDS


def test_old_rule():
    assert has_program(revised(), "old_rule")
    assert by_program(revised(), "old_rule", ["76019284"], Draws(0)) == "59302178"


def test_the_order_named_is_taken_where_there_are_several():
    program = ["reverse", "add_place", "double"]
    operators = {name: {"operator": key} for name, key in zip("abc", program, strict=True)}
    metadata = {"input": "48291067", "program": program, "operators": operators}

    def output(order):
        digits = [int(c) for c in "48291067"]
        for key in order:
            if key == "reverse":
                digits = digits[::-1]
            else:
                digits = [(d + i if key == "add_place" else 2 * d) % 10 for i, d in enumerate(digits, start=1)]
        return "".join(map(str, digits))

    asked = question(answer=output(program), task="MemoryCom", domain="digits", metadata=metadata)
    for names in itertools.permutations("abc"):
        named = question(asked.answer, task="MemoryCom", domain="digits", metadata=metadata | {"wrong_names": [*names]})
        wrong = output([program["abc".index(name)] for name in names])
        text = by_program(named, "wrong_rule", [asked.answer], Draws(0))
        assert text == wrong or wrong == asked.answer != text
    free = {by_program(asked, "wrong_rule", [asked.answer], Draws(seed)) for seed in range(20)}
    assert free == {output(order) for order in itertools.permutations(program)} - {asked.answer}


def test_who_has_no_program():
    assert not has_program(composed(domain="birds"), "wrong_rule")
    assert not has_program(composed({}), "wrong_rule")
    assert not has_program(revised({"input": "1", "program": ["reverse"]}), "old_rule")


@pytest.mark.parametrize(
    ("asked", "kind", "says"),
    [
        (composed(answer=BACKWARDS), "wrong_rule", f"gives '{FORWARDS}', its answer is '{BACKWARDS}'"),
        (composed(COMPOSED | {"program": ["sort", "sort"]}, "jade kite lark moss"), "wrong_rule", "no other order"),
        (revised(REVISED | {"old_program": ["reverse"]}), "old_rule", "the old program .* gives no other answer"),
        (revised(REVISED | {"old_program": "reverse"}), "old_rule", "old_program .* is 'reverse', not a list"),
        (revised(REVISED | {"program": ["__import__('os')"]}), "old_rule", "names the operator .* which the domain"),
        (revised(REVISED | {"program": [["reverse"]]}), "old_rule", "not a list of operators"),
        (revised(REVISED | {"input": 48291067}), "old_rule", "is 48291067, not a text"),
        (revised(REVISED | {"input": "../../etc/passwd"}), "old_rule", "'../../etc/passwd' is not 8 digits"),
        (
            composed(NAMED | {"wrong_names": ["zorav", "x"]}),
            "wrong_rule",
            "wrong_names .* not names that its operators",
        ),
        (composed(NAMED | {"operators": ["zorav"]}), "wrong_rule", "wrong_names .* not names that its operators"),
        (
            composed(COMPOSED | {"program": ["reverse"] * 40}, "kite lark jade moss"),
            "wrong_rule",
            "composes 40 operators",
        ),
    ],
)
def test_metadata_that_says_something_else(asked, kind, says):
    with pytest.raises(ValueError, match=says):
        by_program(asked, kind, [asked.answer], Draws(0))
