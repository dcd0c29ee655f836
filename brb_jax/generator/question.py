"""Draws a question about a context: its query, the exact answer, and a wrong answer for each way to fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from typing import Any

from brb_jax.data.case import CORRECT
from brb_jax.generator.certificates import Reading, possible_answers
from brb_jax.generator.context import Context, Heads
from brb_jax.generator.domain import Domain, Operator, run
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

    An example is picked, and one part of its input is changed once for the query and once again for the random
    wrong option, which is what the operators make of that input. So no option stands out by its form: each is what
    some shown rule makes of an input, and these inputs differ in one part.

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
    anchor = domain.parse(draws.choice(rivals(Query(heads, ""), shown)).input)
    place = draws.below(len(domain.parts(anchor)))
    value, random_value = domain.edit(anchor, place, draws), domain.edit(anchor, place, draws)
    query = Query(heads, domain.render(value))
    similar = nearest(domain, query, shown)

    def output(program: Sequence[Operator[Any]], of: Any) -> str:
        return domain.render(run(program, of))

    right = random_program = context.program(heads)
    texts = {CORRECT: output(right, value), SIMILAR[spec.task]: similar.output}
    wrong_order: Heads | None = None
    if spec.task == "MemoryCom":
        wrong_order = tuple(draws.shuffled(heads))
        wrong = context.program(wrong_order)
        texts["wrong_rule"] = output(wrong, value)
        random_program = draws.choice([right, wrong])
    if spec.task == "MemoryRev":
        old = context.program(heads, revised=False)
        texts["old_rule"] = output(old, value)
        # The rule that the similar example does not follow, so that each rule made two of the options.
        follows_old = similar.output == output(old, domain.parse(similar.input))
        random_program = right if follows_old else old
    texts["random_wrong"] = output(random_program, random_value)

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
        before = possible_answers(domain, reading, query, revised=False)
        if before != {texts["old_rule"]}:
            return None
    return Question(query, texts, similar, wrong_order)
