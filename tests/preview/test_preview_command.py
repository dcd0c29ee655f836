"""`python -m brb_jax.preview`, as a user runs it."""

import json
import re
import subprocess
import sys

import commands
import pytest
import random_models
from tiny_tokenizers import gemma_like

from brb_jax.data.reader import read_cases
from brb_jax.generator.file import write_file
from brb_jax.generator.spec import FileSpec
from brb_jax.overview.facts import GUESSERS

PREVIEW = (sys.executable, "-m", "brb_jax.preview")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    settings = {"m": 6, "questions_per_context": 2, "operators": 3, "revision": "both", "seed": 0}
    write_file(folder, FileSpec(domain="words", task="MemoryRet", k=None, edit_k=None, cases=4, **settings))
    write_file(folder, FileSpec(domain="digits", task="MemoryCom", k=2, edit_k=None, cases=6, **settings))
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return random_models.write_gemma3(tmp_path_factory.mktemp("model") / "gemma3")


def preview(*flags):
    # With a platform that there is not, touching a device would fail.
    return commands.run([*PREVIEW, *flags], JAX_PLATFORMS="no_such_platform")


def test_tables_without_a_tokenizer(data):
    done = preview(f"--data={data}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Lengths are in characters and UTF-8 bytes, of context and query; for tokens, name a")
    assert re.search(r"words_MemoryRet_M6 +4 +2 +0 ", done.stdout)
    assert re.search(r"digits_MemoryCom_k2_M6 +6 +3 +0 ", done.stdout)
    assert re.search(r"all files +10 +5 +0 ", done.stdout)
    assert done.stdout.endswith("No faults.\n")
    assert "\x1b" not in done.stdout and max(map(len, done.stdout.splitlines())) <= 120


def test_json_is_what_a_run_computes(data, model, tmp_path):
    done = preview(f"--data={data}", f"--model={model}", "--json", "--case=words_MemoryRet_M6/3")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    ran = commands.run(
        [*commands.MAIN, f"--data={data}", f"--model={model}", f"--out={tmp_path / 'out'}", "--compilation_cache="]
    )
    assert ran.returncode == 0, ran.stderr
    run = json.loads((tmp_path / "out/run.json").read_text())
    assert found["total"]["sharing"] == {key: run["plan"][key] for key in ("option_tokens", "tree_tokens", "slots")}
    assert found["tokenizer"]["fingerprint"] == run["fingerprint"]["tokenizer"]
    assert [file["file"] for file in found["files"]] == run["dataset"]["files"]
    samples = [json.loads(line) for line in (tmp_path / "out/samples.jsonl").read_text().splitlines()]
    lengths = [sample["context_tokens"] for sample in samples]
    assert (found["total"]["context_tokens"]["min"], found["total"]["context_tokens"]["max"]) == (
        min(lengths),
        max(lengths),
    )
    sample = next(sample for sample in samples if sample["case_id"] == "words_MemoryRet_M6/3")
    assert found["case"]["case_id"] == sample["case_id"]
    for option, scored in zip(found["case"]["options"], sample["options"], strict=True):
        assert len(option["tokens"]) == scored["tokens"]
        assert (option["scored"], option["exact"]) == (f" {scored['text']}", True)
        assert option["read"].startswith("<s>")


def test_guessers_against_the_cases(data):
    found = json.loads(preview(f"--data={data}", "--json").stdout)
    cases = read_cases([data]).cases
    assert found["total"]["guessers"]["always_a"]["correct"] == sum(case.answer == "A" for case in cases) / 10
    assert found["tokenizer"] is None and found["total"]["sharing"] is None
    assert set(found["total"]["guessers"]) == set(GUESSERS)


def test_every_fault_and_status_1(data, tmp_path):
    bad = [{"id": i, "context": "c", "query": f"q{i}\x1b[31m", "options": [], "answer": "A"} for i in range(25)]
    (tmp_path / "words_MemoryRet_M2_que_ans.json").write_text(json.dumps(bad))
    (tmp_path / "words_MemoryRet_M3_que_ans.json").write_text("[")
    done = preview(f"--data={data},{tmp_path}")
    assert (done.returncode, done.stderr) == (1, "")
    # Four for each case: no options, and none of any of the three types; and one of the other file. All are listed.
    assert "\n101 faults\n" in done.stdout and done.stdout.count("case #") == 100
    assert re.search(r"words_MemoryRet_M2 +0 +0 +100 ", done.stdout)
    assert re.search(r"words_MemoryRet_M3 +0 +0 +1 ", done.stdout)
    found = json.loads(preview(f"--data={tmp_path}", "--json").stdout)
    assert len(found["faults"]) == 101 and found["case"] is None and found["total"]["cases"] == 0


