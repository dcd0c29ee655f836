"""A case in JSON, in whatever form ─► checked `Case`, or what is wrong with it. All faults of a case are found here.

Those that a case without options can have as well are found by `check_fields`.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from brb_jax.data import strict_json
from brb_jax.data.answer import FORMS, answer_index
from brb_jax.data.case import CORRECT, TASKS, Case, Option, TaskSpec
from brb_jax.data.fields import CASE_ALIASES, Problem, Unclear, keys
from brb_jax.data.filename import FileName
from brb_jax.data.forms import Form, canonical_form
from brb_jax.data.rules import Rules

_OPTION_KEYS = ("label", "text", "type")
_OPTION_FORM = '{"label": "A", "text": "…", "type": "…"}'
_BAD_CHARACTER = re.compile("[\0\ud800-\udfff]")


@dataclasses.dataclass(frozen=True)
class CheckedFields:
    """What could be made out of a case.

    Attributes:
        own_id: Its id, if it has a usable one.
        fields: Those of the canonical form that it has.
        metadata: Its own, with whatever else stands beside.
        problems: What is wrong, but for options and answer, of which only presence is checked.
    """

    own_id: str | None
    fields: Mapping[str, Any]
    metadata: Mapping[str, Any]
    problems: list[Problem]


def check_case(
    raw: Any, name: FileName, rules: Rules, given_id: int | str | None
) -> tuple[str | None, Case | None, list[Problem]]:
    """Checks one case.

    Args:
        raw: The value as parsed by `strict_json.loads`, in canonical form or any other that `forms` knows.
        name: What the file's name says.
        rules: What the user says about its form.
        given_id: What the file's top level calls the case: its key there, or its place where no case has an id.

    Returns:
        The case's own id if it has a usable one, the case if it is sound, and else everything wrong with it.
    """
    checked = check_fields(raw, name, rules, given_id, CASE_ALIASES)
    fields, problems = checked.fields, list(checked.problems)
    options, option_problems = _check_options(fields["options"], TASKS[name.task]) if "options" in fields else ((), [])
    problems += option_problems
    answer = ""
    if options and "answer" in fields:
        answer, answer_problems = _check_answer(fields["answer"], options)
        problems += answer_problems
    if problems:
        return checked.own_id, None, problems
    case = Case(
        case_id=f"{name.stem}/{checked.own_id}",
        domain=name.domain,
        task=name.task,
        k=name.k,
        edit_k=name.edit_k,
        m=name.m,
        context=fields["context"],
        query=fields["query"],
        options=options,
        answer=answer,
        metadata=checked.metadata,
    )
    return checked.own_id, case, []


def check_fields(
    raw: Any,
    name: FileName,
    rules: Rules,
    given_id: int | str | None,
    aliases: Mapping[str, tuple[str, ...]],
) -> CheckedFields:
    """Finds the fields of a case, and checks those that it has with or without options.

    Args:
        raw, name, rules, given_id: As for `check_case`.
        aliases: The fields to look for, as for `canonical_form`; but for `types`, none may be missing.
    """
    if not isinstance(raw, dict):
        return CheckedFields(None, {}, {}, [(f"is a {type(raw).__name__}, not an object", "write it as an object")])
    problems = [(problem, "correct the file") for problem in strict_json.faults(raw)]
    form = canonical_form(raw, name.stem, rules, given_id, aliases)
    problems += [problem for value in form.fields.values() if isinstance(value, Unclear) for problem in value.problems]
    missing = [key for key in aliases if key != "types" and key not in form.fields]
    if missing:
        remedy = f"add what is missing, or name its key: --field_map={missing[0]}=KEY"
        problems.append((f"lacks {', '.join(missing)}; its keys are {keys(raw)}", remedy))
    fields = {key: value for key, value in form.fields.items() if not isinstance(value, Unclear)}
    own_id, id_problems = _check_id(fields["id"]) if "id" in fields else (None, [])
    problems += id_problems
    texts: dict[str, Any] = {key: fields[key] for key in ("context", "query") if key in fields}
    for key, value in texts.items():
        if not isinstance(value, str):
            problems.append((f"its {key} is a {type(value).__name__}", "make it a text"))
    problems += bad_characters(texts)
    metadata, metadata_problems = _check_metadata(form)
    return CheckedFields(own_id, fields, metadata, problems + metadata_problems)


def _check_id(raw: Any) -> tuple[str | None, list[Problem]]:
    is_number = isinstance(raw, int) and not isinstance(raw, bool)
    if not is_number and not (isinstance(raw, str) and raw):
        return None, [(f"its id is {raw!r}", "make it a number or a non-empty text")]
    problems = bad_characters({"id": raw})
    return (None if problems else str(raw)), problems


def _check_answer(raw: Any, options: tuple[Option, ...]) -> tuple[str, list[Problem]]:
    """The label of the option meant (empty if none is), and what is wrong with it."""
    try:
        option = options[answer_index(raw, [option.text for option in options])]
    except ValueError as error:
        return "", [(str(error), f"give {FORMS}")]
    right = [option.label for option in options if option.type == CORRECT]
    if len(right) == 1 and option.type != CORRECT:
        problem = f"its answer is {option.label} (of type {option.type}), but of type correct is {right[0]}"
        return option.label, [(problem, "correct the answer or the types")]
    return option.label, []


def _check_metadata(form: Form) -> tuple[dict[str, Any], list[Problem]]:
    """The case's metadata, with whatever else stands beside the keys of the form."""
    if not isinstance(form.metadata, dict):
        return {}, [(f"its metadata is a {type(form.metadata).__name__}", "make it an object")]
    clash = sorted(form.extra.keys() & form.metadata.keys())
    if clash:
        return {}, [(f"{', '.join(clash)} stands both in its metadata and beside it", "keep one")]
    return {**form.extra, **form.metadata}, []


