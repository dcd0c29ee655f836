"""A question ─► the texts of its options; a file's questions ─► its cases, the right label balanced over them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from brb_jax.data.case import CORRECT, TASKS, Case
from brb_jax.data.questions import Question, QuestionFile
from brb_jax.generator.certificates import nearest_example
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.draws import Draws
from brb_jax.generator.labels import balanced_labels, labelled
from brb_jax.generator.options.mutation import mutated
from brb_jax.generator.options.proposals import Ask, proposed
from brb_jax.generator.options.rules import RULES, by_program, has_program
from brb_jax.generator.options.shape import pattern
from brb_jax.generator.surface import asked, ranked

RANDOM = "random_wrong"
WAYS = ("program", "search", "llm", "mutation")
"""How options are made, those with the least choice first: the others give way where two would coincide."""


@dataclasses.dataclass(frozen=True)
class MadeOptions:
    """What was made for one question.

    Attributes:
        texts: By option type, the right answer first; all differ.
        made_by: By wrong type, one of `WAYS`.
        missing: By wrong type, why it could not be made; empty where the question is complete.
    """

    texts: Mapping[str, str]
    made_by: Mapping[str, str]
    missing: Mapping[str, str]


def make_options(question: Question, seed: int, ask: Ask | None) -> MadeOptions:
    """Makes the wrong options of one question, as many as can be.

    Args:
        question: The question.
        seed: Names the stream of draws. An option depends on it, the question, and the LLM's replies alone.
        ask: The LLM for rules without a program; None where there is none.
    """
    made = {CORRECT: question.answer.strip()}
    missing: dict[str, str] = {}
    wrong = TASKS[question.name.task].wrong_types
    ways = {kind: _way(question, kind) for kind in wrong}
    for kind in sorted(wrong, key=lambda kind: WAYS.index(ways[kind])):
        if ways[kind] == "llm" and missing:
            continue  # The question is lost already; replies cost money.
        try:
            made[kind] = _make(question, kind, ways[kind], list(made.values()), seed, ask)
        except ValueError as error:
            missing[kind] = str(error)
    texts = {kind: made[kind] for kind in (CORRECT, *wrong) if kind in made}
    return MadeOptions(texts, {kind: ways[kind] for kind in texts if kind != CORRECT}, missing)


def _way(question: Question, kind: str) -> str:
    if kind in RULES:
        return "program" if has_program(question, kind) else "llm"
    return "mutation" if kind == RANDOM else "search"


def _make(question: Question, kind: str, way: str, taken: Sequence[str], seed: int, ask: Ask | None) -> str:
    """One option.

    Raises:
        ValueError: It cannot be made; says why.
    """
    draws = Draws("option", kind, seed, question.case_id)
    match way:
        case "program":
            return by_program(question, kind, taken, draws)
        case "search":
            return similar(question, taken)
        case "mutation":
            return random_wrong(question, taken, draws)
    if ask is None:
        raise ValueError(
            "its metadata has no program of a known domain; --llm_endpoint and --llm_model would ask an LLM"
        )
    return proposed(question, kind, taken, ask)


def similar(question: Question, taken: Sequence[str]) -> str:
    """The output of the example most like the query, of those that are not taken.

    Likeness is the generator's own for a text of its grammar, and else that of `surface.ranked`.

    Raises:
        ValueError: No example's output will do.
    """
    if question.name.domain in DOMAINS:
        with contextlib.suppress(ValueError):  # Another hand's file, of a domain that happens to have this name.
            text = nearest_example(DOMAINS[question.name.domain], question.context, question.query)
            if text not in taken:
                return text
    outputs = [example.output for example in ranked(question.context, question.query)]
    if not outputs:
        raise ValueError("its context has no line of the form `input -> output`")
    free = [output for output in outputs if output not in taken]
    if not free:
        raise ValueError("every output that its context shows is another option already")
    return free[0]


def random_wrong(question: Question, taken: Sequence[str], draws: Draws) -> str:
    """A mutation of the right answer, or of another option of the same pattern and length.

    Were it always of the right answer, that would be the one that most resembles another option.

    Raises:
        ValueError: There is no other value of that form, or none was found.
    """
    right = taken[0]
    bases = [text for text in taken if len(text) == len(right) and pattern(text) == pattern(right)]
    _, given = asked(question.query)
    text = mutated(bases, [*taken, given], question.context, draws)
    if text is None:
        raise ValueError(f"no other value of the form of {right!r} was found")
    return text


def assembled(file: QuestionFile, made: Iterable[MadeOptions], seed: int) -> list[Case]:
    """The cases of a file, without those that are incomplete.

    The right answer has each label as often as any other, to within one; the others follow in random order.

    Args:
        file: The file.
        made: For each of its questions.
        seed: Names the stream of draws.
    """
    complete = [(question, m) for question, m in zip(file.questions, made, strict=True) if not m.missing]
    labels = balanced_labels(file.name.task, Draws("labels", seed, file.name.stem))
    return [_case(question, options, label, seed) for (question, options), label in zip(complete, labels, strict=False)]


def _case(question: Question, made: MadeOptions, answer: str, seed: int) -> Case:
    name = question.name
    return Case(
        case_id=question.case_id,
        domain=name.domain,
        task=name.task,
        k=name.k,
        edit_k=name.edit_k,
        m=name.m,
        context=question.context,
        query=question.query,
        options=labelled(made.texts, answer, Draws("order", seed, question.case_id)),
        answer=answer,
        metadata={**question.metadata, "options_made_by": dict(made.made_by)},
    )
