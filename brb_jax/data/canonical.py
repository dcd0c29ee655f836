"""The canonical form of a case in JSON: raw value ─► checked `Case`, or what is wrong with it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from brb_jax.data import strict_json
from brb_jax.data.answer import FORMS, answer_index
from brb_jax.data.case import CORRECT, TASKS, Case, Option, TaskSpec
from brb_jax.data.filename import FileName

Problem = tuple[str, str]
"""What is wrong, and what to do about it."""

_KEYS = ("id", "context", "query", "options", "answer")
_OPTION_KEYS = ("label", "text", "type")
_OPTION_FORM = '{"label": "A", "text": "…", "type": "…"}'
_BAD_CHARACTER = re.compile("[\0\ud800-\udfff]")


def check_case(raw: Any, place: int, name: FileName) -> tuple[str, Case | None, list[Problem]]:
    """Checks one case.

    Args:
        raw: The value as parsed by `strict_json.loads`.
        place: Its 0-based place in the file.
        name: What the file's name says.

    Returns:
        How to refer to the case, the case if it is sound, and else everything that is wrong with it.
    """
    shown_id = f"#{place}"
    if not isinstance(raw, dict):
        return shown_id, None, [(f"is a {type(raw).__name__}, not an object", "write it as an object")]
    own_id = raw.get("id")
    problems = [(problem, "correct the file") for problem in strict_json.faults(raw)]
    missing = [key for key in _KEYS if key not in raw]
    if missing:
        problems.append((f"lacks {', '.join(missing)}; its keys are {list(raw)}", "add what is missing"))
    if (isinstance(own_id, str) and own_id) or (isinstance(own_id, int) and not isinstance(own_id, bool)):
        shown_id = str(own_id) if _BAD_CHARACTER.search(str(own_id)) is None else shown_id
    elif "id" in raw:
        problems.append((f"its id is {own_id!r}", "make it a number or a non-empty text"))
    texts = {key: raw[key] for key in ("context", "query") if key in raw}
    for key, value in texts.items():
        if not isinstance(value, str):
            problems.append((f"its {key} is a {type(value).__name__}", "make it a text"))
    problems += _bad_characters({"id": own_id, **texts})
    options, option_problems = _check_options(raw.get("options", []), TASKS[name.task])
    problems += option_problems if "options" in raw else []
    answer = -1
    if options and "answer" in raw:
        try:
            answer = answer_index(raw["answer"], [option.text for option in options])
        except ValueError as error:
            problems.append((str(error), f"give {FORMS}"))
        else:
            if not option_problems and options[answer].type != CORRECT:
                right = next(option.label for option in options if option.type == CORRECT)
                problems.append(
                    (
                        f"its answer is {options[answer].label} (of type {options[answer].type}), "
                        f"but the option of type correct is {right}",
                        "correct the answer or the types",
                    )
                )
    extra = {key: value for key, value in raw.items() if key not in (*_KEYS, "metadata")}
    metadata = raw.get("metadata", {})
    if not isinstance(metadata, dict):
        problems.append((f"its metadata is a {type(metadata).__name__}", "make it an object"))
    elif clash := sorted(extra.keys() & metadata.keys()):
        problems.append((f"{', '.join(clash)} stands beside its metadata and in it", "keep one"))
    if problems:
        return shown_id, None, problems
    case = Case(
        case_id=f"{name.stem}/{own_id}",
        domain=name.domain,
        task=name.task,
        k=name.k,
        edit_k=name.edit_k,
        m=name.m,
        context=raw["context"],
        query=raw["query"],
        options=options,
        answer=options[answer].label,
        metadata={**extra, **metadata},
    )
    return shown_id, case, []


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
    problems += _bad_characters({f"option {option.label}": option.text for option in options})
    return options, problems


def _bad_characters(texts: dict[str, Any]) -> list[Problem]:
    """NUL ends a string in many tokenizers, a lone surrogate has no UTF-8: neither reaches a model as it is."""
    problems: list[Problem] = []
    for where, text in texts.items():
        if not isinstance(text, str):
            continue  # reported elsewhere
        if found := _BAD_CHARACTER.search(text):
            what = "a NUL" if found[0] == "\0" else f"the lone surrogate U+{ord(found[0]):04X}"
            problems.append((f"its {where} holds {what} at character {found.start()}", "remove it"))
    return problems
