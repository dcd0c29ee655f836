"""Samples and results ─► the files of a run directory, and back. Strict JSON: no NaN, no infinity."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from etils import epath

from brb_jax.results import atomic
from brb_jax.results.sample import OptionResult, Sample


def write_samples(path: epath.PathLike, samples: Iterable[Sample]) -> None:
    """Writes `samples.jsonl`, one line per sample in the order given.

    Equal samples make equal bytes. Lines are ASCII: some readers take U+2028 and its like for line ends.
    """
    lines = (json.dumps(dataclasses.asdict(sample), allow_nan=False) + "\n" for sample in samples)
    atomic.write_text(path, "".join(lines))


def read_samples(path: epath.PathLike) -> list[Sample]:
    """Reads what `write_samples` wrote.

    Raises:
        ValueError: A line is not a sample; names the file and the line.
    """
    samples = []
    with epath.Path(path).open() as file:
        for number, line in enumerate(file, start=1):
            try:
                samples.append(_sample(json.loads(line)))
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(f"{path}, line {number}: not a line of samples.jsonl ({error})") from error
    return samples


def write_json(path: epath.PathLike, value: Mapping[str, Any]) -> None:
    """Writes `results.json` or `run.json`, keys in the order given."""
    atomic.write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _sample(fields: dict[str, Any]) -> Sample:
    options = tuple(OptionResult(**option) for option in fields["options"])
    return Sample(**{**fields, "options": options, "tied": tuple(fields["tied"])})
