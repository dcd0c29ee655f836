"""What follows from a context's text: the answers a reader could reach, and three readers for reference.

Nothing here knows how a context was made. It reads the rendered text and the domain's library.

A *hypothesis* about a name is one operator of the library, or two in a row; it must agree with every example
of the name alone. Of two stories about a name that with fewer revisions is believed, and no name is revised
twice. *Order* is a hypothesis too: a composition's names may act in any order that agrees with every composed
example.

A question is certified when `possible_answers` finds one answer only.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from brb_jax.data.case import Case
from brb_jax.generator.domain import Domain, Operator, run
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.lines import Example, Line, Query, Statement, examples, parse_context, parse_query
from brb_jax.generator.similarity import nearest

Hypothesis = tuple[Operator[Any], ...]


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a context leaves possible.

    Attributes:
        before: Per name, the hypotheses for its first rule.
        after: Per name, the hypotheses for its last rule; the same ones where it was not revised.
        composed: The composed examples.
    """

    before: Mapping[str, tuple[Hypothesis, ...]]
    after: Mapping[str, tuple[Hypothesis, ...]]
    composed: tuple[Example, ...]


@functools.cache
def hypotheses(domain: Domain[Any]) -> tuple[Hypothesis, ...]:
    """Every single operator of the library, then every two in a row."""
    singles = [(operator,) for operator in domain.operators]
    return (*singles, *itertools.product(domain.operators, repeat=2))


def read(domain: Domain[Any], context: str) -> Reading:
    """What the context's text leaves possible.

    Raises:
        ValueError: The text is not of the form `lines` describes, states a rule that the library lacks, or
            revises a name twice.
    """
    lines = parse_context(context)
    composed = tuple(example for example in examples(lines) if len(example.names) > 1)
    before: dict[str, tuple[Hypothesis, ...]] = {}
    after: dict[str, tuple[Hypothesis, ...]] = {}
    names = {n: None for line in lines for n in (line.names if isinstance(line, Example) else (line.name,))}
    for name in names:
        about = [line for line in lines if _is_about(line, name)]
        before[name], after[name] = _read_name(domain, about)
    return Reading(before, after, composed)


def possible_answers(domain: Domain[Any], reading: Reading, query: Query, *, revised: bool = True) -> frozenset[str]:
    """The answers to a query that no example speaks against.

    Args:
        domain: Holds the library.
        reading: Of the query's context.
        query: The query.
        revised: Whether revisions count; without them a name keeps its first rule.
    """
    rules = reading.after if revised else reading.before
    size = len(query.names)
    composed = [example for example in reading.composed if len(example.names) == size]
    answers: set[str] = set()
    for order in itertools.permutations(range(size)):
        if all(e.output in _outputs(domain, reading.before, e, order) for e in composed):
            answers |= _outputs(domain, rules, query, order)
    return frozenset(answers)


def solver(domain: Domain[Any], context: str, query: str) -> str:
    """The answer of a reader who understands everything.

    Raises:
        ValueError: The context leaves no answer, or several.
    """
    return _only(possible_answers(domain, read(domain, context), parse_query(query)))


def prerevision(domain: Domain[Any], context: str, query: str) -> str:
    """The answer of a reader who understands everything but stops reading before a revision.

    Raises:
        ValueError: The context leaves no answer, or several.
    """
    return _only(possible_answers(domain, read(domain, context), parse_query(query), revised=False))


def nearest_example(domain: Domain[Any], context: str, query: str) -> str:
    """The answer of a reader who looks up the most similar example and copies its output."""
    return nearest(domain, parse_query(query), examples(parse_context(context))).output


BASELINES: Mapping[str, Callable[[Domain[Any], str, str], str]] = {
    "solver": solver,
    "nearest": nearest_example,
    "prerevision": prerevision,
}


