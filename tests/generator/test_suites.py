"""The suites in configs/suites, made small: the files they promise, readable, one command each."""

import subprocess
import sys
from pathlib import Path

import pytest
from tiny_tokenizers import gpt2_like

from brb_jax.data.reader import read_cases

SUITES = Path(__file__).parents[2] / "configs/suites"


def make(suite, out, *arguments):
    command = [sys.executable, "-m", "brb_jax.generate", f"--flagfile={SUITES / suite}.flags", f"--out={out}"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return read_cases([out]).cases


def test_standard(tmp_path):
    cases = make("standard", tmp_path, "--cases=1")
    assert {case.m for case in cases} == {70}
    assert len({(case.domain, case.task) for case in cases}) == 24


@pytest.mark.parametrize(("suite", "knob", "task"), [("depth", "k", "MemoryCom"), ("revision", "edit_k", "MemoryRev")])
def test_one_to_four(tmp_path, suite, knob, task):
    cases = make(suite, tmp_path, "--cases=1")
    assert {case.task for case in cases} == {task} and {case.m for case in cases} == {70}
    assert len({case.domain for case in cases}) == 8
    assert {getattr(case, knob) for case in cases} == {1, 2, 3, 4} and len(cases) == 32


def test_length(tmp_path):
    tokenizer = gpt2_like(tmp_path / "tokenizer")
    short = ["--context_tokens=2048,4096", "--cases=1", f"--tokenizer={tokenizer}"]
    cases = make("length", tmp_path / "out", *short)
    assert len(cases) == 48
    assert all(2048 * 0.9 < case.metadata["tokens"] <= 4096 for case in cases)


def test_every_suite_is_tested():
    assert {path.stem for path in SUITES.iterdir()} == {"standard", "depth", "revision", "length"}
