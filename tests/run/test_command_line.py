"""What a user sees who mistypes: one short message that names flag and remedy, never a traceback."""

from __future__ import annotations

import json
import re
import sys

import commands
import pytest

COMPLETE = ["--model=/nowhere/model", "--data=/nowhere/data", "--out=/nowhere/out"]


def assert_refused(done, *says):
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("brb_jax: ") and "Traceback" not in done.stderr
    for text in says:
        assert text in done.stderr
    assert done.stderr.count("\n") <= 5


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([*COMPLETE, "--modle=x"], "Unknown command line flag 'modle'. Did you mean: model ?"),
        ([*COMPLETE, "--sharing=everything"], "--sharing=everything: value should be one of <tree|case|none>"),
        ([*COMPLETE, "--batch_tokens=0"], "--batch_tokens=0"),
        ([*COMPLETE, "--batch_tokens=99999999999"], "--batch_tokens=99999999999"),
        ([*COMPLETE, "--limit=few"], "--limit=few"),
        ([*COMPLETE, "--limit=-1"], "--limit=-1"),
        ([*COMPLETE, "model"], "unexpected argument 'model'; every setting is a flag"),
        (["model", *COMPLETE], "unexpected argument 'model'; every setting is a flag"),
        ([*COMPLETE, "--flagfile=/nowhere/run.flags"], "Unable to open flagfile"),
        (COMPLETE[1:], "brb_jax: --model is missing\n"),
        (COMPLETE[:1], "brb_jax: --data is missing; --out is missing\n"),
        (
            ["--model", "m", "d", "--limit", "1", "--out=o"],
            "--data is missing; unexpected argument 'd' (a value without",
        ),
        ([*COMPLETE, "a", "b"], "unexpected arguments 'a', 'b'; every setting"),
        (COMPLETE[::2], "--data is missing"),
        (COMPLETE[:2], "--out is missing"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_flags_that_are_wrong_by_themselves(flags, says):
    assert_refused(commands.run([*commands.MAIN, *flags]), says, "--help lists")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([*COMPLETE[:2], "--out="], "--out=: is empty (an unset variable?)"),
        (["--model= ", *COMPLETE[1:]], "--model= : is empty"),
        (["--model=https://x.y/z", *COMPLETE[1:]], "--model=https://x.y/z: https:// is neither read nor written"),
        (["--model=hf://a/b", *COMPLETE[1:]], "a model on the Hub is named owner/name"),
        ([COMPLETE[0], "--data=/nowhere,s3://x/y", COMPLETE[2]], "--data=s3://x/y: s3:// is neither read nor written"),
        ([*COMPLETE, "--process_id=1"], "--process_id is for one of several processes; add --distributed"),
        ([*COMPLETE, "--distributed"], "give --coordinator_address, --num_processes and --process_id"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_places_and_processes_that_cannot_be(flags, says):
    assert_refused(commands.run([*commands.MAIN, *flags]), says)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("  # the newest", "the flagfile's line '# the newest': a comment must begin in the first column"),
        ("--limit=3  # for now", "a comment needs a line of its own"),
        ('--model="my model"', "the quotes would be part of the value; leave them out"),
        ("--model='model'", "the quotes would be part of the value; leave them out"),
        ("--limit 3", "write --name=value, without white space"),
        ("limit=3", "a line is a flag, --name=value"),
        ("  --flagfile=other.flags", "--flagfile=… must begin in the first column"),
    ],
)
def test_pitfall_47_flagfile_lines_that_mean_something_else(line, says, tmp_path):
    outer, inner = tmp_path / "outer.flags", tmp_path / "inner.flags"
    inner.write_text("# A comment.\n// Another.\n\n" + line + "\n")
    outer.write_text("\n".join([*COMPLETE, f"--flagfile={inner}"]))
    assert_refused(commands.run([*commands.MAIN, f"--flagfile={outer}"]), says)


def test_help_is_no_failure():
    for flag in ("--help", "-h"):
        done = commands.run([*commands.MAIN, flag])
        assert done.returncode == 0 and done.stderr == ""
        assert "python -m brb_jax.main --model=… --data=… --out=…" in done.stdout
        assert "--model: Required. A converted directory" in done.stdout
        assert "--sharing: <tree|case|none>" in done.stdout
        assert "--coordinator_address" in done.stdout and "logtostderr" not in done.stdout


