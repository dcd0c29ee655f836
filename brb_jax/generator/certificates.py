"""What follows from a context's text: the answers a reader could reach, and three readers for reference.

Nothing here knows how a context was made. It reads the rendered text and the domain's library.

A *hypothesis* about a name is one operator of the library, or two in a row; it must agree with every example
of the name alone, and be the rule that a definition tells. Of two stories about a name that with fewer
revisions is believed, and no name is revised twice. *Order* is a hypothesis too: a composition's names may act
in any order that agrees with every composed example.

A question is certified when `possible_answers` finds one answer only.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from brb_jax.data.case import Case
from brb_jax.generator.domain import Domain, Operator, run
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.lines import Definition, Example, Line, Query, Statement, examples, parse_context, parse_query
from brb_jax.generator.similarity import nearest

Hypothesis = tuple[Operator[Any], ...]


Order = tuple[int, ...]
"""The places of a composition's names, in the order in which they act."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a context leaves possible.

    Attributes:
        before: Per name, the hypotheses for its first rule.
        after: Per name, the hypotheses for its last rule; the same ones where it was not revised.
        orders: Per number of composed names that examples show, the orders.
    """

    before: Mapping[str, tuple[Hypothesis, ...]]
    after: Mapping[str, tuple[Hypothesis, ...]]
    orders: Mapping[int, tuple[Order, ...]]


@functools.cache
def hypotheses(domain: Domain[Any]) -> tuple[Hypothesis, ...]:
    """Every single operator of the library, then every two in a row."""
    singles = [(operator,) for operator in domain.operators]
    return (*singles, *itertools.product(domain.operators, repeat=2))


# Neighbouring cases share a context, and a long one takes seconds to read.
@functools.lru_cache(maxsize=1)
def read(domain: Domain[Any], context: str) -> Reading:
    """What the context's text leaves possible.

    Raises:
        ValueError: The text is not of the form `lines` describes, tells a rule that the library lacks, defines a
            name late or twice, or revises one twice.
    """
    about: dict[str, list[Line]] = {}
    composed: dict[int, list[Example]] = {}
    for line in parse_context(context):
        if isinstance(line, Example) and len(line.names) > 1:
            composed.setdefault(len(line.names), []).append(line)
        else:
            about.setdefault(line.names[0] if isinstance(line, Example) else line.name, []).append(line)
    before: dict[str, tuple[Hypothesis, ...]] = {}
    after: dict[str, tuple[Hypothesis, ...]] = {}
    for name, lines in about.items():
        before[name], after[name] = _read_name(domain, name, lines)
    orders = {
        size: tuple(
            order
            for order in itertools.permutations(range(size))
            if all(example.output in _outputs(domain, before, example, order) for example in shown)
        )
        for size, shown in composed.items()
    }
    return Reading(before, after, orders)


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
    answers: set[str] = set()
    for order in reading.orders.get(size, itertools.permutations(range(size))):
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


def _read_name(
    domain: Domain[Any], name: str, about: Sequence[Line]
) -> tuple[tuple[Hypothesis, ...], tuple[Hypothesis, ...]]:
    """The hypotheses for a name's first and last rule, from the lines about it alone."""
    defined = [place for place, line in enumerate(about) if isinstance(line, Definition)]
    if len(defined) > 1:
        raise ValueError(f"{name} is defined {len(defined)} times")
    if defined and defined != [0]:
        raise ValueError(f"{name} is defined after it was shown")
    stated = [place for place, line in enumerate(about) if isinstance(line, Statement)]
    if len(stated) > 1:
        raise ValueError(f"{name} is revised {len(stated)} times")
    first = [_told(domain, about[0])] if defined else hypotheses(domain)
    if stated:
        [place] = stated
        earlier, later = (_values(domain, lines) for lines in (about[:place], about[place:]))
        return _fitting(first, earlier), _fitting([_told(domain, about[place])], later)
    shown = _values(domain, about)
    if unrevised := _fitting(first, shown):
        return unrevised, unrevised
    return _fitting_one_change(first, hypotheses(domain), shown, least=0 if defined else 1)


def _told(domain: Domain[Any], line: Line) -> Hypothesis:
    """The rule that a definition or a statement tells."""
    assert not isinstance(line, Example)
    for operator in domain.operators:
        if operator.definition == line.definition:
            return (operator,)
    raise ValueError(f"the library of {domain.name} has no rule {line.definition!r}")


def _fitting(among: Iterable[Hypothesis], pairs: Sequence[tuple[Any, Any]]) -> tuple[Hypothesis, ...]:
    return tuple(h for h, fits in _fits(among, pairs) if fits == len(pairs))


def _fitting_one_change(
    first: Iterable[Hypothesis], last: Iterable[Hypothesis], pairs: Sequence[tuple[Any, Any]], least: int
) -> tuple[tuple[Hypothesis, ...], tuple[Hypothesis, ...]]:
    """The rules before, and after, one change.

    A change is possible at `place`, at `least` and before the end, if a rule of `first` explains
    `pairs[:place]` and one of `last` explains `pairs[place:]`.
    """
    leading, trailing = _fits(first, pairs), _fits(last, pairs[::-1])
    earliest = max(least, len(pairs) - max(fits for _, fits in trailing))
    latest = min(len(pairs) - 1, max(fits for _, fits in leading))
    if earliest > latest:
        return (), ()
    return (
        tuple(h for h, fits in leading if fits >= earliest),
        tuple(h for h, fits in trailing if len(pairs) - fits <= latest),
    )


def _values(domain: Domain[Any], lines: Sequence[Line]) -> list[tuple[Any, Any]]:
    return [(domain.parse(example.input), domain.parse(example.output)) for example in examples(lines)]


def _fits(among: Iterable[Hypothesis], pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Hypothesis, int]]:
    """How many pairs at the head of the list each hypothesis explains, up to the first it does not."""
    if not pairs:
        return [(h, 0) for h in among]
    value, output = pairs[0]
    # Most hypotheses fail at the first pair already, and many begin with the same operator.
    halfway: dict[str, Any] = {}
    counted = []
    for h in among:
        begun = h[0].key
        if begun not in halfway:
            halfway[begun] = h[0].apply(value)
        fits = 0
        if run(h[1:], halfway[begun]) == output:
            fits = next((i for i, (v, o) in enumerate(pairs) if run(h, v) != o), len(pairs))
        counted.append((h, fits))
    return counted


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
