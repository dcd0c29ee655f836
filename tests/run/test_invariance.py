"""What must not change a score: devices, mesh, sharing, row lengths, batch size. All are held to the truth."""

from __future__ import annotations

import json

import pytest
from samples_of_runs import assert_scores, read_json, read_samples

from brb_jax import run
from brb_jax.config import RunConfig

OPTIONS = (("A", "wool", "correct"), ("B", "shoe peak", "random_wrong"), ("C", "nest", "retrieval_similar"))


@pytest.fixture
def evaluate(data, tmp_path):
    """Runs on the test files, and returns the samples."""

    def evaluate(model, **settings):
        run.evaluate(RunConfig(model=str(model), data=(str(data),), out=str(tmp_path), **settings))
        return read_samples(tmp_path)

    return evaluate


@pytest.mark.parametrize(
    ("family", "devices", "mesh"),
    [
        ("gemma3", 1, {}),
        ("gemma3", 2, {"tensor": 2}),
        ("llama", 4, {"data": 2, "fsdp": 2}),
        ("gemma3", 8, {"data": 2, "fsdp": 2, "tensor": 2}),
        ("llama", 8, {"data": 2, "fsdp": 2, "tensor": 2}),
        # More shards than key/value heads: those are then whole on every device.
        ("llama", 8, {"tensor": 8}),
    ],
)
def test_meshes(family, devices, mesh, evaluate, models, truth, on_devices):
    on_devices(devices)
    assert_scores(evaluate(models[family], mesh=mesh, max_buckets=1), truth[family])


@pytest.mark.parametrize(
    "settings",
    [
        {"sharing": "case", "buckets": (512,)},
        {"sharing": "none", "max_buckets": 1},
        {"buckets": (333, 700)},
        {"batch_tokens": 4096, "max_buckets": 1},
    ],
    ids=str,
)
def test_sharing_row_lengths_and_batch_size(settings, evaluate, models, truth, on_devices):
    on_devices(1)
    assert_scores(evaluate(models["llama"], **settings), truth["llama"])


@pytest.mark.parametrize(("cases", "devices"), [(5, 2), (7, 3), (5, 8), (22, 8)])
def test_pitfall_45_every_case_once_over_any_number_of_shards(cases, devices, evaluate, models, truth, on_devices):
    on_devices(devices)
    head = dict(list(truth["llama"].items())[:cases])
    assert_scores(evaluate(models["llama"], limit=cases, buckets=(512,), sharing="case"), head)


def test_pitfall_20_a_short_and_a_long_case_at_any_batch_size(models, tmp_path, on_devices):
    write_cases(tmp_path, [1, 60])
    on_devices(1)
    scores = []
    for rows in (1, 2, 8):
        out = tmp_path / str(rows)
        config = RunConfig(
            model=str(models["llama"]),
            data=(str(tmp_path),),
            out=str(out),
            sharing="none",
            buckets=(256,),
            batch_tokens=256 * rows,
        )
        run.evaluate(config)
        scores.append([option["logprob"] for sample in read_samples(out) for option in sample["options"]])
    for others in scores[1:]:
        assert others == pytest.approx(scores[0], rel=0, abs=1e-5)


def test_pitfall_25_fifty_lengths_compile_once_a_bucket(models, tmp_path, on_devices, monkeypatch):
    write_cases(tmp_path, range(1, 51))
    made = []
    load_model = run.load_model
    monkeypatch.setattr(run, "load_model", lambda *arguments: made.append(load_model(*arguments)) or made[-1])
    on_devices(1)
    run.evaluate(RunConfig(model=str(models["llama"]), data=(str(tmp_path),), out=str(tmp_path / "out")))
    assert len({sample["context_tokens"] for sample in read_samples(tmp_path / "out")}) == 50
    buckets = read_json((tmp_path / "out/run.json").read_text())["plan"]["buckets"]
    assert 1 <= made[0].num_traces <= len(buckets) <= 4


def write_cases(folder, lengths):
    """One case for each length of context, in words."""
    cases = [
        {
            "id": length,
            "context": " ".join(f"{(7 * i + length) % 50:02}" for i in range(length)) + "\n",
            "query": "next:",
            "options": [{"label": label, "text": text, "type": kind} for label, text, kind in OPTIONS],
            "answer": "A",
        }
        for length in lengths
    ]
    (folder / "words_MemoryRet_M50_que_ans.json").write_text(json.dumps(cases))
