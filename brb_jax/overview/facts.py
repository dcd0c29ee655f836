"""Cases ─► what can be said of them without a model's weights: counts, lengths, sharing, scores of guessers."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from brb_jax.config import BATCH_TOKENS
from brb_jax.data.case import CORRECT, Case
from brb_jax.tokens.packing import Work, plan
from brb_jax.tokens.request import TokenizedCase

# Rows are planned for a CPU, where a run is most likely to be tried first.
_BATCH_TOKENS = BATCH_TOKENS["cpu"]


@dataclasses.dataclass(frozen=True)
class Lengths:
    """Smallest, middle and greatest of some lengths."""

    min: int
    median: float
    max: int


@dataclasses.dataclass(frozen=True)
class Facts:
    """What is true of some cases.

    Attributes:
        cases: How many there are.
        contexts: How many different contexts they have.
        labels: For each option type, how often it has each label.
        guessers: For each way to guess without reading, how often it picks each option type, as a share of the cases.
            Of options that tie, each is picked by its part.
        chance: The accuracy of a uniformly random choice; None without cases.
        context_tokens: Tokens before the first scored one; None without a tokenizer or without cases.
        context_characters, context_bytes: Of context and query; bytes as UTF-8.
        overlong: Cases that do not fit the model's limit; None without a tokenizer.
        sharing: What a run on a CPU computes; None without a tokenizer.
        boundary_rules_differ, special_token_text: As in `run.json`; None without a tokenizer.
    """

    cases: int
    contexts: int
    labels: dict[str, dict[str, int]]
    guessers: dict[str, dict[str, float]]
    chance: float | None
    context_tokens: Lengths | None
    context_characters: Lengths | None
    context_bytes: Lengths | None
    overlong: int | None
    sharing: Work | None
    boundary_rules_differ: int | None
    special_token_text: int | None

    def to_json(self) -> dict[str, Any]:
        """As strict JSON values."""
        return dataclasses.asdict(self)


def describe(
    cases: Sequence[Case],
    tokenized: Sequence[TokenizedCase] | None,
    length_class: Callable[[int], int] = lambda length: 0,
) -> Facts:
    """Facts about cases.

    Args:
        cases: Sound ones.
        tokenized: The same cases as token ids; None without a tokenizer.
        length_class: The model's; see `build_forest`.
    """
    types = list(dict.fromkeys(type_ for case in cases for type_ in _types(case)))
    labels = sorted({option.label for case in cases for option in case.options})
    at: Counter[tuple[str, str]] = Counter((option.type, option.label) for case in cases for option in case.options)
    in_bytes = {context: len(context.encode()) for context in {case.context for case in cases}}
    return Facts(
        cases=len(cases),
        contexts=len(in_bytes),
        labels={type_: {label: at[type_, label] for label in labels} for type_ in types},
        guessers={name: _picks(cases, types, guess) for name, guess in GUESSERS.items()},
        chance=statistics.fmean(1 / len(case.options) for case in cases) if cases else None,
        context_tokens=None if tokenized is None else _lengths([case.context_tokens for case in tokenized]),
        context_characters=_lengths([len(case.context) + len(case.query) for case in cases]),
        context_bytes=_lengths([in_bytes[case.context] + len(case.query.encode()) for case in cases]),
        overlong=None if tokenized is None else sum(case.status == "overlong" for case in tokenized),
        sharing=None if tokenized is None else _sharing(tokenized, length_class),
        boundary_rules_differ=None if tokenized is None else sum(case.boundary_differs for case in tokenized),
        special_token_text=None if tokenized is None else sum(case.special_text for case in tokenized),
    )


def _first(case: Case) -> list[int]:
    return [0]


def _of_length(extreme: Callable[[Sequence[int]], int]) -> Callable[[Case], list[int]]:
    """Picks the options whose number of characters is the greatest or the least."""

    def guess(case: Case) -> list[int]:
        lengths = [len(option.text) for option in case.options]
        return [i for i, length in enumerate(lengths) if length == extreme(lengths)]

    return guess


GUESSERS: dict[str, Callable[[Case], list[int]]] = {
    "always_a": _first,
    "longest": _of_length(max),
    "shortest": _of_length(min),
}
"""Ways to guess that read neither context nor query. Each gives the options it cannot choose between."""


def _picks(cases: Sequence[Case], types: Sequence[str], guess: Callable[[Case], list[int]]) -> dict[str, float]:
    parts: dict[str, list[float]] = {type_: [] for type_ in types}
    for case in cases:
        picked = guess(case)
        for i in picked:
            parts[case.options[i].type].append(1 / len(picked))
    return {type_: math.fsum(of_type) / len(cases) for type_, of_type in parts.items()}


def _types(case: Case) -> list[str]:
    """The case's option types, `correct` first."""
    return sorted((option.type for option in case.options), key=lambda type_: (type_ != CORRECT, type_))


def _lengths(lengths: Sequence[int]) -> Lengths | None:
    return Lengths(min(lengths), statistics.median(lengths), max(lengths)) if lengths else None


def _sharing(tokenized: Sequence[TokenizedCase], length_class: Callable[[int], int]) -> Work:
    requests = [request for case in tokenized for request in case.requests]
    return plan(requests, batch_tokens=_BATCH_TOKENS, length_class=length_class).work
