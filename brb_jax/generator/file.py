"""Knobs ─► the cases of a file ─► the file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from etils import epath

from brb_jax.data.case import Case
from brb_jax.data.writer import write_cases
from brb_jax.generator.context import Context, Rules, draw_context
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.draws import Draws
from brb_jax.generator.labels import balanced_labels, labelled
from brb_jax.generator.length import Target, TooLong, fit, shorten
from brb_jax.generator.lines import Example, Line, names_in, render_context
from brb_jax.generator.question import Question, draw_question, prepare
from brb_jax.generator.spec import FileSpec, SpecError

_QUESTION_ATTEMPTS = 60
_CONTEXT_ATTEMPTS = 200


def write_file(
    directory: epath.PathLike, spec: FileSpec, target: Target | None = None, *, overwrite: bool = False
) -> epath.Path:
    """Generates a file and writes it into `directory`, whole or not at all; one context is in memory at a time.

    Args:
        directory: Created if missing; may be `gs://…`.
        spec: What the file shall hold.
        target: Instead of `spec.m`: contexts hold as many examples, the same number in all, as keep every case
            within it.
        overwrite: As for `write_cases`.

    Returns:
        The file written.

    Raises:
        SpecError: As in `generate_cases`; or the target is too small.
        OtherContentsError: As in `write_cases`.
    """
    if target is None:
        return write_cases(directory, spec.file_name, generate_cases(spec), spec.metadata, overwrite=overwrite)
    spec = fit(spec, target)
    while True:
        try:
            metadata = {**spec.metadata, **target.metadata}
            return write_cases(directory, spec.file_name, generate_cases(spec, target), metadata, overwrite=overwrite)
        except TooLong as too_long:
            spec = shorten(spec, target, too_long.tokens)


def generate_cases(spec: FileSpec, target: Target | None = None) -> Iterator[Case]:
    """The cases of a file: solvable, certified, and the same everywhere.

    Args:
        spec: What the file shall hold.
        target: What each case's tokens are counted with and held against.

    Raises:
        SpecError: The knobs leave too little room (too few examples for a rule to follow from them).
        TooLong: A case exceeds the target.
    """
    stem = spec.file_name.stem
    labels = balanced_labels(spec.task, Draws("labels", *spec.stream))
    own_ids = iter(range(spec.cases))
    for number in itertools.count():
        draws = Draws("context", number, *spec.stream)
        ids = list(itertools.islice(own_ids, spec.questions_per_context))
        if not ids:
            return
        context, text, questions = _draw_with_questions(spec, draws)
        context_tokens = 0 if target is None else _counted(target, target.count(text))
        for own_id, question in zip(ids, questions, strict=False):
            answer = next(labels)
            options = labelled(question.texts, answer, draws)
            query = question.query.render()
            metadata = {"seed": spec.seed, "context": number, **_explain(context, question)}
            if target is not None:
                longest = max(target.count(f"{query} {option.text}") for option in options)
                metadata["tokens"] = _counted(target, context_tokens + longest)
            yield Case(
                case_id=f"{stem}/{own_id}",
                domain=spec.domain,
                task=spec.task,
                k=spec.k,
                edit_k=spec.edit_k,
                m=spec.m,
                context=text,
                query=query,
                options=options,
                answer=answer,
                metadata=metadata,
            )


def _counted(target: Target, tokens: int) -> int:
    """The tokens, if the target has room for them."""
    if tokens > target.tokens:
        raise TooLong(tokens)
    return tokens


def _draw_with_questions(spec: FileSpec, draws: Draws) -> tuple[Context, str, list[Question]]:
    """A context, its text, and the questions that share it; all drawn again where a question finds no certificate."""
    domain = DOMAINS[spec.domain]
    for _ in range(_CONTEXT_ATTEMPTS):
        context = draw_context(spec, draws)
        text = render_context(context.lines)
        ground = prepare(domain, context, text)
        questions: list[Question] = []
        order = draws.shuffled(context.askable)
        for i in range(spec.questions_per_context):
            asked = {question.query.input for question in questions}
            attempts = (
                draw_question(spec, domain, ground, order[(i + attempt) % len(order)], asked, draws)
                for attempt in range(_QUESTION_ATTEMPTS)
            )
            question = next((question for question in attempts if question is not None), None)
            if question is None:
                break
            questions.append(question)
        if len(questions) == spec.questions_per_context:
            return context, text, questions
    raise SpecError(
        f"{spec.file_name.format()}: {_CONTEXT_ATTEMPTS} contexts of m={spec.m} examples of {spec.operators} "
        f"operators left no room for {spec.questions_per_context} certain questions; raise m, or lower "
        "operators or questions_per_context"
    )


def _explain(context: Context, question: Question) -> dict[str, Any]:
    """What a person, or a program that makes other options, wants to know of a case."""
    heads = question.query.names
    explained: dict[str, Any] = {
        "input": question.query.input,
        "names": list(heads),
        "program": [operator.key for operator in context.program(heads)],
        "operators": _define(context.operators),
        "similar_line": question.similar_line,
        "distance": _distance(context.lines, heads),
    }
    if question.wrong is not None:
        explained["wrong_names"] = list(question.wrong)
    if context.revised:
        explained["old_program"] = [operator.key for operator in context.program(heads, revised=False)]
        explained["revised"] = _define(context.revised)
    return explained


def _distance(lines: Sequence[Line], heads: Sequence[str]) -> int:
    """How many examples stand between the last line that speaks of one of the names, and the question."""
    distance = 0
    for line in reversed(lines):
        if not {*names_in(line)}.isdisjoint(heads):
            break
        distance += isinstance(line, Example)
    return distance


def _define(rules: Rules) -> dict[str, dict[str, str]]:
    return {name: {"operator": o.key, "definition": o.definition} for name, o in rules.items()}
