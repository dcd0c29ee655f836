"""Draws a question about a context: its query, the exact answer, and a wrong answer for each way to fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Set
from typing import Any

from brb_jax.data.case import CORRECT
from brb_jax.generator.certificates import Reading, possible_answers
from brb_jax.generator.context import Context, Heads
from brb_jax.generator.domain import Domain, run
from brb_jax.generator.draws import Draws
from brb_jax.generator.lines import Example, Query, examples
from brb_jax.generator.similarity import nearest, rivals
from brb_jax.generator.spec import FileSpec

SIMILAR = {"MemoryRet": "retrieval_similar", "MemoryCom": "surface_similar", "MemoryRev": "retrieval_similar"}


@dataclasses.dataclass(frozen=True)
class Question:
    """A certified question.

    Attributes:
        query: What is asked.
        texts: Option type ─► text, the correct one first; all texts differ.
        similar: The example whose output is the similar option.
        wrong_order: The order that gives the `wrong_rule` option, for MemoryCom.
    """

    query: Query
    texts: Mapping[str, str]
    similar: Example
    wrong_order: Heads | None


def draw_question(
    spec: FileSpec,
    domain: Domain[Any],
    context: Context,
    reading: Reading,
    heads: Heads,
    asked: Set[str],
    draws: Draws,
) -> Question | None:
    """One attempt at a question.

    The query's input is one edit away from an example's, so that there is a similar option worth the name.

    Args:
        spec: The file's knobs.
        domain: The file's domain.
        context: What the question is about.
        reading: What the context's text leaves possible, for the certificate.
        heads: The names to ask for.
        asked: The inputs of earlier questions about the context.
        draws: The stream to draw from.

    Returns:
        None if the attempt gave no certified question: two options coincide, one repeats the query's input or
        (but for the similar one) an output already shown, the input is not new, the revision changes nothing,
        or another answer is possible too.
    """
    shown = examples(context.lines)
    anchor = draws.choice(rivals(Query(heads, ""), shown))
    value = domain.mutate(domain.parse(anchor.input), draws)
    query = Query(heads, domain.render(value))
    similar = nearest(domain, query, shown)
    texts = {CORRECT: domain.render(run(context.program(heads), value)), SIMILAR[spec.task]: similar.output}
    wrong_order: Heads | None = None
    if spec.task == "MemoryCom":
        wrong_order = tuple(draws.shuffled(heads))
        texts["wrong_rule"] = domain.render(run(context.program(wrong_order), value))
    if spec.task == "MemoryRev":
        texts["old_rule"] = domain.render(run(context.program(heads, revised=False), value))
    # Not always a mutation of the correct answer: that would make it the one most like the others.
    origin = draws.choice(list(texts.values()))
    texts["random_wrong"] = domain.render(domain.mutate(domain.parse(origin), draws))

    if len({*texts.values(), query.input}) < len(texts) + 1:
        return None
    outputs = {example.output for example in shown}
    if any(text in outputs for kind, text in texts.items() if kind != SIMILAR[spec.task]):
        return None
    if query.input in asked or any(query.input == example.input for example in shown):
        return None
    if possible_answers(domain, reading, query) != {texts[CORRECT]}:
        return None
    if spec.task == "MemoryRev":
        old = possible_answers(domain, reading, query, revised=False)
        if old != {texts["old_rule"]}:
            return None
    return Question(query, texts, similar, wrong_order)
