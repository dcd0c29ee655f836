"""Samples ─► `results.json`: what share was right, what the errors were, and how sure one can be of it.

Every number is computed in the same way for all cases, for each value of each dimension (task, domain, k,
edit_k, m) and for each combination of values that occurs. A number that has no cases to come from is None.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from brb_jax.data.case import CORRECT, TASKS
from brb_jax.data.filename import FileName
from brb_jax.results import statistics
from brb_jax.results.sample import Sample, Selection
from brb_jax.results.selection import RULES
from brb_jax.results.statistics import ratio, wilson_interval

DIMENSIONS = ("task", "domain", "k", "edit_k", "m")
OLD_RULE = "old_rule"
SIMILAR_TYPES = {"retrieval_similar", "surface_similar"}


def summarise(
    samples: Sequence[Sample], selection: Selection | None = "logprob", skipped: Sequence[FileName] = ()
) -> dict[str, Any]:
    """Everything `results.json` holds, as strict JSON values.

    Args:
        samples: The run's samples.
        selection: The rule the samples' predictions follow, None of a baseline's; recorded only.
        skipped: The file of each case that was left out for a fault, once a case. Counted only.

    Returns:
        `overall`: one cell (see `_cell`); `by`: for each dimension a list of cells, each with that
        dimension's value; `combinations`: a list of cells with the values of all dimensions.
    """
    return {
        "selection": selection,
        "interval": 0.95,
        "bootstrap": {
            "resamples": statistics.BOOTSTRAP_RESAMPLES,
            "seed": statistics.BOOTSTRAP_SEED,
            "over": "context_id",
        },
        "overall": _cell(samples, len(skipped)),
        "by": {dimension: _cells((dimension,), samples, skipped) for dimension in DIMENSIONS},
        "combinations": _cells(DIMENSIONS, samples, skipped),
    }


def reference(samples: Sequence[Sample], labels: Mapping[str, str], skipped: Sequence[FileName] = ()) -> dict[str, Any]:
    """How another reader does on the cases that count in `summarise`.

    Args:
        samples: The run's samples.
        labels: What the other chooses, by `case_id`; without the cases it cannot read.
        skipped: As in `summarise`.

    Returns:
        `overall` and `by`, as in `summarise`, of cells with `cases`, the number of `ok` cases; `answered`, of how many
        of them `labels` has a choice; and `accuracy`, None unless that is all of them.
    """

    def cell(members: Sequence[Sample], _: int) -> dict[str, Any]:
        ok = [sample for sample in members if sample.status == "ok"]
        answered = sum(sample.case_id in labels for sample in ok)
        correct = sum(labels.get(sample.case_id) == sample.answer for sample in ok)
        return {
            "cases": len(ok),
            "answered": answered,
            "accuracy": ratio(correct, len(ok)) if answered == len(ok) else None,
        }

    return {
        "overall": cell(samples, len(skipped)),
        "by": {dimension: _cells((dimension,), samples, skipped, cell) for dimension in DIMENSIONS},
    }


def _cells(
    dimensions: Sequence[str],
    samples: Sequence[Sample],
    skipped: Sequence[FileName],
    cell: Callable[[Sequence[Sample], int], dict[str, Any]] | None = None,
) -> list[dict[str, Any]]:
    """A cell, by default as `_cell` makes it, for every combination of the dimensions' values that occurs."""
    groups: dict[tuple, tuple[list[Sample], list[FileName]]] = {}
    for sample in samples:
        groups.setdefault(tuple(getattr(sample, d) for d in dimensions), ([], []))[0].append(sample)
    for name in skipped:
        groups.setdefault(tuple(getattr(name, d) for d in dimensions), ([], []))[1].append(name)
    return [
        dict(zip(dimensions, values, strict=True)) | (cell or _cell)(members, len(left_out))
        for values, (members, left_out) in sorted(groups.items(), key=lambda group: _order(group[0]))
    ]


def _order(values: tuple) -> list[tuple]:
    """Sorts tasks as the benchmark lists them, and None before numbers."""
    tasks = list(TASKS)
    return [(tasks.index(v), "") if v in tasks else (-1, 0) if v is None else (len(tasks), v) for v in values]


