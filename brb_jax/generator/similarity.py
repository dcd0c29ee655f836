"""Which example is most like a query: the `…_similar` options and the nearest-example baseline go by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from brb_jax.generator.domain import Domain
from brb_jax.generator.lines import Example, Query


def rivals(query: Query, shown: Sequence[Example]) -> list[Example]:
    """The examples a query is compared with: those headed as it is, or all where none is (MemoryCom)."""
    same_head = [example for example in shown if example.names == query.names]
    return same_head or list(shown)


def nearest(domain: Domain[Any], query: Query, shown: Sequence[Example]) -> Example:
    """The example whose input is most like the query's, whatever its output.

    Most alike are inputs with the most equal parts at equal places; among those, with the most parts in
    common at any place; among those, the one shown last.

    Args:
        domain: Says what the parts of a value are.
        query: The query.
        shown: The examples of its context, in order; at least one.
    """
    asked = domain.parts(domain.parse(query.input))

    def likeness(placed: tuple[int, Example]) -> tuple[int, int, int]:
        place, example = placed
        parts = domain.parts(domain.parse(example.input))
        in_place = sum(a == b for a, b in zip(asked, parts, strict=False))
        anywhere = (Counter(asked) & Counter(parts)).total()
        return in_place, anywhere, place

    return max(enumerate(rivals(query, shown)), key=likeness)[1]
