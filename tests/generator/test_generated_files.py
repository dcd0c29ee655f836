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
from brb_jax.generator.lines import Definition, Example, Statement, names_in, parse_context, parse_query
from brb_jax.generator.spec import FileSpec

TASK_KNOBS = [("MemoryRet", {}), ("MemoryCom", {"k": 2}), ("MemoryRev", {"edit_k": 1})]

SPECS = [
    *(FileSpec(domain, task, cases=12, **knobs) for domain in DOMAINS for task, knobs in TASK_KNOBS),
    *(
        FileSpec(domain, task, cases=24, **knobs)
        for domain, task, knobs in [
            ("words", "MemoryRet", {"m": 8, "operators": 2, "questions_per_context": 3}),
            ("dates", "MemoryRet", {"relevant": "early", "m": 20}),
            ("grids", "MemoryRet", {"relevant": "late", "definitions": "both", "m": 20}),
            ("letters", "MemoryRet", {"definitions": "text", "m": 20}),
            ("records", "MemoryRet", {"distance": 30, "questions_per_context": 2}),
            ("digits", "MemoryCom", {"k": 2, "questions_per_context": 4}),
            ("words", "MemoryCom", {"k": 3, "m": 30, "operators": 4}),
            ("numbers", "MemoryCom", {"k": 4}),
            ("sets", "MemoryCom", {"k": 1, "questions_per_context": 2}),
            ("letters", "MemoryCom", {"k": 1, "definitions": "text", "m": 30}),
            ("grids", "MemoryCom", {"k": 2, "definitions": "text", "m": 30, "relevant": "early"}),
            ("dates", "MemoryCom", {"k": 2, "definitions": "both", "distance": 10, "operators": 6}),
            ("numbers", "MemoryRev", {"edit_k": 2, "m": 40, "revision": "examples"}),
            ("records", "MemoryRev", {"edit_k": 4, "revision": "both"}),
            ("words", "MemoryRev", {"edit_k": 3, "m": 40, "revision": "statement", "operators": 4}),
            ("sets", "MemoryRev", {"edit_k": 1, "definitions": "text", "revision": "examples", "relevant": "late"}),
            ("digits", "MemoryRev", {"edit_k": 2, "definitions": "text", "revision": "statement", "distance": 20}),
            ("dates", "MemoryRev", {"edit_k": 1, "definitions": "both", "revision": "examples", "relevant": "early"}),
        ]
    ),
]


def described(spec):
    knobs = (spec.definitions, spec.revision, spec.relevant, spec.distance, spec.questions_per_context)
    return "-".join([spec.file_name.stem, *map(str, knobs)])


@pytest.fixture(scope="module", params=SPECS, ids=described)
def generated(request):
    return request.param, list(generate_cases(request.param))


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
            if spec.k > 1:
                assert sorted(told["wrong_names"]) == sorted(query.names)
            assert told["wrong_names"] != list(query.names) and len(told["wrong_names"]) == spec.k
            wrong = [rules[name]["operator"] for name in told["wrong_names"]]
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
        asked = [(name,) for name in parse_query(case.query).names]
        if spec.definitions != "text":
            assert len(single) == spec.operators
        elif spec.task != "MemoryRev" or spec.revision == "statement":
            assert single.keys().isdisjoint(asked)
        if spec.task == "MemoryCom":
            composed = {example.names for example in shown if len(example.names) > 1}
            assert {len(names) for names in composed} == {max(spec.k, 2)}
            assert parse_query(case.query).names not in composed
        if not spec.focused and spec.task == "MemoryRet":
            assert max(single.values()) - min(single.values()) <= 1
        stated = [line.name for line in lines if isinstance(line, Statement)]
        told = spec.task == "MemoryRev" and spec.revision != "examples"
        assert stated == (list(case.metadata["revised"]) if told else [])
        defined = [line.name for line in lines if isinstance(line, Definition)]
        assert sorted(defined) == ([] if spec.definitions == "examples" else sorted(case.metadata["operators"]))