def test_a_mistyped_flag_need_not_wait_for_jax():
    code = "import sys, brb_jax.main; assert 'jax' not in sys.modules and 'transformers' not in sys.modules"
    done = commands.run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("when", ["signal.raise_signal(signal.SIGINT)", "gc.callbacks.append(at_once); gc.collect()"])
def test_ctrl_c_is_told_in_a_line_even_where_python_would_drop_it(when):
    code = f"""
import gc, signal, time
from brb_jax import command_line
def at_once(phase, info):
    gc.callbacks.clear()
    signal.raise_signal(signal.SIGINT)
def command():
    {when}
    time.sleep(60)
command_line.run("preview", command)
"""
    done = commands.run([sys.executable, "-c", code])
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "preview: stopped\n")


SETTINGS = {
    "--mesh=data=3": "--mesh=data=3 does not fit 1 devices",
    "--mesh=date=8": "--mesh: unknown axis 'date'; the axes are data, fsdp, expert, tensor",
    "--mesh=data": "--mesh: '' is not a whole number; write it as data=-1,tensor=2",
    "--mesh=data=2,data=4": "--mesh: the axis 'data' is given twice",
    "--mesh=data=-1,fsdp=-1": "--mesh: only one axis may be -1",
    "--buckets=128,many": "--buckets: 'many' is not a whole number; write it as 512,1024",
    "--buckets=128": "slots, but the longest row of --buckets has 128. Add a longer one",
    "--buckets=128,99999999999": "--buckets: 99999999999 is above 4194304, the most that can be planned for",
    "--max_length=4096": "add --allow_extrapolation",
    "--model=/nowhere/model": "/nowhere/model does not exist",
    "--model=WITHOUT_TOKENIZER": "no tokenizer.json that can be read; put the model's there",
    "--data=/nowhere/data": "/nowhere/data: there is no such file or directory",
    "--out=/dev/null/out": "--out=/dev/null/out cannot be written in (Not a directory); name another",
    "--out=/dev/null": "--out=/dev/null cannot be written in (Not a directory); name another",
    "--out=/proc/nope/x": "--out=/proc/nope/x cannot be written in (No such file or directory); name another",
    "--out=DATA": "holds benchmark files, which results must not be mixed with; name another",
}


@pytest.fixture(scope="module")
def messages(sources, models, data, tmp_path_factory):
    """What `main` says to each change of sound settings: all in one process, because each takes seconds of imports."""
    folder = tmp_path_factory.mktemp("settings")
    (folder / "model").mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / "model" / name).symlink_to(sources["llama"] / name)
    sound = [f"--model={models['llama']}", f"--data={data}", f"--out={folder / 'out'}", "--compilation_cache="]
    places = {"WITHOUT_TOKENIZER": str(folder / "model"), "=DATA": f"={data}"}
    changes = {change: change for change in SETTINGS}
    for name, place in places.items():
        changes = {change: flag.replace(name, place) for change, flag in changes.items()}
    code = f"""
import json
from absl import flags
from absl.testing import flagsaver
from brb_jax.main import define_flags, main
define_flags()
said = {{}}
for change, flag in {changes!r}.items():
    with flagsaver.flagsaver():
        flags.FLAGS(["brb_jax", *{sound!r}, flag])
        try:
            main()
        except SystemExit as exit_:
            said[change] = exit_.code
print(json.dumps(said))
"""
    done = commands.run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("change", SETTINGS)
def test_settings_that_do_not_fit(change, messages):
    message = messages[change]
    assert message.startswith("brb_jax: ") and SETTINGS[change] in message and message.count("\n") <= 1


def test_a_mistaken_out_is_found_before_the_data_is_read(tmp_path):
    (tmp_path / "file").touch()
    for model in ("/nowhere/model", "baseline:nearest"):
        done = commands.run(
            [*commands.MAIN, f"--model={model}", "--data=/nowhere/data", f"--out={tmp_path / 'file' / 'out'}"]
        )
        assert_refused(done, f"--out={tmp_path / 'file' / 'out'} cannot be written in")
    assert_refused(
        commands.run([*commands.MAIN, COMPLETE[0], f"--data={tmp_path}", f"--out={tmp_path / '.'}"]), "--out="
    )


def test_a_case_that_fits_no_row_is_named_as_in_its_file(messages, raw_cases):
    named = re.match(r"brb_jax: case (\S+), option ([A-D]) takes \d+ slots", messages["--buckets=128"])
    assert named is not None
    assert named[2] in {option["label"] for option in raw_cases[named[1]]["options"]}
