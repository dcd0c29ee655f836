"""What a domain is: one type of value, its text, and a library of operators on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from brb_jax.generator.draws import Draws

V = TypeVar("V")

MIN_OPERATORS = 12


@dataclasses.dataclass(frozen=True)
class Operator(Generic[V]):
    """A total function on a domain's values.

    Attributes:
        key: Names it in metadata; unique in its library.
        definition: What it does, in words; one line, unique in its library.
        apply: The function. It keeps the shape of a value, so that the length of an option tells nothing.
    """

    key: str
    definition: str
    apply: Callable[[V], V]


@dataclasses.dataclass(frozen=True)
class Domain(Generic[V]):
    """A type of value and everything the generator needs to know of it.

    Attributes:
        name: As in file names.
        operators: The library, at least twelve.
        sample: Draws a value.
        render: Its text: one line, no ` -> ` in it, no white space at its ends.
        parse: The inverse of `render`; raises ValueError on any other text.
        parts: The pieces that make it up, in order; similarity counts these.
        edit: Takes a value that `sample` could give, a place among its parts, and draws; gives another such value
            that differs in the part at that place only.

    Raises:
        ValueError: The library is too small or repeats a key or definition.
    """

    name: str
    operators: tuple[Operator[V], ...]
    sample: Callable[[Draws], V]
    render: Callable[[V], str]
    parse: Callable[[str], V]
    parts: Callable[[V], tuple[str, ...]]
    edit: Callable[[V, int, Draws], V]

    def __post_init__(self):
        if len(self.operators) < MIN_OPERATORS:
            raise ValueError(f"domain {self.name} has {len(self.operators)} operators, needs {MIN_OPERATORS}")
        for what in ("key", "definition"):
            if len({getattr(operator, what) for operator in self.operators}) < len(self.operators):
                raise ValueError(f"domain {self.name} has two operators with the same {what}")


def run(operators: Sequence[Operator[V]], value: V) -> V:
    """Applies the operators, the first of them first."""
    for operator in operators:
        value = operator.apply(value)
    return value
