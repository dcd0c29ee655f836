"""Bytes of a file ─► its raw cases: the forms that the top level of a file may have. Knows little of what a case is."""

from __future__ import annotations

import dataclasses
import gzip
import json
import zlib
from collections.abc import Collection, MutableMapping
from typing import Any

from brb_jax.data import strict_json
from brb_jax.data.fields import CASES, Problem, keys, looks_like_case
from brb_jax.data.rules import Rules

_FORM = 'an array of cases, {"metadata": …, "cases": […]}, an object of cases by id, or one case a line'


@dataclasses.dataclass(frozen=True)
class Document:
    """What a file holds.

    Attributes:
        cases: The raw cases, in the order of the file.
        keys: What the top level calls each case; None for a list.
        head: What stands beside the cases.
        doubled: Keys that stand twice in the top level.
    """

    cases: list[Any]
    keys: list[str] | None = None
    head: dict[str, Any] = dataclasses.field(default_factory=dict)
    doubled: tuple[str, ...] = ()


class DocumentError(ValueError):
    """A file of which no case can be read.

    Attributes:
        problems: What is wrong, and what to do about it.
    """

    def __init__(self, problems: list[Problem]):
        self.problems = problems
        super().__init__("; ".join(problem for problem, _ in problems))


def read_document(
    data: bytes, file_name: str, rules: Rules, texts: MutableMapping[str, str], marks: Collection[str]
) -> Document:
    """Finds the cases of a file.

    Args:
        data: The file's bytes.
        file_name: Its ending tells what is packed (`.gz`) and what has one case a line (`.jsonl`).
        rules: `field_map` may name the key that holds the cases.
        texts: See `strict_json.loads`.
        marks: By which fields an object is known for a case; see `looks_like_case`.

    Raises:
        DocumentError: The file is not whole, no JSON, or of another form.
    """
    try:
        text = strict_json.decode(_unpack(data) if file_name.endswith(".gz") else data)
    except ValueError as error:
        raise DocumentError([(str(error), "correct the file")]) from error
    if not text.strip():
        return Document([])
    if file_name.removesuffix(".gz").endswith(".jsonl"):
        return _lines(text, texts)
    try:
        document = strict_json.loads(text, texts)
    except ValueError as error:
        if _one_object_a_line(text):
            return _lines(text, texts)
        raise DocumentError([(str(error), "correct the file")]) from error
    if isinstance(document, list):
        return Document(document)
    if not isinstance(document, dict):
        raise DocumentError([(f"holds {type(document).__name__}", f"make it {_FORM}")])
    if looks_like_case(document, rules.field_map, marks):
        return Document([document])
    return _of_object(document, rules, marks)


def _unpack(data: bytes) -> bytes:
    if not data:  # Which gzip takes for the end of a file of several parts.
        raise ValueError("not a whole gzip file: it is empty")
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"not a whole gzip file: {error}") from error


def _one_object_a_line(text: str) -> bool:
    first, _, rest = text.lstrip().partition("\n")
    try:
        return bool(rest.strip()) and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _lines(text: str, texts: MutableMapping[str, str]) -> Document:
    cases, problems = [], []
    # Not splitlines(), which also splits at characters that may stand in a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            cases.append(strict_json.loads(line, texts))
        except ValueError as error:
            cause = error.__cause__
            at = f"not JSON: {cause.msg} at column {cause.colno}" if isinstance(cause, json.JSONDecodeError) else error
            problems.append((f"line {number} is {at}", "correct the line; each holds one case"))
    if problems:
        raise DocumentError(problems)
    return Document(cases)


def _of_object(document: dict[str, Any], rules: Rules, marks: Collection[str]) -> Document:
    """The cases of an object: the list under one of its keys, or its values."""
    doubled = getattr(document, "doubled", ())
    named = CASES if CASES in document else None
    named = rules.field_map.get(CASES, named)
    if named is not None:
        held = document.get(named)
        head = {key: value for key, value in document.items() if key != named}
        if isinstance(held, list):
            return Document(held, head=head, doubled=doubled)
        if isinstance(held, dict) and _by_id(held, rules, marks):
            inner = (*doubled, *getattr(held, "doubled", ()))
            return Document(list(held.values()), list(held), head, inner)
        raise DocumentError([_unknown(document)])
    lists = [key for key, v in document.items() if isinstance(v, list) and any(isinstance(item, dict) for item in v)]
    by_id = _by_id(document, rules, marks)
    if len(lists) + by_id > 1:
        what = " and ".join(map(repr, lists)) + (" and its other values" if by_id else "")
        raise DocumentError(
            [(f"holds an object in which {what} could be the cases", f"say which: --field_map=cases={lists[0]}")]
        )
    if lists:
        head = {key: value for key, value in document.items() if key != lists[0]}
        return Document(document[lists[0]], head=head, doubled=doubled)
    if by_id:
        cases = {key: value for key, value in document.items() if key != "metadata"}
        head = {key: value for key, value in document.items() if key == "metadata"}
        return Document(list(cases.values()), list(cases), head, doubled)
    raise DocumentError([_unknown(document)])


def _by_id(document: dict[str, Any], rules: Rules, marks: Collection[str]) -> bool:
    return any(looks_like_case(value, rules.field_map, marks) for value in document.values())


def _unknown(document: dict[str, Any]) -> Problem:
    return (
        f"holds an object with the keys {keys(document)}",
        f"make it {_FORM}; or name the key of its cases: --field_map=cases=KEY",
    )
