"""The text of a context, line by line, written and read back.

zorav: amber kite -> kite amber                   an example of one operator
zorav then mipej: amber kite -> mbera itek        an example of a composition: zorav acts first
zorav means: put the words in reverse order.      a definition: the rule of `zorav`, in words
From now on, zorav: sort the words.               a statement: `zorav` is revised, and this is its new rule
zorav: lark jade ->                               a query; it stands alone, after the context
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence

_THEN = " then "
_DEFINITION = re.compile(r"(?P<name>[a-z]+) means: (?P<definition>.+)\.")
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
class Definition:
    """A rule in words: what `name` does at first."""

    name: str
    definition: str

    def render(self) -> str:
        return f"{self.name} means: {self.definition}."


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


Line = Example | Definition | Statement


def names_in(line: Line) -> tuple[str, ...]:
    """The names a line speaks of."""
    return line.names if isinstance(line, Example) else (line.name,)


def render_context(lines: Iterable[Line]) -> str:
    """One line each, the last one ended too: the query follows on a line of its own."""
    return "".join(f"{line.render()}\n" for line in lines)


def parse_context(text: str) -> tuple[Line, ...]:
    """The inverse of `render_context`.

    Raises:
        ValueError: Names the first line that is no example, definition or statement.
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
    match = _EXAMPLE.fullmatch(line)
    if match is not None and match["output"] is not None:
        return Example(tuple(match["names"].split(_THEN)), match["input"], match["output"])
    for form, kind in ((_DEFINITION, Definition), (_STATEMENT, Statement)):
        if match := form.fullmatch(line):
            return kind(match["name"], match["definition"])
    raise ValueError(f"line {place} of the context is no example, definition or statement: {line!r}")
