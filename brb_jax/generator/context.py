"""Draws a context: what its names mean, and the lines that show or tell it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from brb_jax.generator.domain import Domain, Operator, run
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.draws import Draws
from brb_jax.generator.lines import Definition, Example, Line, Statement, names_in
from brb_jax.generator.names import draw_names
from brb_jax.generator.spec import FileSpec

_ASKABLE_ATTEMPTS = 10
_VALUES_TRIED = 6

Heads = tuple[str, ...]
"""The names at the head of an example or a query, in the order they act."""

Rules = Mapping[str, Operator[Any]]
"""What names mean."""


@dataclasses.dataclass(frozen=True)
class Context:
    """A context and what only its maker knows of it.

    Attributes:
        operators: What each name means at first.
        revised: What the revised names mean in the end; empty but for MemoryRev.
        lines: What is shown.
        askable: What questions may be asked about; for MemoryCom, compositions that no example shows.
    """

    operators: Rules
    revised: Rules
    lines: tuple[Line, ...]
    askable: tuple[Heads, ...]

    def program(self, heads: Heads, *, revised: bool = True) -> list[Operator[Any]]:
        """The operators that `heads` stand for, after the revisions or before."""
        rules = {**self.operators, **self.revised} if revised else self.operators
        return [rules[name] for name in heads]


def draw_context(spec: FileSpec, draws: Draws) -> Context:
    """A context of `spec.m` examples, each operator shown as often as any other, to within one.

    What follows after all else, `spec.distance` examples, counts apart.
    """
    names = draw_names(spec.operators, draws)
    if spec.task == "MemoryRet":
        return _draw_retained(spec, _draw_rules(spec, names, draws), draws)
    if spec.task == "MemoryCom":
        return _draw_composed(spec, names, draws)
    return _draw_revised(spec, names, draws)


def _draw_rules(spec: FileSpec, names: Sequence[str], draws: Draws) -> Rules:
    return dict(zip(names, draws.sample(DOMAINS[spec.domain].operators, len(names)), strict=True))


def _draw_retained(spec: FileSpec, operators: Rules, draws: Draws) -> Context:
    names = list(operators)
    asked = draws.sample(names, 1) if spec.focused else names
    shown = _deal(_shown_alone(spec, names, asked), spec.m - spec.distance, draws)
    lines = _arrange(spec, operators, {}, asked, shown, (), draws)
    return Context(operators, {}, lines, tuple((name,) for name in asked))


def _draw_composed(spec: FileSpec, names: Sequence[str], draws: Draws) -> Context:
    """Half the examples single, half of compositions other than those to be asked."""
    assert spec.k is not None
    operators: Rules = {}
    askable: list[Heads] = []
    while not askable:
        operators = _draw_rules(spec, names, draws)
        askable = _draw_askable(spec, operators, draws)
    m = spec.m - spec.distance
    single = _shown_alone(spec, names, askable[0])
    shown = _deal(single, m - m // 2 if single else 0, draws)
    while len(shown) < m:
        heads = tuple(draws.sample(names, max(spec.k, 2)))
        if heads not in askable:
            shown.append(heads)
    lines = _arrange(spec, operators, {}, askable[0], draws.shuffled(shown), (), draws)
    return Context(operators, {}, lines, tuple(askable))


def _draw_askable(spec: FileSpec, operators: Rules, draws: Draws) -> list[Heads]:
    """Compositions whose order matters; none if these rules have none."""
    assert spec.k is not None
    wanted = 1 if spec.focused else min(2 * spec.questions_per_context, math.comb(len(operators), spec.k))
    askable: list[Heads] = []
    for _ in range(_ASKABLE_ATTEMPTS * wanted):
        heads = tuple(draws.sample(list(operators), spec.k))
        # Of one order of some names only, so that examples can show another: order is learnt from those.
        taken = any(set(heads) == set(other) for other in askable)
        if not taken and _order_matters(spec, [operators[name] for name in heads], draws):
            askable.append(heads)
        if len(askable) == wanted:
            break
    return askable


def _order_matters(spec: FileSpec, program: Sequence[Operator[Any]], draws: Draws) -> bool:
    """Whether the program run backwards gives something else for most values; if not, a wrong order is none."""
    domain = DOMAINS[spec.domain]
    values = [domain.sample(draws) for _ in range(_VALUES_TRIED)]
    same = sum(run(program, value) == run(program[::-1], value) for value in values)
    return len(program) == 1 or same < _VALUES_TRIED / 2


def _draw_revised(spec: FileSpec, names: Sequence[str], draws: Draws) -> Context:
    """Half the examples, then the revision, then the other half under the new rules."""
    assert spec.edit_k is not None
    rules = draws.sample(DOMAINS[spec.domain].operators, spec.operators + spec.edit_k)
    operators = dict(zip(names, rules[: spec.operators], strict=True))
    revised = dict(zip(draws.sample(names, spec.edit_k), rules[spec.operators :], strict=True))
    late = [(name,) for name in names if spec.revision != "statement" or name not in revised]
    m = spec.m - spec.distance
    before = _deal(_shown_alone(spec, names, list(revised)), m - m // 2, draws)
    after = _deal(late, m // 2, draws)
    lines = _arrange(spec, operators, revised, list(revised), before, after, draws)
    return Context(operators, revised, lines, tuple((name,) for name in revised))


def _shown_alone(spec: FileSpec, names: Sequence[str], asked: Sequence[str]) -> list[Heads]:
    """The names that examples show before any revision."""
    return [(name,) for name in names if spec.definitions != "text" or name not in asked]


def _arrange(
    spec: FileSpec,
    operators: Rules,
    revised: Rules,
    asked: Sequence[str],
    before: Sequence[Heads],
    after: Sequence[Heads],
    draws: Draws,
) -> tuple[Line, ...]:
    """The lines of a context, in order.

    Args:
        spec: Says what is told in words, and where the lines about the names asked for lie.
        operators: The rules of `before`.
        revised: What a revision changes.
        asked: The names that questions are about; of interest only where `spec.focused`.
        before: What the examples before a revision show, in order.
        after: What the examples after it show, in order.
        draws: The stream to draw from.
    """
    domain = DOMAINS[spec.domain]
    early = _define(spec, operators, _show(domain, operators, before, draws), draws)
    late: list[Line] = []
    if spec.revision != "examples":
        late += [Statement(name, rule.definition) for name, rule in revised.items()]
    late += _show(domain, {**operators, **revised}, after, draws)
    blocks = [early, late]
    if spec.relevant != "spread":
        relevant = [[line for line in block if not {*names_in(line)}.isdisjoint(asked)] for block in blocks]
        others = [[line for line in block if {*names_in(line)}.isdisjoint(asked)] for block in blocks]
        blocks = relevant + others if spec.relevant == "early" else others + relevant
    between = _deal([(name,) for name in operators if name not in asked], spec.distance, draws)
    return (*(line for block in blocks for line in block), *_show(domain, operators, between, draws))


def _define(spec: FileSpec, operators: Rules, shown: Sequence[Example], draws: Draws) -> list[Line]:
    """The examples, and before the first of each name its definition; anywhere if no example shows it."""
    if spec.definitions == "examples":
        return list(shown)
    first: dict[str, int] = {}
    for place, example in enumerate(shown):
        for name in example.names:
            first.setdefault(name, place)
    told: dict[int, list[Line]] = {}
    for name, rule in operators.items():
        place = first[name] if name in first else draws.below(len(shown) + 1)
        told.setdefault(place, []).append(Definition(name, rule.definition))
    return [line for place in range(len(shown) + 1) for line in (*told.get(place, ()), *shown[place : place + 1])]


def _deal(heads: Sequence[Heads], n: int, draws: Draws) -> list[Heads]:
    """`n` heads in random order, each as often as any other, to within one."""
    order = draws.shuffled(heads)
    return draws.shuffled([order[i % len(order)] for i in range(n)])


def _show(domain: Domain[Any], rules: Rules, shown: Sequence[Heads], draws: Draws) -> list[Example]:
    examples = []
    for heads in shown:
        value = domain.sample(draws)
        output = run([rules[name] for name in heads], value)
        examples.append(Example(heads, domain.render(value), domain.render(output)))
    return examples
