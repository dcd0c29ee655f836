"""Question/answer files: benchmark files whose cases have no options yet, only the text of the right answer."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from etils import epath

from brb_jax.data import strict_json
from brb_jax.data.canonical import Problem, check_case
from brb_jax.data.case import TASKS
from brb_jax.data.fault import DataError, Fault
from brb_jax.data.filename import CONVENTION, SUFFIX, FileName, FileNameError


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
    """One file: where it was, its name's parts, what it says of itself, and its questions in order."""

    path: epath.Path
    name: FileName
    metadata: Mapping[str, Any]
    questions: tuple[Question, ...]


def read_questions(paths: Iterable[epath.PathLike]) -> tuple[QuestionFile, ...]:
    """Reads and checks question/answer files.

    Args:
        paths: Files, or directories of which every `*_que_ans.json` is read in order of name. May be `gs://…`.

    Raises:
        DataError: Lists every fault of every file.
    """
    files: list[QuestionFile] = []
    faults: list[Fault] = []
    named: dict[str, epath.Path] = {}
    for path in _files(paths):
        if (first := named.setdefault(path.name, path)) is not path:
            faults.append(_fault(path, f"has the same name as {first}", "rename one, or leave it out"))
            continue
        file, file_faults = _read_file(path)
        files += [file] if file else []
        faults += file_faults
    if not named:
        faults.append(_fault("(no path)", "no files were named", "name a file or a directory"))
    if faults:
        raise DataError(faults)
    return tuple(files)


def _files(paths: Iterable[epath.PathLike]) -> Iterable[epath.Path]:
    for path in map(epath.Path, paths):
        path = path.expanduser()
        if path.is_dir():
            found = sorted((file for file in path.iterdir() if file.name.endswith(SUFFIX)), key=lambda file: file.name)
            yield from found or [path]
        else:
            yield path


def _read_file(path: epath.Path) -> tuple[QuestionFile | None, list[Fault]]:
    if path.is_dir():
        return None, [_fault(path, f"the directory holds no *{SUFFIX} file", "name another")]
    try:
        name = FileName.parse(path.name)
        document = strict_json.loads(path.read_bytes())
    except FileNameError as error:
        return None, [_fault(path, str(error), f"rename it to {CONVENTION}")]
    except OSError as error:
        return None, [_fault(path, f"cannot be read: {error}", "check the path and its permissions")]
    except ValueError as error:
        return None, [_fault(path, str(error), "correct the file")]
    head, raw_cases = {}, document
    if isinstance(document, dict):
        head, raw_cases = {key: value for key, value in document.items() if key != "cases"}, document.get("cases")
    metadata = head.get("metadata", {})
    if not isinstance(raw_cases, list) or not isinstance(metadata, dict):
        form = 'make it an array of cases, or {"metadata": {…}, "cases": […]}'
        return None, [_fault(path, "holds no list of cases, or its metadata is no object", form)]
    doubled = getattr(document, "doubled", ())
    faults = [_fault(path, f"the key {key!r} stands twice in one object", "remove one") for key in doubled]
    faults += [_fault(path, problem, "correct the metadata") for problem in strict_json.faults(head)]
    questions: dict[str, Question] = {}
    for place, raw in enumerate(raw_cases):
        own_id, question, problems = _check_question(raw, name)
        if question is not None and question.case_id in questions:
            problems = [("its id stands twice in the file", "give every case an id of its own")]
        elif question is not None:
            questions[question.case_id] = question
        faults += [Fault(str(path), place, own_id, problem, remedy) for problem, remedy in problems]
    return QuestionFile(path, name, metadata, tuple(questions.values())), faults


def _check_question(raw: Any, name: FileName) -> tuple[str | None, Question | None, list[Problem]]:
    """As `check_case`, which is shown the case with options that differ from the answer by a few hyphens."""
    if not isinstance(raw, dict):
        return None, None, check_case(raw, name)[2]
    problems = _answer_problems(raw)
    answer = "x" if problems else raw["answer"]
    labelled = zip("ABCD", TASKS[name.task].option_types, strict=False)
    options = [{"label": label, "text": answer + "-" * i, "type": kind} for i, (label, kind) in enumerate(labelled)]
    complete = copy.copy(raw)  # Keeps the marks of `strict_json`.
    complete.update(options=options, answer=options[0]["label"])
    own_id, case, others = check_case(complete, name)
    # A fault of the answer is one of every option made of it.
    problems += [
        (problem.replace("its option A", "its answer", 1), remedy)
        for problem, remedy in others
        if not problem.startswith(("its option B", "its option C", "its option D"))
    ]
    if case is None or problems:
        return own_id, None, problems
    return own_id, Question(case.case_id, name, case.context, case.query, answer, case.metadata), []


def _answer_problems(raw: dict[str, Any]) -> list[Problem]:
    if "options" in raw:
        return [("has options already", "leave the file out, or take the options out")]
    if "answer" not in raw:
        return [(f"lacks answer; its keys are {list(raw)}", "add what is missing")]
    if not isinstance(raw["answer"], str) or not raw["answer"].strip():
        return [(f"its answer is {raw['answer']!r}", "write the right answer's text")]
    return []


def _fault(path: epath.PathLike, problem: str, remedy: str) -> Fault:
    return Fault(str(path), None, None, problem, remedy)
