"""How many examples make a case of so many tokens. Knows no tokenizer, only that one can count."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from brb_jax.generator.context import draw_context
from brb_jax.generator.draws import Draws
from brb_jax.generator.lines import render_context
from brb_jax.generator.spec import MAX_M, FileSpec, SpecError

_PROBED = 32  # Contexts; names of other lengths make up most of the difference between contexts.
_MORE = 256  # Examples that a longer probe has more than a short one.
_MARGIN = 0.01  # What a probe may be wrong by, so that most files need not be begun again.


@dataclasses.dataclass(frozen=True)
class Target:
    """How long the cases of a file may be.

    Attributes:
        tokens: The most tokens of a case: context, query and longest option, with what the tokenizer puts in front.
        tokenizer: Its name, for the file's metadata.
        count: The number of tokens of a text, with what the tokenizer puts in front.
    """

    tokens: int
    tokenizer: str
    count: Callable[[str], int]

    @property
    def metadata(self) -> dict[str, Any]:
        return {"context_tokens": self.tokens, "tokenizer": self.tokenizer}


class TooLong(Exception):  # noqa: N818 - no error: the file is begun again with fewer examples
    """A case has more tokens than the target allows: `tokens`."""

    def __init__(self, tokens: int):
        super().__init__(tokens)
        self.tokens = tokens


def fit(spec: FileSpec, target: Target) -> FileSpec:
    """The spec with about as many examples as the target holds, whatever number `spec` has.

    Raises:
        SpecError: The target does not hold the fewest examples that the other knobs need, or holds more than a
            context may have.
    """
    least = dataclasses.replace(spec, m=spec.least_m)
    room = math.inf
    for number in range(min(_PROBED, max(1, math.ceil(spec.cases / spec.questions_per_context)))):
        few, many = (_context_tokens(least, number, more, target) for more in (0, _MORE))
        # The query and an option are about as long as an example.
        room = min(room, (target.tokens - few) / ((many - few) / _MORE) - 1)
    if room < 0:
        raise _too_small(spec, target)
    m = max(least.m, math.floor((least.m + room) * (1 - _MARGIN)))
    if m > MAX_M:
        raise SpecError(
            f"{spec.domain}, {spec.task}: {target.tokens} tokens would hold some {m} examples, and a context has at "
            f"most {MAX_M}; lower context_tokens"
        )
    return dataclasses.replace(spec, m=m)


def shorten(spec: FileSpec, target: Target, tokens: int) -> FileSpec:
    """The spec with fewer examples, after a case of `tokens` tokens exceeded the target.

    Raises:
        SpecError: As in `fit`.
    """
    m = min(spec.m - 1, math.floor(spec.m * target.tokens / tokens))
    if m < spec.least_m:
        raise _too_small(spec, target)
    return dataclasses.replace(spec, m=m)


def _context_tokens(spec: FileSpec, number: int, more: int, target: Target) -> int:
    context = draw_context(dataclasses.replace(spec, m=spec.m + more), Draws("context", number, *spec.stream))
    return target.count(render_context(context.lines))


def _too_small(spec: FileSpec, target: Target) -> SpecError:
    return SpecError(
        f"{spec.domain}, {spec.task}: {target.tokens} tokens do not hold the {spec.least_m} examples that "
        f"operators={spec.operators} and distance={spec.distance} need; raise context_tokens, or lower these"
    )
