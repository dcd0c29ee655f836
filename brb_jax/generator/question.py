"""Draws a question about a context: its query, the exact answer, and a wrong answer for each way to fail."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from typing import Any

from brb_jax.data.case import CORRECT
from brb_jax.generator.certificates import Reading, possible_answers, read
from brb_jax.generator.context import Context, Heads
from brb_jax.generator.domain import Domain, Operator, run
from brb_jax.generator.draws import Draws
from brb_jax.generator.lines import Query
from brb_jax.generator.similarity import Index, index_examples, nearest_place
from brb_jax.generator.spec import FileSpec

SIMILAR = {"MemoryRet": "retrieval_similar", "MemoryCom": "surface_similar", "MemoryRev": "retrieval_similar"}


@dataclasses.dataclass(frozen=True)
class Question:
    """A certified question.

    Attributes:
        query: What is asked.
        texts: Option type ─► text, the correct one first; all texts differ.
        similar_line: The line of the example whose output is the similar option.
        wrong: For MemoryCom, the names whose operators give the `wrong_rule` option, in the order they act.
    """

    query: Query
    texts: Mapping[str, str]
    similar_line: int
    wrong: Heads | None


@dataclasses.dataclass(frozen=True)
class Ground:
    """A context made ready for questions.

    Attributes:
        context: What the questions are about.
        reading: What its text leaves possible, for the certificate.
        index: Its examples.
        inputs, outputs: Those of its examples.
    """

    context: Context
    reading: Reading
    index: Index
    inputs: Set[str]
    outputs: Set[str]


def prepare(domain: Domain[Any], context: Context, text: str) -> Ground:
    """Reads a context's text and indexes its examples, once for all questions."""
    index = index_examples(domain, context.lines)
    return Ground(
        context,
        read(domain, text),
        index,
        inputs={example.input for example in index.examples},
        outputs={example.output for example in index.examples},
    )


def draw_question(
    spec: FileSpec,
    domain: Domain[Any],
    ground: Ground,
    heads: Heads,
    asked: Set[str],
    draws: Draws,
) -> Question | None:
    """One attempt at a question.

    An example is picked, and one part of its input is changed for the query. The random wrong option stands to the
    similar one as the wrong or old rule's does to the correct one: it is what another rule makes of the similar
    example's input. (For MemoryRet, which has no such option, it is what the rule makes of a third input that
    differs in the same part.) So no option is the odd one out.

    Args:
        spec: The file's knobs.
        domain: The file's domain.
        ground: What the question is about.
        heads: The names to ask for.
        asked: The inputs of earlier questions about the context.
        draws: The stream to draw from.

    Returns:
        None if the attempt gave no certified question: two options coincide, one repeats the query's input or
        (but for the similar one) an output already shown, the input is not new, the revision changes nothing,
        or another answer is possible too.
    """
    context, index = ground.context, ground.index
    anchor = domain.parse(index.examples[draws.choice(index.rivals(heads))].input)
    place = draws.below(len(domain.parts(anchor)))
    value = domain.edit(anchor, place, draws)
    query = Query(heads, domain.render(value))
    if query.input in asked or query.input in ground.inputs:
        return None
    similar_place = nearest_place(domain, query, index)
    similar = index.examples[similar_place]

    def output(program: Sequence[Operator[Any]], of: Any) -> str:
        return domain.render(run(program, of))

    right = context.program(heads)
    texts = {CORRECT: output(right, value), SIMILAR[spec.task]: similar.output}
    wrong: Heads | None = None
    if spec.task == "MemoryRet":
        # Where the similar example follows another rule, two options of three follow one. That the correct one is the
        # odd one out may happen in one case of three only.
        as_similar = similar.names != heads and draws.below(3) == 0
        program = context.program(similar.names) if as_similar else right
        texts["random_wrong"] = output(program, domain.edit(anchor, place, draws))
    else:
        if spec.task == "MemoryCom":
            wrong = _wrong_names(context, heads, draws)
            rule_type, other = "wrong_rule", context.program(wrong)
        else:
            rule_type, other = "old_rule", context.program(heads, revised=False)
        texts[rule_type] = output(other, value)
        similar_value = domain.parse(similar.input)
        if similar.names == heads:
            swapped = other if similar.output == output(right, similar_value) else right
        elif len(similar.names) > 1:
            swapped = context.program(_wrong_names(context, similar.names, draws))
        else:
            swapped = [draws.choice(domain.operators)]
        texts["random_wrong"] = output(swapped, similar_value)

    if len({*texts.values(), query.input}) < len(texts) + 1:
        return None
    if any(text in ground.outputs for kind, text in texts.items() if kind != SIMILAR[spec.task]):
        return None
    if possible_answers(domain, ground.reading, query) != {texts[CORRECT]}:
        return None
    if spec.task == "MemoryRev":
        before = possible_answers(domain, ground.reading, query, revised=False)
        if before != {texts["old_rule"]}:
            return None
    return Question(query, texts, index.lines[similar_place], wrong)


def _wrong_names(context: Context, heads: Heads, draws: Draws) -> Heads:
    """The same names in another order; instead of a single name, another one."""
    if len(heads) == 1:
        return (draws.choice([name for name in context.operators if name not in heads]),)
    wrong = heads
    while wrong == heads:
        wrong = tuple(draws.shuffled(heads))
    return wrong
