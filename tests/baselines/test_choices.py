"""What each baseline chooses, and which cases it refuses."""

import hashlib
import random

import pytest
from hand_written import birds_case, case, digits_case

from brb_jax.baselines import NAMES, BaselineError, choices, named, references


def test_names():
    assert sorted(NAMES) == ["nearest", "prerevision", "random", "solver"]
    assert [named(f"baseline:{name}") for name in NAMES] == list(NAMES)
    assert named("checkpoints/baseline") is None
    with pytest.raises(BaselineError, match=r"--model=baseline:oracle: .* solver, nearest, prerevision, random"):
        named("baseline:oracle")


@pytest.mark.parametrize(("name", "label"), [("solver", "A"), ("nearest", "B"), ("prerevision", "C")])
def test_readers_of_generated_text(name, label):
    # Of 70000001: reversed; the example with one digit in place (a zero) and three in common, the later of two such;
    # every digit one more.
    assert choices(name, [digits_case()]) == {"digits_MemoryRet_M4/1": label}


def test_nearest_reads_lines_of_any_hand():
    # Most alike of the young ones is line 2 (4 of 5 and 5 parts): heron.
    assert choices("nearest", [birds_case()]) == {"birds_MemoryRet_M4/1": "C"}


def test_nearest_takes_the_next_where_no_option_is_the_nearest_ones_output():
    assert choices("nearest", [birds_case(texts=("dove", "crane", "swift"))]) == {"birds_MemoryRet_M4/1": "B"}


def test_nearest_reads_another_hands_file_of_a_domain_with_a_known_name():
    foreign = case("A table.\none two -> 2 1\nsix two -> 2 6\n", "six one ->", ("1 6", "2 1", "2 6"), "digits")
    assert choices("nearest", [foreign]) == {"digits_MemoryRet_M4/1": "C"}


def test_random_is_a_hash_of_seed_and_case_on_every_machine():
    cases = [digits_case(number=i) for i in range(300)]
    chosen = choices("random", cases, seed=7)

    def expected(case_id):
        text = "\x1f".join(("baseline:random", "7", case_id))
        generator = random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))
        return "ABC"[int(generator.random() * 3)]

    assert chosen == {case.case_id: expected(case.case_id) for case in cases}
    assert chosen == choices("random", cases[::-1], seed=7)
    assert chosen != choices("random", cases, seed=8)
    # 300 draws of three: 100 each, with a standard deviation of 8.
    for label in "ABC":
        assert 70 < list(chosen.values()).count(label) < 130


def test_a_domain_that_is_not_known_is_refused_before_any_case_is_read(monkeypatch):
    monkeypatch.setattr("brb_jax.baselines.certificates.choose", None)
    cases = [digits_case(), *(birds_case(number=i) for i in range(30))]
    for name in ("solver", "prerevision"):
        with pytest.raises(BaselineError) as caught:
            choices(name, cases)
        lines = str(caught.value).splitlines()
        assert lines[0].startswith(f"baseline:{name} cannot read 30 of 31 cases (it reads generated cases of the domai")
        assert lines[1:3] == [f"  birds_MemoryRet_M4/{i}: of the domain 'birds'" for i in range(2)]
        assert lines[21:] == ["  … and 10 more"]


def test_cases_without_one_answer_are_listed():
    cases = [digits_case(), digits_case(2, ("1", "2", "3"))]
    with pytest.raises(BaselineError) as caught:
        choices("solver", cases)
    assert str(caught.value).splitlines()[1:] == [
        "  digits_MemoryRet_M4/2: no option is '10000007', the answer of baseline solver"
    ]


def test_nearest_says_what_it_found_no_example_for():
    cases = [birds_case(), birds_case(2, texts=("dove", "swift", "kite"))]
    with pytest.raises(BaselineError) as caught:
        choices("nearest", cases)
    first, *listed = str(caught.value).splitlines()
    assert "cannot read 1 of 2 cases (it needs examples, one a line, as input -> output)" in first
    assert listed == [
        "  birds_MemoryRet_M4/2: no line of its context, read as `input -> output`, has one of its options for output"
    ]


def test_references_are_what_each_can_read():
    found = references([digits_case(), birds_case(), birds_case(2, texts=("dove", "swift", "kite"))])
    assert {name: sorted(labels) for name, labels in found.items()} == {
        "solver": ["digits_MemoryRet_M4/1"],
        "nearest": ["birds_MemoryRet_M4/1", "digits_MemoryRet_M4/1"],
        "prerevision": ["digits_MemoryRet_M4/1"],
        "random": ["birds_MemoryRet_M4/1", "birds_MemoryRet_M4/2", "digits_MemoryRet_M4/1"],
    }
