"""`--param_dtype=int8` scores as a dense float64 decoder whose matrices were rounded by hand."""

from __future__ import annotations

import shutil

import commands
import numpy as np
import pytest
from dense_decoder import DenseDecoder, option_scores
from safetensors.numpy import load_file, save_file
from samples_of_runs import assert_scores, logprobs, read_json, read_samples

from brb_jax.config import RunConfig
from brb_jax.run import evaluate


def rounded(matrix: np.ndarray) -> np.ndarray:
    """Each row, an output channel as Hugging Face stores it, to multiples of its largest absolute value / 127."""
    scale = np.abs(matrix).max(1, keepdims=True) / 127
    return np.rint(matrix / scale) * scale


@pytest.fixture(scope="module")
def rounded_truth(sources, raw_cases, tmp_path_factory) -> dict[str, dict[str, list[float]]]:
    """As `truth`, of models all of whose matrices are rounded."""
    found = {}
    for family, source in sources.items():
        folder = shutil.copytree(source, tmp_path_factory.mktemp("rounded") / family)
        tensors = load_file(folder / "model.safetensors")
        save_file({n: rounded(t) if t.ndim == 2 else t for n, t in tensors.items()}, folder / "model.safetensors")
        found[family] = {
            case_id: option_scores(DenseDecoder(folder), source / "tokenizer.json", case, bos=family == "gemma3")
            for case_id, case in raw_cases.items()
        }
    return found


@pytest.mark.parametrize(
    ("family", "devices", "mesh"),
    [
        ("llama", 1, {}),
        ("gemma3", 1, {}),
        ("llama", 8, {"data": 2, "fsdp": 2, "tensor": 2}),
        ("gemma3", 8, {"data": 2, "fsdp": 2, "tensor": 2}),
    ],
)
def test_scores(family, devices, mesh, models, data, truth, rounded_truth, on_devices, tmp_path):
    on_devices(devices)
    evaluate(
        RunConfig(
            model=str(models[family]),
            data=(str(data),),
            out=str(tmp_path),
            param_dtype="int8",
            mesh=mesh,
            max_buckets=1,
        )
    )
    samples = read_samples(tmp_path)
    assert_scores(samples, rounded_truth[family])
    differences = [
        abs(ours - exact)
        for case_id, scores in logprobs(samples).items()
        for ours, exact in zip(scores, truth[family][case_id], strict=True)
    ]
    assert 1e-3 < max(differences) < 1  # the rounding itself shows


def test_on_the_command_line(sources, data, compilation_cache, tmp_path):
    """A Hugging Face directory; the run says what its parameters were, and a restart with others is refused."""
    command = [*commands.MAIN, f"--model={sources['llama']}", f"--data={data}", f"--out={tmp_path}", compilation_cache]
    done = commands.run([*command, "--dtype=bfloat16", "--param_dtype=int8"])
    assert done.returncode == 0, done.stderr
    run = read_json((tmp_path / "run.json").read_text())
    assert run["fingerprint"]["param_dtype"] == "int8" and run["settings"]["activation_dtype"] == "bfloat16"
    assert "qwix" in run["versions"]
    assert "<dd>int8</dd>" in (tmp_path / "report.html").read_text()
    refused = commands.run([*command, "--dtype=bfloat16"])
    assert refused.returncode == 1 and "param_dtype: 'int8' there, 'bfloat16' now" in refused.stderr