def test_where_the_relevant_lines_lie(generated):
    spec, cases = generated
    for case in cases:
        lines = parse_context(case.context)
        asked = set(case.metadata.get("revised", case.metadata["names"]))
        relevant = [i for i, line in enumerate(lines) if asked & set(names_in(line))]
        behind = [line for line in lines[relevant[-1] + 1 :] if isinstance(line, Example)]
        assert len(behind) >= spec.distance
        if spec.relevant == "late":
            assert len(behind) == spec.distance
        if spec.relevant == "early":
            assert relevant == list(range(len(relevant)))
        elif spec.relevant == "late":
            assert relevant == list(range(relevant[0], relevant[-1] + 1))
        names = set(case.metadata["names"])
        last = max(i for i, line in enumerate(lines) if names & set(names_in(line)))
        assert case.metadata["distance"] == sum(isinstance(line, Example) for line in lines[last + 1 :])


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


def programs(domain, context, head):
    """Every operator and pair of the library that does what the lines headed `head` show."""
    pairs = [
        [domain.parse(text) for text in line.removeprefix(f"{head}: ").split(" -> ")]
        for line in context.splitlines()
        if line.startswith(f"{head}: ")
    ]
    library = [*itertools.product(domain.operators, repeat=1), *itertools.product(domain.operators, repeat=2)]
    return [p for p in library if all(run(p, given) == output for given, output in pairs)]


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=list(DOMAINS))
def test_certificate_by_brute_force(domain):
    """Without the certificates' own reader."""
    for case in generate_cases(FileSpec(domain.name, "MemoryRet", m=9, operators=3, cases=8, seed=1)):
        head, asked = case.query.removesuffix(" ->").split(": ")
        agreeing = programs(domain, case.context, head)
        answers = {domain.render(run(program, domain.parse(asked))) for program in agreeing}
        assert answers == {case.options[case.correct_index].text}


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=list(DOMAINS))
def test_certificate_of_a_composition_by_brute_force(domain):
    for case in generate_cases(FileSpec(domain.name, "MemoryCom", k=2, m=14, operators=3, cases=3, seed=1)):
        agreeing = {name: programs(domain, case.context, name) for name in case.metadata["operators"]}
        lines = [line for line in case.context.splitlines() if " then " in line]
        answers = set()
        for backwards in (False, True):
            if all(line.split(" -> ")[1] in outputs(domain, agreeing, line, backwards) for line in lines):
                answers |= outputs(domain, agreeing, case.query, backwards)
        assert answers == {case.options[case.correct_index].text}


def outputs(domain, agreeing, line, backwards):
    """What a composition of two can give."""
    heads, asked = line.split(" ->")[0].split(": ")
    one, other = heads.split(" then ")[:: -1 if backwards else 1]
    pairs = itertools.product(agreeing[one], agreeing[other])
    return {domain.render(run([*p, *q], domain.parse(asked))) for p, q in pairs}


def guesses_right(cases, guess):
    return sum(guess([option.text for option in case.options]) == case.correct_index for case in cases)


def overlap(texts, i):
    """How many characters an option has in common, place by place, with the others."""
    return sum(a == b for j in range(len(texts)) if j != i for a, b in zip(texts[i], texts[j], strict=True))


GUESSERS = {
    "always A": lambda texts: 0,
    "always B": lambda texts: 1,
    "longest": lambda texts: max(range(len(texts)), key=lambda i: len(texts[i])),
    "shortest": lambda texts: min(range(len(texts)), key=lambda i: len(texts[i])),
    "first by alphabet": lambda texts: min(range(len(texts)), key=lambda i: texts[i]),
    "last by alphabet": lambda texts: max(range(len(texts)), key=lambda i: texts[i]),
    "most like the others": lambda texts: max(range(len(texts)), key=lambda i: overlap(texts, i)),
    "least like the others": lambda texts: min(range(len(texts)), key=lambda i: overlap(texts, i)),
}


@pytest.fixture(scope="module")
def many_cases():
    """2,016 cases of all domains and tasks."""
    return {
        (domain, task): list(generate_cases(FileSpec(domain, task, m=24, cases=84, operators=3, seed=5, **knobs)))
        for domain in DOMAINS
        for task, knobs in TASK_KNOBS
    }


@pytest.mark.parametrize("name", ["always A", "always B", "longest", "shortest"])
def test_label_and_length_tell_nothing(many_cases, name):
    """Each guesser's number of hits lies within 3 standard deviations of the sum of 2,016 independent guesses."""
    chances = [TASKS[task].chance for (_, task), cases in many_cases.items() for _ in cases]
    assert len(chances) >= 2000
    right = sum(guesses_right(cases, GUESSERS[name]) for cases in many_cases.values())
    assert abs(right - sum(chances)) < 3 * sum(chance * (1 - chance) for chance in chances) ** 0.5


