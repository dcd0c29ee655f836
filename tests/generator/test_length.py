"""Contexts of a target length: as full as they can be, never fuller, with one M for a file."""

import json
import subprocess
import sys

import pytest
from tiny_tokenizers import gpt2_like, llama2_like

from brb_jax.data.reader import read_cases
from brb_jax.generator.file import generate_cases, write_file
from brb_jax.generator.length import Target
from brb_jax.generator.lines import Example, parse_context
from brb_jax.generator.spec import FileSpec, SpecError
from brb_jax.tokens.tokenizer import load_tokenizer

CHARACTERS = Target(6000, "characters", len)


def longest(case):
    return len(f"{case.context}{case.query} ") + max(len(option.text) for option in case.options)


@pytest.mark.parametrize(
    "spec",
    [
        FileSpec("words", "MemoryRet", cases=30),
        FileSpec("sets", "MemoryCom", k=3, cases=6, questions_per_context=3),
        FileSpec("dates", "MemoryRev", edit_k=2, cases=9, definitions="both", distance=40, m=60),
    ],
)
def test_every_case_is_within_the_target_and_the_longest_near_it(tmp_path, spec):
    path = write_file(tmp_path, spec, CHARACTERS)
    cases = read_cases([path]).cases
    assert len(cases) == spec.cases
    lengths = [longest(case) for case in cases]
    assert 0.95 * 6000 < max(lengths) <= 6000
    assert [case.metadata["tokens"] for case in cases] == lengths
    for case in cases:
        assert sum(isinstance(line, Example) for line in parse_context(case.context)) == case.m
    told = json.loads(path.read_text("utf-8"))["metadata"]
    assert (told["context_tokens"], told["tokenizer"], told["m"]) == (6000, "characters", cases[0].m)


def test_a_target_beyond_any_context_is_refused_before_a_case_is_drawn(tmp_path):
    with pytest.raises(SpecError, match=r"99999999999 tokens would hold some \d+ examples, and a context has at most"):
        write_file(tmp_path, FileSpec("digits", "MemoryRet", cases=1), Target(99_999_999_999, "characters", len))
    assert list(tmp_path.iterdir()) == []


def test_contexts_are_those_of_the_same_m(tmp_path):
    spec = FileSpec("grids", "MemoryRet", cases=3)
    aimed = read_cases([write_file(tmp_path, spec, CHARACTERS)]).cases
    plain = list(generate_cases(FileSpec("grids", "MemoryRet", cases=3, m=aimed[0].m)))
    assert [(case.context, case.options) for case in aimed] == [(case.context, case.options) for case in plain]


def test_a_file_that_turns_out_too_long_is_begun_again(tmp_path):
    """Text that costs more the longer it is, which the probes, being short, cannot know."""
    target = Target(20_000, "steep", lambda text: len(text) + len(text) ** 2 // 10_000)
    path = write_file(tmp_path, FileSpec("digits", "MemoryRet", cases=4), target)
    lengths = [case.metadata["tokens"] for case in read_cases([path]).cases]
    assert 0.9 * 20_000 < max(lengths) <= 20_000
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(("spec", "needs"), [({}, 5), ({"distance": 200, "m": 205}, 205)])
def test_too_small_a_target(tmp_path, spec, needs):
    target = Target(180, "characters", len)
    with pytest.raises(SpecError, match=f"words, MemoryRet: 180 tokens do not hold the {needs} examples .* raise"):
        write_file(tmp_path, FileSpec("words", "MemoryRet", **spec), target)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("family", [gpt2_like, llama2_like])
def test_tokens_of_a_real_tokenizer(tmp_path, family):
    """Encoded as they are fed, with BOS if there is one, no case has more ids than was asked for."""
    out, directory = tmp_path / "out", family(tmp_path / "tokenizer")
    small = ["--operators=2", "--cases=4", "--domains=records", "--tasks=MemoryRet,MemoryRev"]
    lengths = ["--context_tokens=2000,3000", f"--tokenizer={directory}"]
    command = [sys.executable, "-m", "brb_jax.generate", f"--out={out}", *small, *lengths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    tokenizer = load_tokenizer(directory)
    files = sorted(out.iterdir())
    assert len(files) == 4
    for file in files:
        target = json.loads(file.read_text("utf-8"))["metadata"]["context_tokens"]
        fed = [
            len(tokenizer.prefix_ids) + len(tokenizer.encode(f"{case.context}{case.query} {option.text}").ids)
            for case in read_cases([file]).cases
            for option in case.options
        ]
        assert 0.93 * target < max(fed) <= target


def test_cases_are_made_as_they_are_asked_for():
    """Of a file far too large for memory, the first case is there at once."""
    assert next(generate_cases(FileSpec("words", "MemoryRet", cases=10**12))).case_id == "words_MemoryRet_M70/0"