def test_nothing_sound_is_shown_all_the_same(tmp_path, model):
    done = preview(f"--data={tmp_path / 'nothing'}", f"--model={model}")
    assert done.returncode == 1 and done.stderr == ""
    assert f"{tmp_path / 'nothing'}: there is no such file or directory; check the path" in done.stdout


def test_the_flags_of_main_that_change_what_is_read(data, model):
    flags = (f"--data={data}", "--json", "--domains=words", "--limit=3", f"--model={model}")
    found = json.loads(preview(*flags, "--bos=never", "--option_delimiter=\n", "--max_length=40").stdout)
    assert [file["domain"] for file in found["files"]] == ["words"] and found["total"]["cases"] == 3
    assert found["case"]["prefix"] == [] and found["case"]["status"] == "overlong"
    found = json.loads(preview(*flags, "--bos=never", "--option_delimiter=\n").stdout)
    assert not found["case"]["options"][0]["read"].startswith("<s>")
    assert found["case"]["options"][0]["scored"].startswith("\n")
    template = "--prompt_template=READ\n{{ context }}{{ query }}"
    found = json.loads(preview(*flags, template).stdout)
    assert found["case"]["options"][0]["read"].startswith("<s>READ\n")


def test_a_tokenizer_of_its_own(data, tmp_path):
    gemma_like(tmp_path / "tokenizer")
    done = preview(f"--data={data}", f"--tokenizer={tmp_path / 'tokenizer'}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Lengths are in tokens of {tmp_path / 'tokenizer'}.\n")
    assert "In front of the text: <s>. Scored is what stands in ⟦ ⟧." in done.stdout
    assert "A pass per option computes " in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 120


def test_names_and_numbers_are_whole_in_a_terminal_of_80_columns(data, model):
    found = json.loads(preview(f"--data={data}", f"--model={model}", "--json").stdout)
    terminal = {"FORCE_COLOR": "1", "COLUMNS": "80", "NO_COLOR": "1", "TERM": "xterm"}
    done = commands.run([*PREVIEW, f"--data={data}", f"--model={model}"], JAX_PLATFORMS="no_such_platform", **terminal)
    tables = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).partition("The case ")[0].replace(",", "").split()
    assert {"words_MemoryRet_M6", "digits_MemoryCom_k2_M6", "retrieval_similar", "surface_similar"} <= set(tables)
    for facts in (*found["files"], found["total"]):
        for number in (facts["cases"], *(facts["context_tokens"][key] for key in ("min", "max"))):
            assert str(number) in tables
        assert {str(facts["sharing"][key]) for key in ("option_tokens", "tree_tokens")} <= set(tables)
        assert {f"{100 * picks['correct']:.1f}" for picks in facts["guessers"].values()} <= set(tables)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ((), "--data is missing"),
        (("--data=x", "--tokenizer=/nowhere", "--model=/nowhere"), "--model and --tokenizer each name a tokenizer"),
        (("--data=x", "--tokenizer=/nowhere"), "/nowhere: no tokenizer.json that can be read"),
        (("--data=x", "--model=/nowhere"), "/nowhere does not exist"),
        (("--data=x", "--model=baseline:solver"), "--model=baseline:solver: a baseline reads text"),
        (("--data=x", "--model=baseline:saver"), "--model=baseline:saver: there is no such baseline"),
        (("--data=x", "--tasks=Memory"), "--tasks: there is no task 'Memory'"),
        (("--data=x", "--k=two"), "--k: 'two' is neither a whole number nor 'none'"),
        (("--data=x", "--field_map=contxt=a"), "--field_map: there is no field 'contxt'"),
        (("--data=x", "--prompt_template={{"), "--prompt_template: '{{' is no template"),
        (("--data=DATA", "--case=x/1"), "--case: there is no sound case 'x/1' among the 10 read; the first is digits_"),
        (("--data=DATA", "--model=MODEL", "--max_length=99999"), "add --allow_extrapolation"),
    ],
)
def test_one_line_for_a_slip(flags, says, data, model):
    flags = [flag.replace("DATA", str(data)).replace("MODEL", str(model)) for flag in flags]
    done = preview(*flags)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("preview: ") and says in done.stderr
    assert "Traceback" not in done.stderr and done.stderr.count("\n") <= 2


def test_a_reader_that_goes_away(data):
    with subprocess.Popen(
        [*PREVIEW, f"--data={data}", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=commands.ROOT
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_commands_can_be_imported_together():
    code = """
import sys
import brb_jax.main, brb_jax.convert, brb_jax.preview
assert 'jax' not in sys.modules or not sys.modules['jax']._src.xla_bridge.backends_are_initialized()
from absl import flags
assert not {'data', 'out', 'tasks', 'domains', 'model'} & set(flags.FLAGS)
"""
    done = commands.run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
