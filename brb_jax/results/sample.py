"""One evaluated case, as it stands in a line of `samples.jsonl`."""

from __future__ import annotations

import dataclasses
from typing import Literal

Selection = Literal["logprob", "ppl", "bytes"]


@dataclasses.dataclass(frozen=True)
class OptionScore:
    """What the model gave one option: summed log-probability in nats over `tokens` scored tokens.

    `greedy` is true when each scored token was the model's most probable one.
    """

    logprob: float
    tokens: int
    greedy: bool


@dataclasses.dataclass(frozen=True)
class OptionResult:
    """An option with its score. The four last fields are None where nothing was scored (`overlong`; a baseline).

    Attributes:
        bytes: UTF-8 length of `text`.
        logprob: None too where the score is not finite; the sample is then an `error` and its note says so.
        ppl: exp(−logprob / tokens). None too where that exceeds the largest float (below −709 nats a token).
    """

    label: str
    type: str
    text: str
    bytes: int
    logprob: float | None
    tokens: int | None
    ppl: float | None
    greedy: bool | None


@dataclasses.dataclass(frozen=True)
class Sample:
    """One case's outcome. `prediction`, `correct` and `chosen_type` are None unless `status` is `ok`.

    Attributes:
        options: In the case's order.
        tied: Labels that share the best score with the prediction, itself included; empty without a tie.
        predictions: The label each selection rule picks (`logprob`, `ppl`, `bytes`), for accuracies side by
            side; empty unless `status` is `ok`. All are the choice of a baseline, which has no scores.
        context_tokens: None for a baseline, which has no tokens.
        context_id: A hash of the case's context: cases that share a context share it.
        truncated: Tokens of the context that were cut off; see `context_tokens`, which counts them.
    """

    case_id: str
    domain: str
    task: str
    k: int | None
    edit_k: int | None
    m: int
    answer: str
    prediction: str | None
    correct: bool | None
    chosen_type: str | None
    status: Literal["ok", "overlong", "error"]
    note: str | None
    context_tokens: int | None
    options: tuple[OptionResult, ...]
    tied: tuple[str, ...]
    predictions: dict[str, str]
    context_id: str
    truncated: int = 0
