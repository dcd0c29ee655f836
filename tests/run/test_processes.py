"""Several processes, as on a pod: the same results, no hang, and one clear error when one of them is at fault."""

from __future__ import annotations

import socket
import sys

import commands
import pytest
from samples_of_runs import assert_scores, read_json, read_samples

LAUNCHER = ("bash", str(commands.ROOT / "launch/local_processes.sh"))


@pytest.fixture
def flags(models, data, compilation_cache, tmp_path):
    return [f"--model={models['llama']}", f"--data={data}", f"--out={tmp_path / 'out'}", compilation_cache]


def test_two_processes_of_four_devices(flags, truth, tmp_path):
    # Not compared byte for byte with one process: batches are of another shape, so sums round otherwise.
    done = commands.run([*LAUNCHER, *flags], PROCESSES="2", DEVICES="4", XLA_FLAGS="")
    assert done.returncode == 0, done.stderr
    samples = read_samples(tmp_path / "out")
    assert_scores(samples, truth["llama"])
    results = read_json((tmp_path / "out/results.json").read_text())
    assert results["overall"]["accuracy"] == sum(sample["correct"] for sample in samples) / len(samples)
    run = read_json((tmp_path / "out/run.json").read_text())
    assert (run["devices"]["processes"], run["devices"]["count"]) == (2, 8)
    assert done.stderr.count("scored 22 of 22 cases") == 1, "process 0 alone speaks"


def test_pitfall_45_one_case_on_two_processes(flags, truth, tmp_path):
    done = commands.run([*LAUNCHER, *flags, "--limit=1", "--sharing=none"], XLA_FLAGS="")
    assert done.returncode == 0, done.stderr
    assert_scores(read_samples(tmp_path / "out"), dict(list(truth["llama"].items())[:1]))


@pytest.mark.parametrize("variable", ["PROCESSES", "DEVICES"])
@pytest.mark.parametrize("value", ["0", "-1", "two", "2x"])
def test_how_many_must_be_a_number(variable, value):
    done = commands.run(LAUNCHER, **{variable: value})
    says = f"local_processes.sh: {variable}={value} is not a whole number of at least 1\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", says)


def start_two(flags, *of_each):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    joined = [f"--coordinator_address=127.0.0.1:{port}", "--num_processes=2", "--distributed"]
    return [
        commands.start([*commands.MAIN, *flags, *joined, f"--process_id={i}", own]) for i, own in enumerate(of_each)
    ]


def assert_both_end(processes, *says):
    for process, expected in zip(processes, says, strict=True):
        _, stderr = process.communicate(timeout=240)  # JAX's own farewell takes five minutes
        assert process.returncode == 1 and expected in stderr and "Traceback" not in stderr


def test_processes_that_were_given_different_files(flags, data, tmp_path):
    other = data / "words_MemoryRet_M6_que_ans.json"
    says = "brb_jax: processes [1] disagree with process 0 on what to score"
    assert_both_end(start_two(flags, f"--data={data}", f"--data={other}"), says, says)
    assert not (tmp_path / "out").exists()


def test_an_error_that_process_0_alone_can_see(flags, data, tmp_path):
    (tmp_path / "out/journal").mkdir(parents=True)
    (tmp_path / "out/journal/fingerprint.json").write_text('{"model": "another"}')
    says = ("holds the scores of another evaluation", "brb_jax: process 0 failed; it tells why")
    assert_both_end(start_two(flags, "--dtype=float32", "--dtype=float32"), *says)


def test_pitfall_46_importing_every_module_touches_no_backend():
    code = """
import importlib, pkgutil, socket
import jax, brb_jax
from absl import flags
names = [module.name for module in pkgutil.walk_packages(brb_jax.__path__, "brb_jax.")]
assert "brb_jax.run" in names and "brb_jax.models.decoder" in names
for name in names:
    importlib.import_module(name)
    for flag in flags.FLAGS.get_flags_for_module(name):  # Commands are not made to be imported side by side.
        delattr(flags.FLAGS, flag.name)
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=1, process_id=0)
assert jax.distributed.is_initialized() and jax.process_count() == 1
"""
    done = commands.run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