def _check_options(raw: Any, task: TaskSpec) -> tuple[tuple[Option, ...], list[Problem]]:
    """The options if each is well formed by itself (else none), and what is wrong with them."""
    if not isinstance(raw, list):
        return (), [(f"its options are a {type(raw).__name__}, not an array", "write them as an array")]
    problems: list[Problem] = []
    for i, option in enumerate(raw):
        if not isinstance(option, dict) or not all(isinstance(option.get(key), str) for key in _OPTION_KEYS):
            problems.append((f"its option {i} is {option!r}", f"write it as {_OPTION_FORM}"))
    if problems:
        return (), problems
    options = tuple(Option(*(option[key] for key in _OPTION_KEYS)) for option in raw)
    expected = f"{task.name} has the types {', '.join(task.option_types)}, each once"
    if len(options) != len(task.option_types):
        problems.append((f"has {len(options)} options, {task.name} has {len(task.option_types)}", expected))
    labels = [option.label for option in options]
    if labels != [chr(ord("A") + i) for i in range(len(options))]:
        problems.append((f"its labels are {', '.join(labels)}", "label the options A, B, C, … in this order"))
    count = Counter(option.type for option in options)
    for kind in [*task.option_types, *(kind for kind in count if kind not in task.option_types)]:
        if kind not in task.option_types:
            problems.append((f"has an option of the unknown type {kind!r}", expected))
        elif count[kind] != 1:
            problems.append((f"has {count[kind]} options of type {kind}", expected))
    first_with: dict[str, str] = {}
    for option in options:
        # White space at the ends is no difference: the delimiter rule of `prompt.render` may even undo it.
        text = option.text.strip()
        if not text:
            problems.append((f"its option {option.label} is empty", "give it a text"))
        elif text in first_with:
            problems.append(
                (
                    f"its options {first_with[text]} and {option.label} have the same text {text!r}",
                    "change one",
                )
            )
        first_with.setdefault(text, option.label)
    problems += bad_characters({f"option {option.label}": option.text for option in options})
    return options, problems


def bad_characters(texts: dict[str, Any]) -> list[Problem]:
    """NUL ends a string in many tokenizers, a lone surrogate has no UTF-8: a model would see something else."""
    problems: list[Problem] = []
    for where, text in texts.items():
        if not isinstance(text, str):
            continue  # reported elsewhere
        if found := _BAD_CHARACTER.search(text):
            what = "a NUL" if found[0] == "\0" else f"the lone surrogate U+{ord(found[0]):04X}"
            problems.append((f"its {where} holds {what} at character {found.start()}", "remove it"))
    return problems
