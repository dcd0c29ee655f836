"""Question/answer files: benchmark files whose cases have no options yet, only the text of the right answer.

They are found and read as those with options are, in any of the same forms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from etils import epath

from brb_jax.data.canonical import bad_characters, check_fields
from brb_jax.data.contents import Kind, check_settings, read_contents, refuse
from brb_jax.data.fault import Fault
from brb_jax.data.fields import QUESTION_ALIASES, Problem, has
from brb_jax.data.filename import FileName
from brb_jax.data.files import FileFilter, Source, find_files
from brb_jax.data.rules import Rules


@dataclasses.dataclass(frozen=True)
class Question:
    """A case without options.

    Attributes:
        case_id: As of a `Case`.
        name: Of its file.
        context, query, metadata: As of a `Case`.
        answer: The text of the right answer.
    """

    case_id: str
    name: FileName
    context: str
    query: str
    answer: str
    metadata: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class QuestionFile:
    """One file: where it was, what it says of itself, and its questions in order."""

    source: Source
    metadata: Mapping[str, Any]
    questions: tuple[Question, ...]

    @property
    def name(self) -> FileName:
        return self.source.name


@dataclasses.dataclass(frozen=True)
class QuestionSet:
    """What was read.

    Attributes:
        files: In order of their names. Those of which `limit` or skipping leaves nothing are left out.
        skipped: The faults of cases left out under `on_bad_case="skip"`.
    """

    files: tuple[QuestionFile, ...]
    skipped: tuple[Fault, ...]


def read_questions(
    paths: Iterable[epath.PathLike],
    *,
    on_bad_case: Literal["fail", "skip"] = "fail",
    limit: int | None = None,
    only: FileFilter | None = None,
    rules: Rules | None = None,
) -> QuestionSet:
    """Reads and checks question/answer files. For arguments and errors see `reader.read_cases`.

    A case that has options, under any of their names, is a faulty one.
    """
    check_settings(on_bad_case, limit)
    sources, of_paths = find_files(paths, only or FileFilter())
    texts: dict[str, str] = {}
    files: list[QuestionFile] = []
    faults = list(of_paths)
    left = limit
    for source in sources:
        contents = read_contents(source, _QUESTIONS, rules or Rules(), texts)
        faults += contents.faults
        questions = contents.items[:left]
        if left is not None:
            left -= len(questions)
        if questions or not (contents.items or contents.faults):
            files.append(QuestionFile(source, contents.metadata, questions))
    refuse(faults, on_bad_case)
    return QuestionSet(tuple(files), tuple(faults))


def _check_question(
    raw: Any, name: FileName, rules: Rules, given_id: int | str | None
) -> tuple[str | None, Question | None, list[Problem]]:
    """As `check_case`."""
    aliases, problems = QUESTION_ALIASES, []
    if isinstance(raw, dict) and has(raw, "options", rules.field_map):
        # Then the answer may be a label as well, or left out.
        aliases = {field: names for field, names in aliases.items() if field != "answer"}
        problems = [("has options already", "leave the file out, or take the options out")]
    checked = check_fields(raw, name, rules, given_id, aliases)
    fields = checked.fields
    problems += checked.problems
    if "answer" in fields:
        answer = fields["answer"]
        if not isinstance(answer, str) or not answer.strip():
            problems.append((f"its answer is {answer!r}", "write the right answer's text"))
        problems += bad_characters({"answer": answer})
    if problems:
        return checked.own_id, None, problems
    question = Question(
        case_id=f"{name.stem}/{checked.own_id}",
        name=name,
        context=fields["context"],
        query=fields["query"],
        answer=fields["answer"],
        metadata=checked.metadata,
    )
    return checked.own_id, question, []


# By the options too, so that of a file that has them each case is refused, and not the file's form.
_QUESTIONS = Kind(_check_question, ("answer", "options"))
