"""What the model is asked: the ids of one option behind its prompt, and which of them are scored."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
    """One option of one case as token ids.

    Attributes:
        case_index: Index of the case in the run's dataset order.
        option_index: Index of the option in the case.
        ids: int32 `[n]`, n ≥ 2: BOS (where the policy has one), prompt and continuation.
        scored_from: `ids[scored_from:]` are scored; 1 ≤ scored_from < n. The last id is never an input.
    """

    case_index: int
    option_index: int
    ids: np.ndarray
    scored_from: int

    @property
    def num_scored(self) -> int:
        return len(self.ids) - self.scored_from


@dataclasses.dataclass(frozen=True)
class TokenizedCase:
    """The requests of one case, or the reason there are none.

    Attributes:
        case_index: Index of the case in the run's dataset order.
        requests: One per option, in option order; empty unless `status` is `ok`.
        status: `ok`, or `overlong` when an option does not fit the model's limit.
        note: What a reader of the results should know (`truncated 12 tokens`), or None.
        context_tokens: Tokens before the first scored one, of the longest option's request, before any
            truncation.
        boundary_differs: Whether the two boundary rules (`cover`, `lm_eval`) feed different ids or score
            another span.
        special_text: Whether prompt or an option spells a special token (`<|endoftext|>`), which is then
            parsed the way the tokenizer does by default.
        truncated: Tokens cut from the left of each request.
    """

    case_index: int
    requests: tuple[Request, ...]
    status: Literal["ok", "overlong"]
    note: str | None
    context_tokens: int
    boundary_differs: bool
    special_text: bool = False
    truncated: int = 0
