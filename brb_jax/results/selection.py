"""Option scores ─► which option is the model's answer, and the `Sample` that records it."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from brb_jax.data.case import Case, Option
from brb_jax.results.sample import OptionResult, OptionScore, Sample, Selection
from brb_jax.tokens.request import TokenizedCase

# Each rule gives an option a number; the highest is chosen. Perplexity is compared as its negative
# logarithm, the mean log-probability: the order is the same and nothing overflows.
RULES: Mapping[Selection, Callable[[Option, OptionScore], float]] = {
    "logprob": lambda option, score: score.logprob,
    "ppl": lambda option, score: score.logprob / score.tokens,
    "bytes": lambda option, score: score.logprob / utf8_length(option.text),
}


def sample(
    case: Case,
    tokenized: TokenizedCase,
    scores: Sequence[OptionScore] | None,
    selection: Selection = "logprob",
) -> Sample:
    """Records a case's outcome.

    A score that is NaN or infinite makes the case an `error` under every rule: whatever produced it, the
    order of the options says nothing. Options that share the best value are tied, and the lowest label is
    predicted.

    Args:
        case: The case.
        tokenized: Its requests, or why it has none.
        scores: One per option, in option order; None for a case that is not `ok`.
        selection: The rule `prediction`, `correct`, `chosen_type` and `tied` follow.

    Raises:
        ValueError: `scores` contradicts `tokenized.status`, or there is not one score an option.
    """
    if (scores is None) != (tokenized.status != "ok"):
        raise ValueError(f"{case.case_id} is {tokenized.status}, yet its scores are {scores}")
    if scores is not None and len(scores) != len(case.options):
        raise ValueError(f"{case.case_id} has {len(case.options)} options but {len(scores)} scores")

    faults = _faults(case, scores) if scores is not None else []
    best = {rule: _best(case, scores, rule) for rule in RULES} if scores is not None and not faults else {}
    tied = best.get(selection, [])
    chosen = tied[0] if tied else None
    return _recorded(
        case,
        prediction=chosen.label if chosen else None,
        correct=chosen.label == case.answer if chosen else None,
        chosen_type=chosen.type if chosen else None,
        status="error" if faults else tokenized.status,
        note="; ".join(filter(None, [tokenized.note, *faults])) or None,
        context_tokens=tokenized.context_tokens,
        truncated=tokenized.truncated,
        options=tuple(
            option_result(option, scores[i] if scores is not None else None) for i, option in enumerate(case.options)
        ),
        tied=tuple(option.label for option in tied) if len(tied) > 1 else (),
        predictions={rule: options[0].label for rule, options in best.items()},
    )


def chosen(case: Case, label: str) -> Sample:
    """Records the outcome of a case that was answered without scores, by a baseline: every rule gives its choice.

    Args:
        case: The case.
        label: Of the option chosen.
    """
    [choice] = [option for option in case.options if option.label == label]
    return _recorded(
        case,
        prediction=label,
        correct=label == case.answer,
        chosen_type=choice.type,
        status="ok",
        note=None,
        context_tokens=None,
        options=tuple(option_result(option, None) for option in case.options),
        tied=(),
        predictions=dict.fromkeys(RULES, label),
    )


def _recorded(case: Case, **outcome: Any) -> Sample:
    """A sample of what the case itself says, and the outcome."""
    return Sample(
        case_id=case.case_id,
        domain=case.domain,
        task=case.task,
        k=case.k,
        edit_k=case.edit_k,
        m=case.m,
        answer=case.answer,
        context_id=context_id(case.context),
        **outcome,
    )


@functools.lru_cache(maxsize=64)
def context_id(context: str) -> str:
    """Equal for equal contexts only. Cached, for many cases may share one long context."""
    return hashlib.sha256(context.encode()).hexdigest()[:16]


def option_result(option: Option, score: OptionScore | None) -> OptionResult:
    """An option with its score, in numbers strict JSON can hold."""
    if score is None:
        logprob = tokens = ppl = greedy = None
    else:
        logprob = score.logprob if math.isfinite(score.logprob) else None
        tokens, ppl, greedy = score.tokens, perplexity(score), score.greedy
    return OptionResult(option.label, option.type, option.text, utf8_length(option.text), logprob, tokens, ppl, greedy)


def perplexity(score: OptionScore) -> float | None:
    """exp(−logprob / tokens), or None where either is not a finite float.

    >>> round(perplexity(OptionScore(-12.31, 5, False)), 2)
    11.73
    """
    if not math.isfinite(score.logprob):
        return None
    try:
        return math.exp(-score.logprob / score.tokens)
    except OverflowError:
        return None


def utf8_length(text: str) -> int:
    return len(text.encode())


def _faults(case: Case, scores: Sequence[OptionScore]) -> list[str]:
    return [
        f"log-probability of option {option.label} is {score.logprob}"
        for option, score in zip(case.options, scores, strict=True)
        if not math.isfinite(score.logprob)
    ]


def _best(case: Case, scores: Sequence[OptionScore], rule: Selection) -> list[Option]:
    """The options with the highest value under `rule`, lowest label first."""
    values = [RULES[rule](option, score) for option, score in zip(case.options, scores, strict=True)]
    highest = max(values)
    best = [option for option, value in zip(case.options, values, strict=True) if value == highest]
    return sorted(best, key=lambda option: option.label)
