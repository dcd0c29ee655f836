"""Reads a run directory strictly, and compares it with the truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest


def read_json(text: str):
    """Strict JSON: NaN and Infinity are refused."""

    def refuse(constant: str):
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def read_samples(directory: Path) -> list[dict]:
    return [read_json(line) for line in (directory / "samples.jsonl").read_text().splitlines()]


def logprobs(samples: Sequence[Mapping]) -> dict[str, list[float]]:
    return {sample["case_id"]: [option["logprob"] for option in sample["options"]] for sample in samples}


def assert_scores(samples: Sequence[Mapping], truth: Mapping[str, Sequence[float]]) -> None:
    """Every option within 1e-5 nat of the truth, and the predictions those of the true scores."""
    assert [sample["case_id"] for sample in samples] == list(truth)
    for sample in samples:
        true_scores = truth[sample["case_id"]]
        assert [option["logprob"] for option in sample["options"]] == pytest.approx(true_scores, rel=0, abs=1e-5)
        best = max(range(len(true_scores)), key=true_scores.__getitem__)
        assert sample["prediction"] == sample["options"][best]["label"]
