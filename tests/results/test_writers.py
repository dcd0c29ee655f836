import json
import math
import pathlib

import pytest
from result_cases import make_sample

from brb_jax.results.writers import read_samples, write_json, write_samples

SAMPLES = [
    make_sample([-12.31, -9.5, -20.0], tokens=[5, 2, 4], texts=["北京", 'a "b"\n\u2028c', "</script>"]),
    make_sample(None, case_id="words_MemoryCom_k2_M70/17", task="MemoryCom", k=2),
    make_sample([-1.0, math.nan, -math.inf, -900.0], task="MemoryRev", k=2, edit_k=1, case_id="f/é"),
    make_sample([-900.0, -900.0, -1e-300]),
]

DOCUMENTED = [
    "case_id",
    "domain",
    "task",
    "k",
    "edit_k",
    "m",
    "answer",
    "prediction",
    "correct",
    "chosen_type",
]
DOCUMENTED += ["status", "note", "context_tokens", "options"]


def refuse(constant):
    raise AssertionError(constant)


def test_a_line_is_as_documented(tmp_path):
    write_samples(tmp_path / "samples.jsonl", SAMPLES[:1])
    line = json.loads((tmp_path / "samples.jsonl").read_text(), parse_constant=refuse)
    assert list(line) == [*DOCUMENTED, "tied", "predictions", "context_id", "truncated"]
    assert list(line["options"][0]) == [
        "label",
        "type",
        "text",
        "bytes",
        "logprob",
        "tokens",
        "ppl",
        "greedy",
    ]
    assert line["case_id"] == "words_MemoryRet_M70/1" and line["k"] is None and line["correct"] is False
    assert line["options"][0] == {
        "label": "A",
        "type": "correct",
        "text": "北京",
        "bytes": 6,
        "logprob": -12.31,
        "tokens": 5,
        "ppl": math.exp(12.31 / 5),
        "greedy": False,
    }


def test_samples_read_back_equal_and_in_order(tmp_path):
    path = tmp_path / "samples.jsonl"
    write_samples(path, SAMPLES)
    assert read_samples(path) == SAMPLES
    assert len(path.read_text().splitlines()) == len(SAMPLES)
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=refuse)


def test_equal_samples_make_equal_bytes(tmp_path):
    write_samples(tmp_path / "a", SAMPLES)
    write_samples(tmp_path / "b", iter(read_samples(tmp_path / "a")))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_no_samples_make_an_empty_file(tmp_path):
    write_samples(tmp_path / "samples.jsonl", [])
    assert read_samples(tmp_path / "samples.jsonl") == []


def test_a_line_that_is_no_sample_is_named(tmp_path):
    path = tmp_path / "samples.jsonl"
    write_samples(path, SAMPLES[:2])
    path.write_text(path.read_text() + '{"case_id": "f/1"}\n')
    with pytest.raises(ValueError, match=r"samples\.jsonl, line 3"):
        read_samples(path)


def test_nan_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "results.json"
    write_json(path, {"accuracy": 0.5, "name": "北京"})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"accuracy": math.nan})
    assert json.loads(path.read_text()) == {"accuracy": 0.5, "name": "北京"}
    assert [p.name for p in tmp_path.iterdir()] == ["results.json"]


def test_a_crash_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "results.json"
    write_json(path, {"run": 1})

    def crash(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(pathlib.Path, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        write_json(path, {"run": 2})
    assert json.loads(path.read_text()) == {"run": 1}
