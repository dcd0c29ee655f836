"""`--model=baseline:…`: a run directory as of a model's run, without a model."""

import html.parser
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from brb_jax.config import RunConfig
from brb_jax.generator.file import write_file
from brb_jax.generator.spec import FileSpec
from brb_jax.results.journal import JournalError
from brb_jax.results.writers import read_samples
from brb_jax.run import evaluate

ROOT = Path(__file__).parents[2]
FILES = {"run.json", "samples.jsonl", "results.json", "report.html", "journal"}
# What each chooses in every case of a task, by the certificates of the generator.
TRUTH = {
    "solver": {"MemoryRet": "correct", "MemoryCom": "correct", "MemoryRev": "correct"},
    "prerevision": {"MemoryRet": "correct", "MemoryCom": "correct", "MemoryRev": "old_rule"},
    "nearest": {"MemoryRet": "retrieval_similar", "MemoryCom": "surface_similar", "MemoryRev": "retrieval_similar"},
}


def read_json(text):
    """Strict JSON: NaN and Infinity are refused."""

    def refuse(constant):
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for task, knobs in (("MemoryRet", {}), ("MemoryCom", {"k": 2}), ("MemoryRev", {"edit_k": 1})):
        write_file(folder, FileSpec("digits", task, **knobs, m=10, cases=6, operators=3, questions_per_context=2))
    return folder


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """Three cases of an unknown domain, of which two show examples."""
    folder = tmp_path_factory.mktemp("foreign")
    options = [
        {"label": "A", "text": "3 1", "type": "correct"},
        {"label": "B", "text": "2 1", "type": "retrieval_similar"},
        {"label": "C", "text": "7 7", "type": "random_wrong"},
    ]
    cases = [
        {"id": i, "context": context, "query": "one three ->", "options": options, "answer": "A"}
        for i, context in enumerate(["one two -> 2 1\n", "six -> 6\none two → 2 1\n", "Nothing is shown here.\n"])
    ]
    (folder / "numerals_MemoryRet_M2_que_ans.json").write_text(json.dumps(cases))
    return folder


def config(name, data, out, **settings):
    return RunConfig(model=f"baseline:{name}", data=(str(data),), out=str(out), **settings)


