"""`python -m brb_jax.main --flagfile=…` writes a run directory, whose numbers a dense float64 decoder confirms."""

from __future__ import annotations

import re

import commands
import pytest
from samples_of_runs import assert_scores, read_json, read_samples

from brb_jax.config import RunConfig
from brb_jax.run import evaluate

FIELDS = [
    *("case_id", "domain", "task", "k", "edit_k", "m", "answer", "prediction", "correct", "chosen_type", "status"),
    *("note", "context_tokens", "options"),
]
OPTION_FIELDS = {"label", "type", "text", "logprob", "tokens", "bytes", "ppl", "greedy"}


@pytest.fixture(scope="module")
def directory(models, data, compilation_cache, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole_run")
    flagfile = folder / "run.flags"
    flagfile.write_text(f"# A run.\n--model={models['llama']}\n\n--data={data}\n--out={folder / 'out'}\n")
    done = commands.run([*commands.MAIN, f"--flagfile={flagfile}", compilation_cache])
    assert done.returncode == 0, done.stderr
    assert "scored 22 of 22 cases" in done.stderr and "Accuracy" in done.stdout
    return folder / "out"


def test_files(directory):
    assert {path.name for path in directory.iterdir()} == {
        *("run.json", "samples.jsonl", "results.json", "report.html", "journal")
    }
    assert "<html" in (directory / "report.html").read_text()


def test_samples_are_the_files_cases_in_order(directory, raw_cases):
    samples = read_samples(directory)
    assert [sample["case_id"] for sample in samples] == list(raw_cases)
    for sample in samples:
        case = raw_cases[sample["case_id"]]
        assert list(sample)[: len(FIELDS)] == FIELDS
        assert sample["answer"] == case["answer"]
        assert sample["correct"] == (sample["prediction"] == case["answer"])
        assert sample["status"] == "ok" and sample["note"] is None
        for option, raw in zip(sample["options"], case["options"], strict=True):
            assert option.keys() == OPTION_FIELDS
            assert {name: option[name] for name in raw} == raw
            assert option["bytes"] == len(raw["text"].encode())
            assert option["ppl"] ** -option["tokens"] == pytest.approx(2.718281828459045 ** option["logprob"])


def test_scores_are_those_of_a_dense_pass_per_option(directory, truth):
    assert_scores(read_samples(directory), truth["llama"])


def test_windowed_model_with_bos_scores_as_a_dense_pass_too(models, data, truth, tmp_path):
    evaluate(RunConfig(model=str(models["gemma3"]), data=(str(data),), out=str(tmp_path)))
    assert_scores(read_samples(tmp_path), truth["gemma3"])


def test_results_count_what_the_samples_say(directory):
    samples, results = read_samples(directory), read_json((directory / "results.json").read_text())
    overall = results["overall"]
    assert overall["cases"] == 22
    assert overall["accuracy"] == sum(sample["correct"] for sample in samples) / 22


def test_baselines_stand_beside_the_model(directory):
    # Cases are certified: 4 of MemoryRet, 10 of MemoryCom, and 8 of MemoryRev, where prerevision gives the old rule.
    baselines = read_json((directory / "results.json").read_text())["baselines"]
    accuracies = {name: row["overall"]["accuracy"] for name, row in baselines.items()}
    assert accuracies.pop("random") == pytest.approx(4 / 22 / 3 + 18 / 22 / 4, abs=0.35)
    assert accuracies == {"solver": 1.0, "nearest": 0.0, "prerevision": 14 / 22}
    assert "baseline:prerevision" in (directory / "report.html").read_text()


def test_the_report_is_headed_by_what_was_computed(directory):
    head = (directory / "report.html").read_text().partition('<dl class="facts">')[2].partition("</dl>")[0]
    facts = dict(re.findall(r"<dt>(.*?)</dt>\s*<dd>(.*?)</dd>", head))
    assert facts["param_dtype"] == facts["activation_dtype"] == "float32"
    assert facts["selection"] == "logprob" and "None" not in head


def test_run_record(directory, models, sources):
    run = read_json((directory / "run.json").read_text())
    assert run["settings"]["model"] == str(models["llama"]) and run["settings"]["sharing"] == "tree"
    assert run["devices"]["count"] == run["devices"]["processes"] == 1
    assert run["dataset"]["cases"] == 22


def test_a_hugging_face_directory_scores_as_the_converted_one_to_the_last_bit(
    directory, sources, data, on_devices, tmp_path
):
    on_devices(1)
    evaluate(RunConfig(model=str(sources["llama"]), data=(str(data),), out=str(tmp_path)))
    assert (tmp_path / "samples.jsonl").read_bytes() == (directory / "samples.jsonl").read_bytes()