def _cell(samples: Sequence[Sample], skipped: int) -> dict[str, Any]:
    """The numbers of one group of cases.

    All but the counts of cases regard `ok` cases only; errors are `ok` cases with a wrong prediction.

    Returns:
        cases, ok, overlong, error, skipped: Counts; `cases` is the sum of the others.
        truncated: How many of the `ok` cases had their context cut.
        accuracy, wilson: Share of correct predictions and its 95 % interval.
        contexts, bootstrap: Number of different contexts; 95 % interval over them where cases share contexts.
        chance: Expected accuracy of a uniformly random choice.
        tied, accuracy_tie_credit: Cases whose best score is shared; the accuracy if a case with k tied
            options gives 1/k where the correct one is among them.
        accuracy_by_rule: The accuracy under each selection rule.
        wrong_types: For each type, see `_wrong_types`.
        update_rate: Correct predictions among those that are correct or follow the old rule, where that is
            offered.
        retrieval_bias: Share of predictions of the similar option, where one is offered.
        labels: How often each label was predicted, and was the answer.
        margin: Mean log-probability of the correct option minus that of the best wrong one, in nats; None of a
            baseline's choices, which have no scores.
        calibration: See `statistics.Calibration`; of the softmax over the options' log-probabilities,
            whatever the selection rule. None as the margin.
    """
    ok = [sample for sample in samples if sample.status == "ok"]
    correct = [sample.prediction == sample.answer for sample in ok]
    status = Counter(sample.status for sample in samples)
    credits = [_tie_credit(sample) for sample in ok]
    scored = [sample for sample in ok if _logprobs(sample)]
    return {
        "cases": len(samples) + skipped,
        "ok": len(ok),
        "overlong": status["overlong"],
        "error": status["error"],
        "skipped": skipped,
        "truncated": sum(sample.truncated > 0 for sample in ok),
        "correct": sum(correct),
        "accuracy": ratio(sum(correct), len(ok)),
        "wilson": wilson_interval(sum(correct), len(ok)),
        "contexts": len({sample.context_id for sample in ok}),
        "bootstrap": statistics.cluster_bootstrap_interval(correct, [sample.context_id for sample in ok]),
        "chance": ratio(sum(1 / len(sample.options) for sample in ok), len(ok)),
        "tied": sum(bool(sample.tied) for sample in ok),
        "accuracy_tie_credit": ratio(sum(credits), len(ok)),
        "accuracy_by_rule": {
            rule: ratio(sum(sample.predictions[rule] == sample.answer for sample in ok), len(ok)) for rule in RULES
        },
        "wrong_types": _wrong_types(ok),
        "update_rate": _update_rate(ok),
        "retrieval_bias": _retrieval_bias(ok),
        "labels": _labels(ok),
        "margin": float(np.mean([_margin(sample) for sample in scored])) if scored else None,
        "calibration": _calibration(scored),
    }


def _tie_credit(sample: Sample) -> float:
    if sample.tied:
        return (sample.answer in sample.tied) / len(sample.tied)
    return float(sample.prediction == sample.answer)


def _wrong_types(ok: Sequence[Sample]) -> dict[str, dict[str, Any]]:
    """How often each wrong type was chosen, against a random choice.

    Returns:
        By type: `count` of predictions and `offered`, the cases that offer it; `share` of all predictions,
            and
        `random_share` if options were drawn at random; `share_of_errors` with its 95 % interval `wilson`, and
        `random_share_of_errors` if every error were a draw from its case's wrong options.
    """
    # Cases differ in what they offer by task only, so few kinds of cases stand for all.
    kinds = Counter(_types(sample) for sample in ok)
    kinds_of_errors = Counter(_types(sample) for sample in ok if sample.prediction != sample.answer)
    chosen = Counter(sample.chosen_type for sample in ok)
    # Backwards, so that the last place a type has in any task counts: `random_wrong` stays last.
    known = [type_ for task in TASKS.values() for type_ in task.wrong_types][::-1]
    table = {}
    for type_ in sorted(set().union(*kinds) - {CORRECT}, key=known.index, reverse=True):
        offering = {types: cases for types, cases in kinds.items() if type_ in types}
        errors_offering = {types: cases for types, cases in kinds_of_errors.items() if type_ in types}
        random_errors = sum(cases / (len(types) - 1) for types, cases in errors_offering.items())
        table[type_] = {
            "count": chosen[type_],
            "offered": sum(offering.values()),
            "share": ratio(chosen[type_], len(ok)),
            "random_share": ratio(sum(cases / len(types) for types, cases in offering.items()), len(ok)),
            "share_of_errors": ratio(chosen[type_], kinds_of_errors.total()),
            "wilson": wilson_interval(chosen[type_], kinds_of_errors.total()),
            "random_share_of_errors": ratio(random_errors, kinds_of_errors.total()),
        }
    return table


def _update_rate(ok: Sequence[Sample]) -> dict[str, Any]:
    chosen = Counter(sample.chosen_type for sample in ok if OLD_RULE in _types(sample))
    updated, outdated = chosen[CORRECT], chosen[OLD_RULE]
    return {
        "rate": ratio(updated, updated + outdated),
        "wilson": wilson_interval(updated, updated + outdated),
        "correct": updated,
        "old_rule": outdated,
    }


def _retrieval_bias(ok: Sequence[Sample]) -> dict[str, Any]:
    offered = [sample for sample in ok if SIMILAR_TYPES & set(_types(sample))]
    count = sum(sample.chosen_type in SIMILAR_TYPES for sample in offered)
    return {
        "share": ratio(count, len(offered)),
        "wilson": wilson_interval(count, len(offered)),
        "random_share": ratio(sum(1 / len(sample.options) for sample in offered), len(offered)),
        "count": count,
        "offered": len(offered),
    }


def _labels(ok: Sequence[Sample]) -> dict[str, dict[str, int]]:
    predicted, answers = Counter(s.prediction for s in ok), Counter(s.answer for s in ok)
    labels = sorted({option.label for sample in ok for option in sample.options})
    return {label: {"predicted": predicted[label], "answer": answers[label]} for label in labels}


def _calibration(scored: Sequence[Sample]) -> dict[str, Any] | None:
    result = statistics.calibration(
        [_logprobs(sample) for sample in scored],
        [_index(sample, sample.answer) for sample in scored],
        [_index(sample, sample.predictions["logprob"]) for sample in scored],
    )
    return None if result is None else dataclasses.asdict(result)


def _margin(sample: Sample) -> float:
    logprobs = _logprobs(sample)
    answer = logprobs.pop(_index(sample, sample.answer))
    return answer - max(logprobs)


def _logprobs(sample: Sample) -> list[float]:
    return [option.logprob for option in sample.options if option.logprob is not None]


def _index(sample: Sample, label: str) -> int:
    return [option.label for option in sample.options].index(label)


def _types(sample: Sample) -> tuple[str, ...]:
    return tuple(sorted(option.type for option in sample.options))
