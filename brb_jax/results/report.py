"""Results and samples ─► `report.html`: one page that needs nothing but itself."""

from __future__ import annotations

import dataclasses
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
from etils import epath

import brb_jax
from brb_jax.data.case import Case
from brb_jax.results import atomic, table
from brb_jax.results.sample import Sample

MAX_CASES = 2000
PROMPT_TAIL = 600
# What a reader looks for first; a page that cannot hold every case leaves out the last.
OUTCOMES = ("error", "wrong", "overlong", "correct")


def write_report(
    path: epath.PathLike,
    results: Mapping[str, Any],
    samples: Sequence[Sample],
    run: Mapping[str, Any],
    prompt_tails: Mapping[str, str],
    references: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Writes the page.

    It works from the disk, without a network, on a phone and on paper. It holds at most `MAX_CASES` cases and says how
    many it left out. Whatever text cases and options hold is shown as text.

    Args:
        path: The file to write.
        results: From `metrics.summarise`.
        samples: The samples the results were made from.
        run: What `run.json` holds. `settings`, `devices` and `written` head the page (of a baseline, which has no
            devices, only the settings that concern it); all of it is at the end.
        prompt_tails: By case id, the end of the prompt; see `prompt_tail`.
        references: By name, how other readers (the baselines) do on the same cases, shown beside; each from
            `metrics.reference`.
    """
    shown = choose_cases(samples)
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    environment.filters |= {
        "percent": table.percent,
        "percent_interval": table.percent_interval,
        "accuracy_interval": table.accuracy_interval,
        "excluded": table.excluded,
        "combine": lambda first, second: {**first, **second},
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False),
    }
    source = importlib.resources.files(__package__).joinpath("report.html.jinja").read_text("utf-8")
    page = environment.from_string(source).render(
        version=brb_jax.__version__,
        results=results,
        references=references or {},
        model=run["settings"]["model"],
        facts=_facts(run),
        run=run,
        total=len(samples),
        left_out=_left_out(samples, shown),
        cases=[_case_record(sample, prompt_tails[sample.case_id]) for sample in shown],
    )
    atomic.write_text(path, page)


def prompt_tail(case: Case) -> str:
    """The last `PROMPT_TAIL` characters of a case's prompt, without building the prompt."""
    return (case.context[-PROMPT_TAIL:] + case.query)[-PROMPT_TAIL:]


def choose_cases(samples: Sequence[Sample], limit: int = MAX_CASES) -> list[Sample]:
    """At most `limit` samples, in the order given.

    Errors are taken first, then wrong answers, overlong cases and correct answers; of the first group that does not
    fit whole, evenly spaced ones.
    """
    room = limit
    chosen: set[int] = set()
    for outcome in OUTCOMES:
        indices = [i for i, sample in enumerate(samples) if _outcome(sample) == outcome]
        taken = min(room, len(indices))
        chosen.update(indices[i * len(indices) // taken] for i in range(taken))
        room -= taken
    return [samples[i] for i in sorted(chosen)]


def _outcome(sample: Sample) -> str:
    if sample.status != "ok":
        return sample.status
    return "correct" if sample.correct else "wrong"


def _left_out(samples: Sequence[Sample], shown: Sequence[Sample]) -> dict[str, int]:
    """How many cases of each outcome the page does not hold."""
    numbers = {
        outcome: sum(_outcome(s) == outcome for s in samples) - sum(_outcome(s) == outcome for s in shown)
        for outcome in OUTCOMES
    }
    return {outcome: number for outcome, number in numbers.items() if number}


def _case_record(sample: Sample, tail: str) -> dict[str, Any]:
    return dataclasses.asdict(sample) | {"outcome": _outcome(sample), "tail": tail[-PROMPT_TAIL:]}


def _facts(run: Mapping[str, Any]) -> dict[str, str]:
    settings, devices = run["settings"], run["devices"]
    facts = {"data": ", ".join(settings["data"])}
    if devices is not None:
        names = ("selection", "param_dtype", "activation_dtype", "boundary", "bos", "overlong")
        # A model of the user's own settles its precision itself.
        facts |= {name: settings[name] for name in names if settings[name] is not None}
        facts["devices"] = f"{devices['count']} × {devices['kind']}"
    return {**facts, "written": run["written"]}
