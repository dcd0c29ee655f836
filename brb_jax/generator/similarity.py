"""Which example is most like a query: the `…_similar` options and the nearest-example baseline go by it."""

from __future__ import annotations

import dataclasses
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from brb_jax.generator.domain import Domain
from brb_jax.generator.lines import Example, Line, Query


@dataclasses.dataclass(frozen=True)
class Index:
    """The examples of a context, read once so that any number of queries can be compared with them.

    Attributes:
        examples: In the order they are shown.
        lines: The line each stands in.
        parts: The parts of each one's input.
        places: Names at the head ─► where in `examples` those so headed are.
        by_size: Number of names at the head ─► the same.
    """

    examples: tuple[Example, ...]
    lines: tuple[int, ...]
    parts: tuple[tuple[str, ...], ...]
    places: Mapping[tuple[str, ...], Sequence[int]]
    by_size: Mapping[int, Sequence[int]]

    def rivals(self, names: tuple[str, ...]) -> Sequence[int]:
        """What a query of these names is compared with.

        The examples headed as it is; if there are none, those of as many names; if there are none, all.
        """
        return self.places.get(names) or self.by_size.get(len(names)) or range(len(self.examples))


def index_examples(domain: Domain[Any], lines: Sequence[Line]) -> Index:
    """The examples among the lines."""
    placed = [(number, line) for number, line in enumerate(lines) if isinstance(line, Example)]
    places: dict[tuple[str, ...], list[int]] = {}
    by_size: dict[int, list[int]] = {}
    for place, (_, example) in enumerate(placed):
        places.setdefault(example.names, []).append(place)
        by_size.setdefault(len(example.names), []).append(place)
    return Index(
        examples=tuple(example for _, example in placed),
        lines=tuple(number for number, _ in placed),
        parts=tuple(domain.parts(domain.parse(example.input)) for _, example in placed),
        places=places,
        by_size=by_size,
    )


def nearest_place(domain: Domain[Any], query: Query, index: Index) -> int:
    """Where in `index.examples` the one is whose input is most like the query's, whatever its output.

    Most alike are inputs with the most equal parts at equal places; among those, with the most parts in
    common at any place; among those, the one shown last.

    Args:
        domain: Says what the parts of a value are.
        query: The query.
        index: Of the examples of its context; at least one.
    """
    asked = domain.parts(domain.parse(query.input))
    rivals = index.rivals(query.names)
    in_place = [sum(map(operator.eq, asked, index.parts[place])) for place in rivals]
    most = max(in_place)
    best = [place for place, equal in zip(rivals, in_place, strict=True) if equal == most]
    return max(best, key=lambda place: ((Counter(asked) & Counter(index.parts[place])).total(), place))


def nearest(domain: Domain[Any], query: Query, lines: Sequence[Line]) -> Example:
    """The example most like the query, as `nearest_place` says."""
    index = index_examples(domain, lines)
    return index.examples[nearest_place(domain, query, index)]
