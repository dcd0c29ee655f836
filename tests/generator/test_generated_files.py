"""Generated files: sound, solvable, balanced, and the same everywhere."""

import collections
import hashlib
import itertools
import os
import subprocess
import sys

import pytest

from brb_jax.data.case import TASKS
from brb_jax.data.reader import read_cases
from brb_jax.data.writer import encode, write_cases
from brb_jax.generator.certificates import choose
from brb_jax.generator.domain import run
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.file import generate_cases, write_file
from brb_jax.generator.lines import Example, Statement, parse_context, parse_query
from brb_jax.generator.spec import FileSpec

SPECS = [
    FileSpec(domain, task, cases=36, **knobs)
    for domain in DOMAINS
    for task, knobs in [
        ("MemoryRet", {}),
        ("MemoryRet", {"m": 8, "operators": 2, "questions_per_context": 3}),
        ("MemoryCom", {"k": 2, "questions_per_context": 4}),
        ("MemoryCom", {"k": 3, "m": 30, "operators": 4}),
        ("MemoryRev", {"edit_k": 1}),
        ("MemoryRev", {"edit_k": 2, "m": 40, "revision": "examples"}),
        ("MemoryRev", {"edit_k": 3, "m": 40, "revision": "statement", "operators": 4, "questions_per_context": 3}),
    ]
]


@pytest.fixture(scope="module", params=SPECS, ids=lambda s: f"{s.file_name.stem}-{s.revision}")
def generated(request):
    return request.param, generate_cases(request.param)


def chosen_types(baseline, cases):
    labels = [choose(baseline, case) for case in cases]
    return {next(o.type for o in c.options if o.label == label) for c, label in zip(cases, labels, strict=True)}


def test_baselines(generated):
    spec, cases = generated
    assert chosen_types("solver", cases) == {"correct"}
    assert chosen_types("nearest", cases) <= {"retrieval_similar", "surface_similar"}
    assert chosen_types("prerevision", cases) == {"old_rule" if spec.task == "MemoryRev" else "correct"}


def test_reader_takes_the_file_as_it_was_made(generated, tmp_path):
    spec, cases = generated
    path = write_cases(tmp_path, spec.file_name, cases, spec.metadata)
    assert read_cases([path]).cases == tuple(cases)
    assert len(cases) == spec.cases


def test_options_are_what_the_programs_say(generated):
    spec, cases = generated
    domain = DOMAINS[spec.domain]
    library = {operator.key: operator for operator in domain.operators}

    def output(keys, text):
        return domain.render(run([library[key] for key in keys], domain.parse(text)))

    for case in cases:
        texts = {option.type: option.text for option in case.options}
        told, query = case.metadata, parse_query(case.query)
        assert query.names == tuple(told["names"]) and query.input == told["input"]
        rules = {**told["operators"], **told.get("revised", {})}
        assert told["program"] == [rules[name]["operator"] for name in query.names]
        assert texts["correct"] == output(told["program"], query.input)
        if spec.task == "MemoryCom":
            assert sorted(told["wrong_order"]) == sorted(query.names) and told["wrong_order"] != list(query.names)
            wrong = [rules[name]["operator"] for name in told["wrong_order"]]
            assert texts["wrong_rule"] == output(wrong, query.input)
        if spec.task == "MemoryRev":
            assert texts["old_rule"] == output(told["old_program"], query.input)
            assert query.names[0] in told["revised"] and len(told["revised"]) == spec.edit_k
        similar = parse_context(case.context)[told["similar_line"]]
        assert similar.output in (texts.get("retrieval_similar"), texts.get("surface_similar"))
        asked, shown = (domain.parts(domain.parse(text)) for text in (query.input, similar.input))
        assert sum(a != b for a, b in zip(asked, shown, strict=True)) == 1


def test_form_of_a_case(generated):
    spec, cases = generated
    for case in cases:
        assert {option.type for option in case.options} == set(TASKS[spec.task].option_types)
        assert len({option.text for option in case.options}) == len(case.options)
        assert len({len(option.text) for option in case.options}) == 1, "a length-only guesser sees equal lengths"
        assert parse_query(case.query).input not in [option.text for option in case.options]
        lines = parse_context(case.context)
        shown = [line for line in lines if isinstance(line, Example)]
        outputs = [example.output for example in shown]
        assert [o.type for o in case.options if o.text in outputs] in (["retrieval_similar"], ["surface_similar"])
        assert parse_query(case.query).input not in [example.input for example in shown]
        assert len(shown) == spec.m
        single = collections.Counter(example.names for example in shown if len(example.names) == 1)
        assert len(single) == spec.operators
        if spec.task == "MemoryCom":
            composed = {example.names for example in shown if len(example.names) > 1}
            assert {len(names) for names in composed} == {spec.k}
            assert parse_query(case.query).names not in composed
        if spec.task == "MemoryRet":
            assert max(single.values()) - min(single.values()) <= 1
        stated = [line.name for line in lines if isinstance(line, Statement)]
        told = spec.task == "MemoryRev" and spec.revision != "examples"
        assert stated == (list(case.metadata["revised"]) if told else [])


def test_labels_are_balanced_from_the_first_case_on(generated):
    _, cases = generated
    counts = collections.Counter()
    for case in cases:
        counts[case.answer] += 1
        low = min(counts[option.label] for option in case.options)
        assert max(counts.values()) - low <= 1