@pytest.fixture(scope="module")
def runs(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name in (*TRUTH, "random"):
        evaluate(config(name, data, folder / name))
    return folder


@pytest.mark.parametrize("name", TRUTH)
def test_each_chooses_what_the_generator_certifies(name, runs):
    samples = read_samples(runs / name / "samples.jsonl")
    assert len(samples) == 18
    for sample in samples:
        assert sample.chosen_type == TRUTH[name][sample.task]
        [option] = [option for option in sample.options if option.label == sample.prediction]
        assert option.type == sample.chosen_type
        assert sample.correct == (sample.prediction == sample.answer)
        assert sample.predictions == dict.fromkeys(("logprob", "ppl", "bytes"), sample.prediction)


@pytest.mark.parametrize("name", [*TRUTH, "random"])
def test_the_directory_is_that_of_a_model_and_nothing_is_invented(name, runs):
    out = runs / name
    assert {path.name for path in out.iterdir()} == FILES
    for line in (out / "samples.jsonl").read_text().splitlines():
        sample = read_json(line)
        assert sample["status"] == "ok" and sample["context_tokens"] is None and sample["tied"] == []
        for option in sample["options"]:
            assert [option[field] for field in ("logprob", "tokens", "ppl", "greedy")] == [None] * 4
            assert option["bytes"] == len(option["text"])
    results = read_json((out / "results.json").read_text())
    assert results["selection"] is None
    for cell in (results["overall"], *results["by"]["task"], *results["combinations"]):
        assert cell["margin"] is None and cell["calibration"] is None and cell["tied"] == 0
        assert cell["ok"] == cell["cases"] > 0
    run = read_json((out / "run.json").read_text())
    assert run["model"] == {"source": f"baseline:{name}", "config": None}
    assert [run[key] for key in ("tokenizer", "first_ids_fed", "plan", "devices")] == [None] * 4
    assert run["settings"]["model"] == f"baseline:{name}" and run["dataset"]["cases"] == 18


def test_results_hold_every_baseline_on_the_same_cases(runs):
    results = read_json((runs / "random/results.json").read_text())
    baselines = results["baselines"]
    assert list(baselines) == ["solver", "nearest", "prerevision", "random"]
    for name, truth in TRUTH.items():
        accuracies = {cell["task"]: cell["accuracy"] for cell in baselines[name]["by"]["task"]}
        assert accuracies == {task: float(type_ == "correct") for task, type_ in truth.items()}
        assert baselines[name]["overall"]["cases"] == baselines[name]["overall"]["answered"] == 18
    assert baselines["prerevision"]["overall"]["accuracy"] == 2 / 3
    assert baselines["random"]["overall"]["accuracy"] == results["overall"]["accuracy"]
    assert [cell["task"] for cell in baselines["random"]["by"]["task"]] == list(TRUTH["solver"])


class Text(html.parser.HTMLParser):
    """The words of a page, scripts and styles left out, cell by cell."""

    def __init__(self, page):
        super().__init__()
        self.words, self.inside = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.inside = tag

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.words += data.split()


def test_the_report_leaves_out_what_a_baseline_has_not(runs):
    text = " ".join(Text((runs / "solver/report.html").read_text()).words)
    assert "baseline:solver data" in text and "Mean margin n/a" in text
    for heading in ("Calibration", "Selection rules", "under the rule"):
        assert heading not in text
    # Task by task, then all.
    assert "baseline:prerevision 100.0 % 100.0 % 0.0 % 66.7 %" in text
    assert "baseline:nearest 0.0 % 0.0 % 0.0 % 0.0 %" in text


def test_equal_runs_write_equal_results(runs, data, tmp_path):
    for name in ("solver", "random"):
        evaluate(config(name, data, tmp_path / name))
        for file in ("samples.jsonl", "results.json"):
            assert (tmp_path / name / file).read_bytes() == (runs / name / file).read_bytes()


def test_a_run_that_was_stopped_is_begun_anew_and_ends_the_same(runs, data, tmp_path):
    shutil.copytree(runs / "nearest", tmp_path, dirs_exist_ok=True)
    (tmp_path / "samples.jsonl").write_text("torn")
    (tmp_path / "results.json").unlink()
    evaluate(config("nearest", data, tmp_path))
    for file in ("samples.jsonl", "results.json"):
        assert (tmp_path / file).read_bytes() == (runs / "nearest" / file).read_bytes()


@pytest.mark.parametrize(
    ("name", "settings", "names"),
    [("solver", {}, "model"), ("random", {"limit": 3}, "limit"), ("random", {"baseline_seed": 1}, "baseline_seed")],
)
def test_another_evaluation_in_the_same_directory(name, settings, names, runs, data):
    before = (runs / "random/samples.jsonl").read_bytes()
    with pytest.raises(JournalError, match=rf"differs in {names}: .*Use another --out"):
        evaluate(config(name, data, runs / "random", **settings))
    assert (runs / "random/samples.jsonl").read_bytes() == before


def test_beside_cases_it_cannot_read_a_baseline_has_no_accuracy(data, foreign, tmp_path, capsys):
    evaluate(RunConfig(model="baseline:random", data=(str(data), str(foreign)), out=str(tmp_path)))
    baselines = read_json((tmp_path / "results.json").read_text())["baselines"]
    ret = {name: row["by"]["task"][0] for name, row in baselines.items()}
    assert {name: (cell["cases"], cell["answered"]) for name, cell in ret.items()} == {
        "solver": (9, 6),
        "nearest": (9, 8),
        "prerevision": (9, 6),
        "random": (9, 9),
    }
    assert ret["solver"]["accuracy"] is None and baselines["solver"]["overall"]["accuracy"] is None
    assert baselines["solver"]["by"]["task"][1] == {"task": "MemoryCom", "cases": 6, "answered": 6, "accuracy": 1.0}
    domains = {cell["domain"]: cell["accuracy"] for cell in baselines["solver"]["by"]["domain"]}
    assert domains == {"digits": 1.0, "numerals": None}
    printed = capsys.readouterr().out
    table = printed[printed.index("Accuracy of the baselines") :].splitlines()
    assert ["MemoryRet", "n/a", "n/a", "n/a"] in [line.split()[:4] for line in table]
    text = " ".join(Text((tmp_path / "report.html").read_text()).words)
    assert "baseline:solver n/a 100.0 % 100.0 % n/a" in text


def test_a_baseline_that_reads_nothing_has_no_row(foreign, tmp_path):
    evaluate(config("random", foreign, tmp_path))
    assert list(read_json((tmp_path / "results.json").read_text())["baselines"]) == ["nearest", "random"]


def test_no_cases(tmp_path):
    (tmp_path / "words_MemoryRet_M6_que_ans.json").write_text("[]")
    evaluate(config("solver", tmp_path, tmp_path / "out"))
    results = read_json((tmp_path / "out/results.json").read_text())
    assert results["overall"]["accuracy"] is None and results["baselines"] == {}


def main(*flags):
    return subprocess.run(
        [sys.executable, "-m", "brb_jax.main", *flags], cwd=ROOT, capture_output=True, text=True, env=os.environ
    )


def test_refusals_are_short_and_nothing_is_written(foreign, tmp_path):
    for name, says, lines in (
        ("solver", "baseline:solver cannot read 3 of 3 cases", 4),
        ("nearest", "baseline:nearest cannot read 1 of 3 cases", 2),
        ("oracle", "--model=baseline:oracle: there is no such baseline", 1),
    ):
        done = main(f"--model=baseline:{name}", f"--data={foreign}", f"--out={tmp_path / 'out'}")
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.startswith(f"brb_jax: {says}") and done.stderr.count("\n") == lines
        assert not (tmp_path / "out").exists()


def test_a_baseline_is_one_process(data, tmp_path):
    done = main("--model=baseline:solver", f"--data={data}", f"--out={tmp_path / 'out'}", "--distributed")
    assert done.returncode == 1
    assert done.stderr == "brb_jax: --distributed: baseline:solver runs in one process; leave the flag out\n"


def test_no_device_is_touched(data, tmp_path):
    code = f"""
from jax._src import xla_bridge
from brb_jax.config import RunConfig
from brb_jax.run import evaluate
evaluate(RunConfig(model="baseline:solver", data=({str(data)!r},), out={str(tmp_path)!r}))
assert not xla_bridge._backends
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].startswith("written: ")


def test_files_are_utf_8_in_a_locale_of_ascii(tmp_path):
    options = [{"label": label, "text": text} for label, text in (("A", "три один"), ("B", "два один"), ("C", "七 七"))]
    types = ["correct", "retrieval_similar", "random_wrong"]
    case = {"id": "№1", "context": "один два -> два один\n", "query": "один три ->", "options": options, "types": types}
    text = json.dumps([{**case, "answer": "A"}], ensure_ascii=False)
    (tmp_path / "numerals_MemoryRet_M1_que_ans.json").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "brb_jax.main", "--model=baseline:nearest", f"--data={tmp_path}"]
    done = subprocess.run(
        [*command, f"--out={tmp_path / 'out'}"],
        capture_output=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        cwd=ROOT,
    )
    assert done.returncode == 0 and b"Accuracy by task" in done.stdout, done.stderr
    sample = read_json((tmp_path / "out/samples.jsonl").read_bytes().decode("utf-8"))
    assert (sample["case_id"], sample["options"][0]["text"]) == ("numerals_MemoryRet_M1/№1", "три один")
    assert "·" in (tmp_path / "out/report.html").read_bytes().decode("utf-8")
