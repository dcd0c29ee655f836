"""What is said of cases, against numbers worked out by hand."""

import pytest
from tiny_tokenizers import lone_characters

from brb_jax.data.case import Case, Option
from brb_jax.overview.facts import Lengths, describe
from brb_jax.tokens.encode import encode_cases
from brb_jax.tokens.packing import Work
from brb_jax.tokens.tokenizer import load_tokenizer

TYPES = ("correct", "retrieval_similar", "random_wrong")


def case(own_id, context, query, answer, *texts):
    """`answer` is the place of the correct option; the other types follow in order."""
    types = [t for t in TYPES if t != "correct"]
    types.insert(answer, "correct")
    options = tuple(Option(*parts) for parts in zip("ABC", texts, types, strict=True))
    return Case(f"w/{own_id}", "w", "MemoryRet", None, None, 2, context, query, options, "ABC"[answer])


CASES = [
    case(1, "ab", "c", 0, "abc", "de", "fg"),  # A is correct and longest; B and C are shortest
    case(2, "ab", "cd", 0, "a", "bb", "cc"),  # A is correct and shortest; B and C are longest
    case(3, "ba", "北", 2, "a", "b", "c"),  # C is correct; all are of one length
    case(4, "", "e", 1, "aaa", "b", "cc"),  # B is correct and shortest; A is longest
]


def test_facts_without_a_tokenizer():
    facts = describe(CASES, None)
    assert (facts.cases, facts.contexts) == (4, 3)
    assert facts.labels == {
        "correct": {"A": 2, "B": 1, "C": 1},
        "random_wrong": {"A": 0, "B": 1, "C": 3},
        "retrieval_similar": {"A": 2, "B": 2, "C": 0},
    }
    assert facts.guessers["always_a"] == {"correct": 2 / 4, "random_wrong": 0, "retrieval_similar": 2 / 4}
    # Case 1: correct. Case 2: one of the two wrong ones. Case 3: any. Case 4: the similar one, which is A.
    assert facts.guessers["longest"]["correct"] == pytest.approx((1 + 0 + 1 / 3 + 0) / 4, abs=1e-15)
    assert facts.guessers["longest"]["retrieval_similar"] == pytest.approx((0 + 1 / 2 + 1 / 3 + 1) / 4, abs=1e-15)
    assert facts.guessers["shortest"]["correct"] == pytest.approx((0 + 1 + 1 / 3 + 1) / 4, abs=1e-15)
    assert facts.chance == pytest.approx(1 / 3, abs=1e-15)
    assert facts.context_characters == Lengths(1, 3, 4)
    assert facts.context_bytes == Lengths(1, 3.5, 5)
    assert facts.context_tokens is facts.overlong is facts.sharing is None


def test_facts_with_a_tokenizer(tmp_path):
    """One token a character, nothing in front: inputs can be counted on fingers."""
    tokenizer = load_tokenizer(lone_characters(tmp_path))
    cases = CASES[:2]
    tokenized = encode_cases(cases, tokenizer, option_delimiter="", max_length=5, vocab_size=tokenizer.size)
    facts = describe(cases, tokenized)
    assert facts.context_tokens == Lengths(3, 3.5, 4)
    assert facts.overlong == 0
    # The last token of an option is no input. Case 1: 5 + 4 + 4; case 2: 4 + 5 + 5.
    # Distinct: a b c, then of case 1 `a b` (abc), `d` (de), `f` (fg); of case 2 `d`, which is that of `de`, `b`, `c`.
    assert facts.sharing is not None
    assert (facts.sharing.option_tokens, facts.sharing.tree_tokens) == (27, 3 + 2 + 1 + 1 + 2)
    # A model that reads inputs of 5 in another way than those of 4 shares nothing between them: `a b c a b` and
    # `a b c d b`, `a b c d c` cost 5 + 2 + 1, `a b c d`, `a b c f` and (case 2) `a b c d` 4 + 1 + 0.
    by_length = describe(cases, tokenized, lambda length: int(length > 4)).sharing
    assert by_length is not None and by_length.tree_tokens == 5 + 2 + 1 + 4 + 1
    short = encode_cases(cases, tokenizer, option_delimiter="", max_length=4, vocab_size=tokenizer.size)
    assert describe(cases, short).overlong == 2


def test_no_cases():
    facts = describe([], [])
    assert facts.cases == facts.contexts == facts.overlong == 0
    assert facts.chance is facts.context_tokens is facts.context_characters is None
    assert facts.labels == {} and facts.guessers == {"always_a": {}, "longest": {}, "shortest": {}}
    assert facts.sharing == Work(0, 0, 0)