def test_labels_are_balanced_over_a_file(many_cases):
    for (_, task), cases in many_cases.items():
        counts = collections.Counter(case.answer for case in cases)
        assert len(counts) == len(TASKS[task].option_types) and max(counts.values()) - min(counts.values()) <= 1


# Options of a composition do look different: two of them are outputs of one and the same input.
ALIKE = [
    *[(domain, task, {**knobs, "m": 24, "operators": 3}) for domain in DOMAINS for task, knobs in TASK_KNOBS],
    ("words", "MemoryRet", {"definitions": "text", "m": 16}),
    ("digits", "MemoryRev", {"edit_k": 1, "definitions": "text", "m": 16}),
    ("sets", "MemoryCom", {"k": 1, "m": 20}),
]


@pytest.mark.parametrize(("domain", "task", "knobs"), ALIKE)
def test_options_alone_tell_nothing(domain, task, knobs):
    """No way to look at the options' texts alone does better than chance by 4 standard deviations."""
    n = 400
    cases = list(generate_cases(FileSpec(domain, task, cases=n, seed=5, **knobs)))
    chance = TASKS[task].chance
    bound = 4 * (n * chance * (1 - chance)) ** 0.5
    for name, guess in GUESSERS.items():
        assert abs(guesses_right(cases, guess) - n * chance) < bound, name


def test_only_the_similar_option_can_be_looked_up():
    """Outputs such as 99999999 come up often, so that an answer may well stand in the context by chance."""
    for case in generate_cases(FileSpec("digits", "MemoryRet", cases=800, questions_per_context=20)):
        outputs = {line.output for line in parse_context(case.context) if isinstance(line, Example)}
        assert [option.type for option in case.options if option.text in outputs] == ["retrieval_similar"]


def test_more_cases_continue_fewer():
    few, many = (list(generate_cases(FileSpec("digits", "MemoryRet", m=10, operators=2, cases=n))) for n in (7, 12))
    assert many[:7] == few


def test_last_context_may_have_fewer_questions():
    cases = list(generate_cases(FileSpec("digits", "MemoryRet", m=10, operators=2, cases=5, questions_per_context=3)))
    assert [case.metadata["context"] for case in cases] == [0, 0, 0, 1, 1]


def test_no_cases(tmp_path):
    path = write_file(tmp_path, FileSpec("words", "MemoryRet", cases=0))
    assert read_cases([path]).cases == ()


@pytest.mark.parametrize(
    "knob",
    [{"seed": 1}, {"operators": 3}, {"questions_per_context": 2}, {"definitions": "both"}, {"relevant": "late"}],
)
def test_each_knob_gives_other_contexts(knob):
    base = {"domain": "words", "task": "MemoryRet", "m": 10, "operators": 2, "cases": 2}
    first, other = (next(generate_cases(FileSpec(**{**base, **changed}))).context for changed in ({}, knob))
    assert first != other


def test_contexts_of_other_lengths_are_about_the_same_operators():
    """So that a curve over lengths, or distances, compares like with like."""
    base = {"domain": "words", "task": "MemoryRet", "cases": 5, "relevant": "late"}
    one, *others = (
        [case.metadata["operators"] for case in generate_cases(FileSpec(**base, **knobs))]
        for knobs in ({"m": 60}, {"m": 90}, {"m": 90, "distance": 40})
    )
    assert others == [one, one]


DIGEST = "f8e1d5f2dd3f8165cd99317f59ed3bc83f81497e7dbcaeca78e9b12234f533e4"
DIGEST_SPECS = [
    *(
        FileSpec(domain, task, m=12, operators=3, cases=4, **knobs)
        for domain in ("words", "digits", "letters", "numbers", "sets", "grids", "records", "dates")
        for task, knobs in TASK_KNOBS
    ),
    FileSpec("words", "MemoryCom", k=1, m=20, cases=4, definitions="both", relevant="late", distance=4),
    FileSpec("dates", "MemoryRev", edit_k=2, m=30, cases=4, definitions="text", relevant="early", seed=7),
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
