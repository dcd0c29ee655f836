"""What a value's text is made of: dates, times, numbers, booleans and words, and what stands between them."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import re
from collections.abc import Callable
from typing import Literal, cast

Kind = Literal["D", "T", "F", "N", "B", "W"]
"""Date, time of day, number with a fraction, whole number, boolean, word."""

_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d %B %Y", "%B %d, %Y", "%B %d %Y", "%d %b %Y", "%b %d, %Y", "%b %d %Y"),
)
_TIMES = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p", "%I:%M%p")
BOOLEANS = (("true", "false"), ("yes", "no"))

_ATOM = re.compile(
    r"""
    (?P<D> (?<!\d)(?: \d{4}(?P<a>[-/])\d\d(?P=a)\d\d | \d\d(?P<b>[./-])\d\d(?P=b)\d{4}
            | \d{1,2}\ [A-Z][a-z]{2,8}\ \d{4} | [A-Z][a-z]{2,8}\ \d{1,2},?\ \d{4} )(?!\d) )
    | (?P<T> (?<!\d)\d{1,2}:\d\d(?::\d\d)?(?!\d)(?:\ ?[AaPp][Mm]\b)? )
    | (?P<F> \d+\.\d+ )
    | (?P<N> \d+ )
    | (?P<B> \b(?:true|false|yes|no)\b )
    | (?P<W> [^\W\d_]+ )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# What an atom that looks like a date or a time begins with if it is none.
_PLAIN = re.compile(r"(?P<N>\d+)|(?P<W>[^\W\d_]+)")


@dataclasses.dataclass(frozen=True)
class Atom:
    """A piece of a text that has a type, and where it begins."""

    kind: Kind
    text: str
    start: int


@functools.lru_cache(maxsize=4096)
def atoms(text: str) -> tuple[Atom, ...]:
    """The typed pieces of a text, in order. What looks like a date or time but is none is read as numbers and words.

    >>> [(atom.kind, atom.text) for atom in atoms("[7, -2.5]: kite, 2024-02-29")]
    [('N', '7'), ('F', '2.5'), ('W', 'kite'), ('D', '2024-02-29')]
    """
    found: list[Atom] = []
    position = 0
    while match := _ATOM.search(text, position):
        formats = FORMATS.get(cast(Kind, match.lastgroup))
        if formats is not None and not formats(match.group()):
            match = _PLAIN.match(text, match.start())
            assert match is not None
        found.append(Atom(cast(Kind, match.lastgroup), match.group(), match.start()))
        position = match.end()
    return tuple(found)


@functools.lru_cache(maxsize=4096)
def pattern(text: str) -> str:
    """The text with every typed piece replaced by its kind: equal for texts of one shape.

    >>> pattern("[7, 12]: kite") == pattern("[1, 300]: jade"), pattern("7 12") == pattern("7 kite")
    (True, False)
    """
    parts: list[str] = []
    end = 0
    for atom in atoms(text):
        parts += [text[end : atom.start], atom.kind]
        end = atom.start + len(atom.text)
    return "".join((*parts, text[end:]))


@functools.lru_cache(maxsize=4096)
def date_formats(text: str) -> frozenset[str]:
    """The ways to read a text as a date; empty if it is none."""
    return frozenset(form for form in _DATES if _reads(text, form))


@functools.lru_cache(maxsize=4096)
def time_formats(text: str) -> frozenset[str]:
    """The ways to read a text as a time of day; empty if it is none."""
    return frozenset(form for form in _TIMES if _reads(text, form))


FORMATS: dict[Kind, Callable[[str], frozenset[str]]] = {"D": date_formats, "T": time_formats}


def _reads(text: str, form: str) -> bool:
    try:
        datetime.datetime.strptime(text, form)
    except ValueError:
        return False
    return True
