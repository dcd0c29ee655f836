"""Runs that are killed, and directories that hold the scores of another run."""

from __future__ import annotations

import re
import shutil
import signal
import time

import commands
import pytest
from samples_of_runs import assert_scores, read_json, read_samples

from brb_jax import run
from brb_jax.config import RunConfig
from brb_jax.generator.file import write_file
from brb_jax.generator.spec import FileSpec
from brb_jax.results.journal import JournalError

CASES = 180


@pytest.fixture(scope="module")
def many_cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    shape = FileSpec(
        domain="digits",
        task="MemoryRet",
        k=None,
        edit_k=None,
        m=5,
        cases=CASES,
        questions_per_context=1,
        operators=3,
        revision="both",
        seed=0,
    )
    write_file(folder, shape)
    return folder


def segments(out):
    """What each segment of the journal holds: whole batches only, as (indices of batches, options scored)."""
    found = []
    for path in sorted((out / "journal").glob("*.jsonl")):
        batches, options, open_options = [], [], []
        for line in path.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                break
            record = read_json(line)
            if "close" in record:
                batches.append(record["close"])
                options += open_options
                open_options = []
            else:
                open_options += [(record["case"], option) for option in record["options"]]
        found.append((batches, options))
    return found


def count_batches(out):
    return sum(path.read_bytes().count(b'"close"') for path in (out / "journal").glob("*.jsonl"))


def kill_after(batches, how, command, out):
    """Starts a run and kills it once so many batches are in the journal; gives its exit status and standard error."""
    process = commands.start(command)
    while process.poll() is None and count_batches(out) < batches:
        time.sleep(0.001)
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


def test_pitfall_48_a_run_that_was_killed_twice_ends_as_one_that_was_not(
    models, many_cases, compilation_cache, tmp_path
):
    # A batch for every case, so that there are many places to be killed at.
    flags = [f"--model={models['llama']}", f"--data={many_cases}", "--batch_tokens=256", compilation_cache]
    command = [*commands.MAIN, *flags, f"--out={tmp_path / 'killed'}"]
    assert kill_after(CASES // 3, signal.SIGTERM, command, tmp_path / "killed")[0] == -signal.SIGTERM
    assert kill_after(2 * CASES // 3, signal.SIGKILL, command, tmp_path / "killed")[0] == -signal.SIGKILL
    held = segments(tmp_path / "killed")
    assert CASES // 3 <= len(held[0][0]) < 2 * CASES // 3 <= sum(len(batches) for batches, _ in held) < CASES
    assert not (tmp_path / "killed/samples.jsonl").exists()

    last = commands.run(command)
    assert last.returncode == 0, last.stderr
    skipped, batches = re.search(r"(\d+) of (\d+) batches are in the journal already", last.stderr).groups()
    first, second, third = segments(tmp_path / "killed")
    assert int(skipped) == len(first[0]) + len(second[0])
    assert sorted(first[0] + second[0] + third[0]) == list(range(int(batches))), "each batch is dispatched once"
    options = first[1] + second[1] + third[1]
    assert len(options) == len(set(options)) == sum(len(s["options"]) for s in read_samples(tmp_path / "killed"))

    whole = commands.run([*commands.MAIN, *flags, f"--out={tmp_path / 'whole'}"])
    assert whole.returncode == 0 and "in the journal already" not in whole.stderr
    for name in ("samples.jsonl", "results.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_ctrl_c_is_told_in_a_line_and_the_same_command_goes_on(models, many_cases, compilation_cache, tmp_path):
    flags = [f"--model={models['llama']}", f"--data={many_cases}", "--batch_tokens=256", compilation_cache]
    command = [*commands.MAIN, *flags, f"--out={tmp_path / 'out'}"]
    status, said = kill_after(CASES // 3, signal.SIGINT, command, tmp_path / "out")
    assert status == 130 and "Traceback" not in said
    assert said.splitlines()[1:] == [
        "brb_jax: stopped; the batches that were scored are kept, and the same command goes on from there"
    ]
    [(before, _)] = segments(tmp_path / "out")
    assert CASES // 3 <= len(before) < CASES
    last = commands.run(command)
    assert last.returncode == 0, last.stderr
    assert f"{len(before)} of {CASES} batches are in the journal already" in last.stderr


@pytest.fixture(scope="module")
def finished(models, data, tmp_path_factory):
    """A run that is over; its batches have one row each."""
    out = tmp_path_factory.mktemp("finished") / "out"
    settings = {"mesh": {"tensor": 8}, "batch_tokens": 1}
    run.evaluate(RunConfig(model=str(models["llama"]), data=(str(data),), out=str(out), **settings))
    return out


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"model": "gemma3"}, "model"),
        ({"data": "words_MemoryRet_M6_que_ans.json"}, "dataset"),
        ({"boundary": "lm_eval"}, "boundary"),
        ({"option_delimiter": ""}, "option_delimiter"),
        ({"dtype": "bfloat16"}, "param_dtype"),
        ({"activation_dtype": "bfloat16"}, "activation_dtype"),
        ({"limit": 3}, "limit"),
        ({"bos": "always"}, "bos"),
    ],
    ids=str,
)
def test_another_evaluation_in_the_same_directory(change, names, finished, models, data):
    before = (finished / "samples.jsonl").read_bytes()
    settings = {"model": "llama", "data": ".", "out": str(finished), **change}
    settings |= {"model": str(models[settings["model"]]), "data": (str(data / settings["data"]),)}
    with pytest.raises(JournalError, match=rf"differs in .*\b{names}: .*Use another --out, or delete the directory"):
        run.evaluate(RunConfig(**settings))
    assert (finished / "samples.jsonl").read_bytes() == before


def test_a_finished_run_on_another_mesh_scores_nothing_again(finished, models, data, monkeypatch):
    before = (finished / "samples.jsonl").read_bytes()
    monkeypatch.setattr(run, "load_model", None)
    other = {"mesh": {"data": 2, "tensor": 4}, "batch_tokens": 300, "sharing": "none"}
    run.evaluate(RunConfig(model=str(models["llama"]), data=(str(data),), out=str(finished), **other))
    assert (finished / "samples.jsonl").read_bytes() == before


def test_half_a_run_goes_on_on_another_mesh(finished, models, data, truth, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    (tmp_path / "samples.jsonl").unlink()
    [journal] = (tmp_path / "journal").glob("*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines, start=1) if b'"close"' in line]
    journal.write_bytes(b"".join(lines[: ends[len(ends) // 2]]))

    run.evaluate(RunConfig(model=str(models["llama"]), data=(str(data),), out=str(tmp_path)))
    samples = read_samples(tmp_path)
    assert_scores(samples, truth["llama"])
    first, second = segments(tmp_path)
    assert first[1] and second[1] and not set(first[1]) & set(second[1])
    kept = {case_id for case_id, _ in first[1]} - {case_id for case_id, _ in second[1]}
    assert [s for s in samples if s["case_id"] in kept] == [s for s in read_samples(finished) if s["case_id"] in kept]
