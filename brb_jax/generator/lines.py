"""The text of a context, line by line, written and read back.

zorav: amber kite -> kite amber                   an example of one operator
zorav then mipej: amber kite -> mbera itek        an example of a composition: zorav acts first
From now on, zorav: sort the words.               a statement: `zorav` is revised, and this is its new rule
zorav: lark jade ->                               a query; it stands alone, after the context
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence

_THEN = " then "
_STATEMENT = re.compile(r"From now on, (?P<name>[a-z]+): (?P<definition>.+)\.")
_EXAMPLE = re.compile(r"(?P<names>[a-z]+(?: then [a-z]+)*): (?P<input>.+?) ->(?: (?P<output>.+))?")


@dataclasses.dataclass(frozen=True)
class Example:
    """`names` in the order they act; one name is a single operator, more are a composition."""

    names: tuple[str, ...]
    input: str
    output: str

    def render(self) -> str:
        return f"{Query(self.names, self.input).render()} {self.output}"


@dataclasses.dataclass(frozen=True)
class Statement:
    """A revision in words: from here on `name` does what `definition` says."""

    name: str
    definition: str

    def render(self) -> str:
        return f"From now on, {self.name}: {self.definition}."


@dataclasses.dataclass(frozen=True)
class Query:
    """What is asked: the output of `names`, in this order, for `input`."""

    names: tuple[str, ...]
    input: str

    def render(self) -> str:
        return f"{_THEN.join(self.names)}: {self.input} ->"


Line = Example | Statement


def render_context(lines: Iterable[Line]) -> str:
    """One line each, the last one ended too: the query follows on a line of its own."""
    return "".join(f"{line.render()}\n" for line in lines)


def parse_context(text: str) -> tuple[Line, ...]:
    """The inverse of `render_context`.

    Raises:
        ValueError: Names the first line that is neither an example nor a statement.
    """
    return tuple(_parse_line(line, i) for i, line in enumerate(text.splitlines()))


def parse_query(text: str) -> Query:
    """The inverse of `Query.render`.

    Raises:
        ValueError: The text is no query.
    """
    match = _EXAMPLE.fullmatch(text)
    if match is None or match["output"] is not None:
        raise ValueError(f"{text!r} is no query of the form `name: input ->`")
    return Query(tuple(match["names"].split(_THEN)), match["input"])


def examples(lines: Sequence[Line]) -> list[Example]:
    """The examples among the lines."""
    return [line for line in lines if isinstance(line, Example)]


def _parse_line(line: str, place: int) -> Line:
    if match := _STATEMENT.fullmatch(line):
        return Statement(match["name"], match["definition"])
    match = _EXAMPLE.fullmatch(line)
    if match is None or match["output"] is None:
        raise ValueError(f"line {place} of the context is neither an example nor a statement: {line!r}")
    return Example(tuple(match["names"].split(_THEN)), match["input"], match["output"])
