"""The three examples as the documentation runs them: the scores of the built-in decoder with the same weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from brb_jax import run
from brb_jax.config import RunConfig, RunError
from brb_jax.generator.file import write_file
from brb_jax.generator.spec import FileSpec
from brb_jax.results.journal import JournalError

ROOT = Path(__file__).parents[2]
SIGNATURES = {"linen_model": "packed", "nnx_model": "tree", "plain_function": "plain"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A working directory with the examples' weights and a few cases."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        patch.chdir(folder)
        from examples import linen_model, tiny_llama

        tiny_llama.write(tiny_llama.FOLDER)
        linen_model.save()
        for task, knobs in (("MemoryRet", {}), ("MemoryRev", {"edit_k": 1})):
            write_file(folder / "data", FileSpec(domain="words", task=task, m=5, operators=2, cases=2, **knobs))
        yield folder


def evaluate(model: str, out: Path, **settings) -> None:
    run.evaluate(RunConfig(model=model, data=("data",), out=str(out), max_buckets=1, batch_tokens=1, **settings))


def scores(out: Path) -> np.ndarray:
    samples = map(json.loads, (out / "samples.jsonl").read_text().splitlines())
    return np.array([option["logprob"] for sample in samples for option in sample["options"]])


@pytest.fixture(scope="module")
def built_in(folder):
    evaluate("tiny_llama", folder / "built_in", mesh={"tensor": 8})
    return scores(folder / "built_in")


@pytest.fixture(scope="module", params=SIGNATURES)
def finished(request, folder):
    evaluate(f"examples.{request.param}:build", folder / request.param, mesh={"fsdp": 2, "tensor": 4})
    return request.param


def test_same_scores_as_the_built_in_decoder(finished, folder, built_in):
    found = scores(folder / finished)
    assert len(found) == 2 * 3 + 2 * 4 and np.isfinite(found).all()
    # Sums of about 125 nat, over other meshes: of each of their terms the last float32 bit may differ, by processor.
    np.testing.assert_allclose(found, built_in, rtol=2 * np.finfo(np.float32).eps, atol=0)


def test_the_record_names_the_model(finished, folder):
    record = json.loads((folder / finished / "run.json").read_text())
    model = record["model"]
    assert model["source"] == "own model"
    assert model["config"]["name"] == f"examples.{finished}:build"
    assert model["config"]["signature"] == SIGNATURES[finished]
    assert model["config"]["returns"] == ("logits" if finished == "plain_function" else "hidden states")
    assert model["config"]["source_file"] == str(ROOT / "examples" / f"{finished}.py")
    assert model["config"]["source_sha256"] in record["fingerprint"]["model"]
    assert model["config"]["parameters_sha256"] in record["fingerprint"]["model"]
    checkpoint = f"{folder / 'tiny_llama/linen'}, params" if finished == "linen_model" else None
    assert model["config"]["checkpoint"] == checkpoint
    assert record["settings"]["sharing"] == ("tree" if finished == "nnx_model" else "none")


def test_a_finished_run_scores_nothing_again(finished, folder, monkeypatch):
    before = (folder / finished / "samples.jsonl").read_bytes()
    monkeypatch.setattr(run, "load_own_model", None)
    evaluate(f"examples.{finished}:build", folder / finished)
    assert (folder / finished / "samples.jsonl").read_bytes() == before


def test_other_weights_are_another_model(finished, folder, tmp_path):
    """One number changes, in the checkpoint that the model names or in the arrays that it gives."""
    from safetensors.numpy import load_file, save_file

    from examples import linen_model, tiny_llama

    weights = tiny_llama.FOLDER / "model.safetensors"
    shutil.copy(weights, tmp_path)
    tensors = load_file(weights)
    tensors["model.norm.weight"][0] += 1
    try:
        save_file(tensors, weights)
        linen_model.save()
        with pytest.raises(JournalError, match="differs in model"):
            evaluate(f"examples.{finished}:build", folder / finished)
    finally:
        shutil.copy(tmp_path / weights.name, weights)
        linen_model.save()


@pytest.mark.parametrize("setting", [{"dtype": "float32"}, {"activation_dtype": "bfloat16"}], ids=str)
def test_precision_is_the_models_own(setting, folder, tmp_path):
    with pytest.raises(
        RunError, match=f"--{next(iter(setting))}: examples.nnx_model:build settles its precision itself"
    ):
        evaluate("examples.nnx_model:build", tmp_path, **setting)


@pytest.mark.parametrize("model", ["linen_model", "plain_function"])
def test_sharing_asked_of_a_model_that_cannot(model, folder, tmp_path):
    with pytest.raises(RunError, match=f"--sharing=tree: examples.{model}:build is a {SIGNATURES[model]} model, which"):
        evaluate(f"examples.{model}:build", tmp_path, sharing="tree")
