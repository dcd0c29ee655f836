"""Knobs ─► the cases of a file ─► the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from etils import epath

from brb_jax.data.case import TASKS, Case, Option
from brb_jax.data.writer import write_cases
from brb_jax.generator.certificates import read
from brb_jax.generator.context import Context, draw_context
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.draws import Draws
from brb_jax.generator.lines import render_context
from brb_jax.generator.question import Question, draw_question
from brb_jax.generator.spec import FileSpec, SpecError

_QUESTION_ATTEMPTS = 20
_CONTEXT_ATTEMPTS = 200


def write_file(directory: epath.PathLike, spec: FileSpec) -> epath.Path:
    """Generates a file and writes it into `directory`, whole or not at all.

    Raises:
        SpecError: As in `generate_cases`.
    """
    return write_cases(directory, spec.file_name, generate_cases(spec), spec.metadata)


def generate_cases(spec: FileSpec) -> list[Case]:
    """The cases of a file: solvable, certified, and the same everywhere.

    Raises:
        SpecError: The knobs leave too little room (too few examples for a rule to follow from them).
    """
    stem = spec.file_name.stem
    knobs = (stem, spec.questions_per_context, spec.operators, spec.revision, spec.seed)
    labels = _balanced_labels(spec, Draws("labels", *knobs))
    cases: list[Case] = []
    while len(cases) < spec.cases:
        number = len(cases) // spec.questions_per_context
        draws = Draws("context", number, *knobs)
        context, questions = _draw_with_questions(spec, draws)
        text = render_context(context.lines)
        for question in questions[: spec.cases - len(cases)]:
            options, answer = _place(question, next(labels), draws)
            cases.append(
                Case(
                    case_id=f"{stem}/{len(cases)}",
                    domain=spec.domain,
                    task=spec.task,
                    k=spec.k,
                    edit_k=spec.edit_k,
                    m=spec.m,
                    context=text,
                    query=question.query.render(),
                    options=options,
                    answer=answer,
                    metadata={"seed": spec.seed, "context": number, **_explain(context, question)},
                )
            )
    return cases


def _draw_with_questions(spec: FileSpec, draws: Draws) -> tuple[Context, list[Question]]:
    """A context and the questions that share it; all drawn again where a question finds no certificate."""
    domain = DOMAINS[spec.domain]
    for _ in range(_CONTEXT_ATTEMPTS):
        context = draw_context(spec, draws)
        reading = read(domain, render_context(context.lines))
        questions: list[Question] = []
        order = draws.shuffled(context.askable)
        for i in range(spec.questions_per_context):
            asked = {question.query.input for question in questions}
            attempts = (
                draw_question(spec, domain, context, reading, order[(i + attempt) % len(order)], asked, draws)
                for attempt in range(_QUESTION_ATTEMPTS)
            )
            question = next((question for question in attempts if question is not None), None)
            if question is None:
                break
            questions.append(question)
        if len(questions) == spec.questions_per_context:
            return context, questions
    raise SpecError(
        f"{spec.file_name.format()}: {_CONTEXT_ATTEMPTS} contexts of m={spec.m} examples of {spec.operators} "
        f"operators left no room for {spec.questions_per_context} certain questions; raise m, or lower "
        "operators or questions_per_context"
    )


def _balanced_labels(spec: FileSpec, draws: Draws) -> Iterator[str]:
    """The labels of the correct options: every run of as many cases as there are labels has each once."""
    labels = [chr(ord("A") + i) for i in range(len(TASKS[spec.task].option_types))]
    while True:
        yield from draws.shuffled(labels)


def _place(question: Question, answer: str, draws: Draws) -> tuple[tuple[Option, ...], str]:
    """The options in random order, but for the correct one, whose label is given."""
    (correct, *wrong) = question.texts.items()
    placed = draws.shuffled(wrong)
    placed.insert(ord(answer) - ord("A"), correct)
    options = tuple(Option(chr(ord("A") + i), text, kind) for i, (kind, text) in enumerate(placed))
    return options, answer


def _explain(context: Context, question: Question) -> dict[str, Any]:
    """What a person, or a program that makes other options, wants to know of a case."""
    heads = question.query.names
    explained: dict[str, Any] = {
        "input": question.query.input,
        "names": list(heads),
        "program": [operator.key for operator in context.program(heads)],
        "operators": _define(context.operators),
        "similar_line": context.lines.index(question.similar),
    }
    if question.wrong_order is not None:
        explained["wrong_order"] = list(question.wrong_order)
    if context.revised:
        explained["old_program"] = [operator.key for operator in context.program(heads, revised=False)]
        explained["revised"] = _define(context.revised)
    return explained


def _define(operators: Any) -> dict[str, dict[str, str]]:
    return {name: {"operator": o.key, "definition": o.definition} for name, o in operators.items()}