def choose(baseline: str, case: Case) -> str:
    """The label of the option that a baseline picks.

    Args:
        baseline: A key of `BASELINES`.
        case: A case the generator made, of a domain in `DOMAINS`.

    Raises:
        ValueError: The domain is unknown, or the baseline's answer is not among the options.
    """
    if case.domain not in DOMAINS:
        raise ValueError(f"case {case.case_id}: baselines read the domains {', '.join(DOMAINS)}, not {case.domain!r}")
    answer = BASELINES[baseline](DOMAINS[case.domain], case.context, case.query)
    for option in case.options:
        if option.text == answer:
            return option.label
    raise ValueError(f"case {case.case_id}: no option is {answer!r}, the answer of baseline {baseline}")


def _is_about(line: Line, name: str) -> bool:
    """Whether the line speaks of this name alone."""
    return line.names == (name,) if isinstance(line, Example) else line.name == name


def _read_name(domain: Domain[Any], about: Sequence[Line]) -> tuple[tuple[Hypothesis, ...], tuple[Hypothesis, ...]]:
    """The hypotheses for a name's first and last rule, from the lines about it."""
    stated = [(place, line) for place, line in enumerate(about) if isinstance(line, Statement)]
    if len(stated) > 1:
        raise ValueError(f"{stated[0][1].name} is revised {len(stated)} times")
    if stated:
        [(place, statement)] = stated
        first = _fitting(domain, examples(about[:place]))
        rule = next((o for o in domain.operators if o.definition == statement.definition), None)
        if rule is None:
            raise ValueError(f"the library of {domain.name} has no rule {statement.definition!r}")
        return first, tuple(h for h in _fitting(domain, examples(about[place:])) if h == (rule,))
    shown = examples(about)
    if unrevised := _fitting(domain, shown):
        return unrevised, unrevised
    return _fitting_one_change(domain, shown)


def _fitting(domain: Domain[Any], shown: Sequence[Example]) -> tuple[Hypothesis, ...]:
    pairs = _values(domain, shown)
    return tuple(h for h in hypotheses(domain) if _leading_fits(h, pairs) == len(pairs))


def _fitting_one_change(
    domain: Domain[Any], shown: Sequence[Example]
) -> tuple[tuple[Hypothesis, ...], tuple[Hypothesis, ...]]:
    """The rules before, and after, one change.

    A change is possible at `place`, neither the first nor behind the last, if some rule explains
    `shown[:place]` and some rule `shown[place:]`.
    """
    pairs = _values(domain, shown)
    leading = {h: _leading_fits(h, pairs) for h in hypotheses(domain)}
    trailing = {h: _leading_fits(h, pairs[::-1]) for h in hypotheses(domain)}
    earliest = max(1, len(pairs) - max(trailing.values()))
    latest = min(len(pairs) - 1, max(leading.values()))
    if earliest > latest:
        return (), ()
    return (
        tuple(h for h, fits in leading.items() if fits >= earliest),
        tuple(h for h, fits in trailing.items() if len(pairs) - fits <= latest),
    )


def _values(domain: Domain[Any], shown: Sequence[Example]) -> list[tuple[Any, Any]]:
    return [(domain.parse(example.input), domain.parse(example.output)) for example in shown]


def _leading_fits(hypothesis: Hypothesis, pairs: Sequence[tuple[Any, Any]]) -> int:
    """How many pairs at the head of the list the hypothesis explains, up to the first it does not."""
    for i, (value, output) in enumerate(pairs):
        if run(hypothesis, value) != output:
            return i
    return len(pairs)


def _outputs(
    domain: Domain[Any],
    rules: Mapping[str, tuple[Hypothesis, ...]],
    asked: Query | Example,
    order: Sequence[int],
) -> set[str]:
    """Every output the hypotheses allow, the names acting in the given order."""
    values = {domain.parse(asked.input)}
    for place in order:
        values = {run(h, value) for value in values for h in rules.get(asked.names[place], ())}
    return {domain.render(value) for value in values}


def _only(answers: frozenset[str]) -> str:
    if len(answers) != 1:
        raise ValueError(f"the context leaves {len(answers)} answers instead of one: {sorted(answers)}")
    return next(iter(answers))