def test_questions_share_their_context_exactly(generated):
    spec, cases = generated
    groups = [list(group) for _, group in itertools.groupby(cases, key=lambda case: case.context)]
    assert [len(group) for group in groups] == [spec.questions_per_context] * len(groups)
    assert len({group[0].context for group in groups}) == len(groups)
    assert len({(case.context, case.query) for case in cases}) == len(cases)


def test_certificate_by_brute_force():
    """Every operator and pair of the library, tried without the certificates' own reader."""
    for spec in (FileSpec(d, "MemoryRet", m=9, operators=3, cases=10, seed=1) for d in DOMAINS):
        domain = DOMAINS[spec.domain]
        programs = [*itertools.product(domain.operators, repeat=1), *itertools.product(domain.operators, repeat=2)]
        for case in generate_cases(spec):
            head, asked = case.query.removesuffix(" ->").split(": ")
            pairs = [
                [domain.parse(text) for text in line.removeprefix(f"{head}: ").split(" -> ")]
                for line in case.context.splitlines()
                if line.startswith(f"{head}: ")
            ]
            agreeing = [p for p in programs if all(run(p, given) == output for given, output in pairs)]
            answers = {domain.render(run(program, domain.parse(asked))) for program in agreeing}
            assert answers == {case.options[case.correct_index].text}


def guesses_right(cases, guess):
    return sum(guess([option.text for option in case.options]) == case.correct_index for case in cases)


def overlap(texts, i):
    """How many characters an option has in common, place by place, with the others."""
    return sum(a == b for j in range(len(texts)) if j != i for a, b in zip(texts[i], texts[j], strict=True))


GUESSERS = {
    "always A": lambda texts: 0,
    "longest": lambda texts: max(range(len(texts)), key=lambda i: len(texts[i])),
    "shortest": lambda texts: min(range(len(texts)), key=lambda i: len(texts[i])),
    "first by alphabet": lambda texts: min(range(len(texts)), key=lambda i: texts[i]),
    "last by alphabet": lambda texts: max(range(len(texts)), key=lambda i: texts[i]),
    "most like the others": lambda texts: max(range(len(texts)), key=lambda i: overlap(texts, i)),
    "least like the others": lambda texts: min(range(len(texts)), key=lambda i: overlap(texts, i)),
}


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize(("task", "knobs"), [("MemoryRet", {}), ("MemoryRev", {"edit_k": 1})])
def test_options_alone_tell_nothing(domain, task, knobs):
    n = 400
    cases = generate_cases(FileSpec(domain, task, m=20, cases=n, operators=3, seed=5, **knobs))
    chance = TASKS[task].chance
    bound = 4 * (n * chance * (1 - chance)) ** 0.5
    for name, guess in GUESSERS.items():
        assert abs(guesses_right(cases, guess) - n * chance) < bound, name


def test_wrong_orders_are_as_long_as_the_right_one():
    cases = generate_cases(FileSpec("words", "MemoryCom", k=2, m=20, cases=200, operators=3))
    for name in ("always A", "longest", "shortest"):
        assert abs(guesses_right(cases, GUESSERS[name]) - 50) < 4 * (200 / 4 * 3 / 4) ** 0.5, name


def test_only_the_similar_option_can_be_looked_up():
    """Outputs such as 99999999 come up often, so that an answer may well stand in the context by chance."""
    for case in generate_cases(FileSpec("digits", "MemoryRet", cases=800, questions_per_context=20)):
        outputs = {line.output for line in parse_context(case.context) if isinstance(line, Example)}
        assert [option.type for option in case.options if option.text in outputs] == ["retrieval_similar"]


def test_more_cases_continue_fewer():
    few, many = (generate_cases(FileSpec("digits", "MemoryRet", m=10, operators=2, cases=n)) for n in (7, 12))
    assert many[:7] == few


def test_last_context_may_have_fewer_questions():
    cases = generate_cases(FileSpec("digits", "MemoryRet", m=10, operators=2, cases=5, questions_per_context=3))
    assert [case.metadata["context"] for case in cases] == [0, 0, 0, 1, 1]


def test_no_cases(tmp_path):
    path = write_file(tmp_path, FileSpec("words", "MemoryRet", cases=0))
    assert read_cases([path]).cases == ()


@pytest.mark.parametrize("knob", [{"seed": 1}, {"operators": 3}, {"questions_per_context": 2}])
def test_each_knob_gives_other_contexts(knob):
    base = {"domain": "words", "task": "MemoryRet", "m": 10, "operators": 2, "cases": 2}
    assert generate_cases(FileSpec(**base))[0].context != generate_cases(FileSpec(**{**base, **knob}))[0].context


DIGEST = "1041b15fc491504e05e42ffbea6dbec9e7786482c539d620f5a5473d95211d04"
DIGEST_SPECS = [
    FileSpec(domain, task, m=12, operators=3, cases=4, **knobs)
    for domain in ("words", "digits")
    for task, knobs in [("MemoryRet", {}), ("MemoryCom", {"k": 2}), ("MemoryRev", {"edit_k": 1})]
]


def digest():
    total = hashlib.sha256()
    for spec in DIGEST_SPECS:
        total.update(encode(spec.file_name, generate_cases(spec), spec.metadata))
    return total.hexdigest()


def test_same_bytes_everywhere():
    """Written down once; every machine and Python must agree. Change it only along with the format's version."""
    assert digest() == DIGEST


def test_hash_seed_has_no_say():
    code = "import sys; sys.path.insert(0, 'tests/generator'); import test_generated_files as t; print(t.digest())"
    environment = {**os.environ, "PYTHONHASHSEED": "4711"}
    child = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert child.stdout.strip() == digest()
