"""Examples in a context of any hand, and which of them a query looks like. Knows neither grammar nor library.

An example is a line `input -> output`, also with `→` or `=>`. What stands before `: ` at its beginning (the name of an
operator) is its head.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import re
from collections import Counter

_ARROW = r"\s*(?:->|→|=>)\s*"
_EXAMPLE = re.compile(rf"(?P<input>.*?\S){_ARROW}(?P<output>\S.*)")
_ASKED = re.compile(rf"(?P<input>.*?\S){_ARROW}")
_HEADED = re.compile(r"(?P<head>[^:]+):\s+(?P<rest>.+)")
_PART = re.compile(r"\w+|[^\w\s]")


@dataclasses.dataclass(frozen=True)
class Shown:
    """An example as it stands in a context.

    Attributes:
        line: The 0-based line of the context.
        head: What stands before the input and `: `; empty where nothing does.
    """

    line: int
    head: str
    input: str
    output: str


@functools.lru_cache(maxsize=8)
def shown_examples(context: str) -> tuple[Shown, ...]:
    """Every example of a context, in order. Cached, for many cases may share one long context."""
    lines = enumerate(line.strip() for line in context.splitlines())
    found = ((i, _EXAMPLE.fullmatch(line)) for i, line in lines)
    return tuple(Shown(i, *_headed(match["input"]), match["output"]) for i, match in found if match)


def ranked(context: str, query: str) -> list[Shown]:
    """The context's examples, the one most like the query first.

    Examples with the query's head come before all others. Within each group those are first whose input has the
    highest share of parts in common with the query's, in order (the ratio of `difflib.SequenceMatcher`); then those
    with the most parts in common in any order; then those shown later. Parts are words, numbers and punctuation marks,
    or characters where the query is a single word.
    """
    head, text = asked(query)
    characters = len(_PART.findall(text)) < 2
    parts = _parts(text, characters)
    counted = Counter(parts)
    # SequenceMatcher keeps what it learns of its second sequence.
    matcher = difflib.SequenceMatcher(None, "", parts, autojunk=False)

    def likeness(example: Shown) -> tuple[bool, float, int, int]:
        own = _parts(example.input, characters)
        matcher.set_seq1(own)
        return example.head == head, matcher.ratio(), (counted & Counter(own)).total(), example.line

    return sorted(shown_examples(context), key=likeness, reverse=True)


def asked(query: str) -> tuple[str, str]:
    """Head and input that a query asks about: of its last line with nothing behind the arrow, else its last line.

    >>> asked("zorav: lark jade ->")
    ('zorav', 'lark jade')
    """
    lines = [line.strip() for line in query.splitlines() if line.strip()]
    open_ended = [match["input"] for line in lines if (match := _ASKED.fullmatch(line))]
    return _headed((open_ended or lines or [""])[-1])


def _headed(text: str) -> tuple[str, str]:
    match = _HEADED.fullmatch(text)
    return (match["head"], match["rest"]) if match else ("", text)


def _parts(text: str, characters: bool) -> list[str]:
    return list(text) if characters else _PART.findall(text)
