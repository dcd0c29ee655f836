"""Draws a context: what its names mean, and the examples that show it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from brb_jax.generator.domain import Domain, Operator, run
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.draws import Draws
from brb_jax.generator.lines import Example, Line, Statement
from brb_jax.generator.names import draw_names
from brb_jax.generator.spec import FileSpec

Heads = tuple[str, ...]
"""The names at the head of an example or a query, in the order they act."""


@dataclasses.dataclass(frozen=True)
class Context:
    """A context and what only its maker knows of it.

    Attributes:
        operators: What each name means at first.
        revised: What the revised names mean in the end; empty but for MemoryRev.
        lines: What is shown.
        askable: What questions may be asked about; for MemoryCom, compositions that no example shows.
    """

    operators: Mapping[str, Operator[Any]]
    revised: Mapping[str, Operator[Any]]
    lines: tuple[Line, ...]
    askable: tuple[Heads, ...]

    def program(self, heads: Heads, *, revised: bool = True) -> list[Operator[Any]]:
        """The operators that `heads` stand for, after the revisions or before."""
        rules = {**self.operators, **self.revised} if revised else self.operators
        return [rules[name] for name in heads]


def draw_context(spec: FileSpec, draws: Draws) -> Context:
    """A context of `spec.m` examples, each operator shown as often as any other, to within one."""
    domain = DOMAINS[spec.domain]
    names = draw_names(spec.operators, draws)
    rules = draws.sample(domain.operators, spec.operators + (spec.edit_k or 0))
    operators = dict(zip(names, rules[: spec.operators], strict=True))
    singles: list[Heads] = [(name,) for name in names]
    if spec.task == "MemoryRet":
        return Context(operators, {}, _show(domain, operators, _deal(singles, spec.m, draws), draws), tuple(singles))
    if spec.task == "MemoryCom":
        return _draw_composed(spec, domain, operators, singles, draws)
    return _draw_revised(spec, domain, operators, rules[spec.operators :], draws)


def _draw_composed(
    spec: FileSpec,
    domain: Domain[Any],
    operators: dict[str, Operator[Any]],
    singles: list[Heads],
    draws: Draws,
) -> Context:
    """Half the examples single, half of compositions other than those to be asked."""
    assert spec.k is not None
    askable: list[Heads] = []
    # Twice as many as questions: some operators give the same in any order, and cannot be asked about.
    while len(askable) < min(2 * spec.questions_per_context, math.perm(spec.operators, spec.k) // 2):
        heads = tuple(draws.sample(list(operators), spec.k))
        if heads not in askable:
            askable.append(heads)
    shown = _deal(singles, spec.m - spec.m // 2, draws)
    while len(shown) < spec.m:
        heads = tuple(draws.sample(list(operators), spec.k))
        if heads not in askable:
            shown.append(heads)
    return Context(operators, {}, _show(domain, operators, draws.shuffled(shown), draws), tuple(askable))


def _draw_revised(
    spec: FileSpec,
    domain: Domain[Any],
    operators: dict[str, Operator[Any]],
    new_rules: Sequence[Operator[Any]],
    draws: Draws,
) -> Context:
    """Half the examples, then the revision, then the other half under the new rules."""
    revised = dict(zip(draws.sample(list(operators), len(new_rules)), new_rules, strict=True))
    late = [(name,) for name in operators if spec.revision != "statement" or name not in revised]
    half = spec.m // 2
    before = _deal([(name,) for name in operators], spec.m - half, draws)
    after = _deal(late, half, draws)
    stated = list(revised.items()) if spec.revision != "examples" else []
    lines: list[Line] = []
    lines += _show(domain, operators, before, draws)
    lines += [Statement(name, rule.definition) for name, rule in stated]
    lines += _show(domain, {**operators, **revised}, after, draws)
    return Context(operators, revised, tuple(lines), tuple((name,) for name in revised))


def _deal(heads: Sequence[Heads], n: int, draws: Draws) -> list[Heads]:
    """`n` heads in random order, each as often as any other, to within one."""
    order = draws.shuffled(heads)
    return draws.shuffled([order[i % len(order)] for i in range(n)])


def _show(
    domain: Domain[Any], rules: Mapping[str, Operator[Any]], shown: Sequence[Heads], draws: Draws
) -> tuple[Example, ...]:
    examples = []
    for heads in shown:
        value = domain.sample(draws)
        output = run([rules[name] for name in heads], value)
        examples.append(Example(heads, domain.render(value), domain.render(output)))
    return tuple(examples)
