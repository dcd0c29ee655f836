"""A file ─► what it holds, sound or not. Whether these are cases with options or without, the `Kind` says."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar

from etils import epath

from brb_jax.data import strict_json
from brb_jax.data.document import Document, DocumentError, read_document
from brb_jax.data.fault import DataError, Fault
from brb_jax.data.fields import CASE_ALIASES, Problem, find
from brb_jax.data.filename import FileName
from brb_jax.data.files import Source
from brb_jax.data.rules import Rules


class Item(Protocol):
    """A dataclass of what a file lists."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def case_id(self) -> str: ...

    @property
    def context(self) -> str: ...


class Digest(Protocol):
    """A hash of `hashlib`."""

    def update(self, data: bytes, /) -> None: ...


T = TypeVar("T", bound=Item)


@dataclasses.dataclass(frozen=True)
class Kind(Generic[T]):
    """What files are read for.

    Attributes:
        check: Checks one raw case; takes and returns what `canonical.check_case` does.
        marks: By which fields an object is known for one; see `fields.looks_like_case`.
    """

    check: Callable[[Any, FileName, Rules, int | str | None], tuple[str | None, T | None, list[Problem]]]
    marks: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Contents(Generic[T]):
    """What one file holds.

    Attributes:
        source: The file.
        metadata: What it says of itself.
        items: What is sound, in the order of the file; no two with one id. Equal contexts are one string.
        faults: Of the file, and then of what it lists.
    """

    source: Source
    metadata: Mapping[str, Any]
    items: tuple[T, ...]
    faults: tuple[Fault, ...]


def read_contents(
    source: Source, kind: Kind[T], rules: Rules, texts: MutableMapping[str, str], digest: Digest | None = None
) -> Contents[T]:
    """Reads and checks one file.

    Args:
        source: The file.
        kind: What it is read for.
        rules: How raw cases are to be read.
        texts: See `strict_json.loads`.
        digest: Takes in the file's name and bytes.
    """

    def fault(problem: str, remedy: str) -> Fault:
        return Fault(source.shown, None, None, problem, remedy)

    try:
        data = _read(source.path)
    except OSError as error:
        unreadable = fault(f"cannot be read: {error}", "check the path and its permissions")
        return Contents(source, {}, (), (unreadable,))
    if digest is not None:
        for part in (os.fsencode(source.path.name), data):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    try:
        document = read_document(data, source.path.name, rules, texts, kind.marks)
    except DocumentError as error:
        return Contents(source, {}, (), tuple(fault(*problem) for problem in error.problems))
    name = source.name
    faults = [fault(f"the key {key!r} stands twice in one object", "remove one") for key in document.doubled]
    faults += [fault(problem, "correct the metadata") for problem in strict_json.faults(document.head)]
    faults += [
        fault(problem, "rename the file or correct its metadata") for problem in _against_name(document.head, name)
    ]
    items: dict[str, T] = {}
    for place, (raw, given_id) in enumerate(zip(document.cases, _given_ids(document, rules), strict=True)):
        own_id, item, problems = kind.check(raw, name, rules, given_id)
        if item is not None and item.case_id in items:
            problems = [("its id stands twice in the file", "give every case an id of its own")]
        elif item is not None:
            shared = texts.setdefault(item.context, item.context)
            items[item.case_id] = item if shared is item.context else dataclasses.replace(item, context=shared)
        faults += [Fault(source.shown, place, own_id, problem, remedy) for problem, remedy in problems]
    return Contents(source, document.head.get("metadata", {}), tuple(items.values()), tuple(faults))


def _read(path: epath.Path) -> bytes:
    """The bytes of a file. From a pipe or a device they may never come, or never end."""
    local = Path(path)  # Of what is in a bucket there is none, and it is a file; epath takes a pipe for one as well.
    if local.exists() and not (local.is_file() or local.is_dir()):
        raise OSError("it is a pipe or a device, not a file")
    return path.read_bytes()


def check_settings(on_bad_case: str, limit: int | None) -> None:
    """
    Raises:
        ValueError: `limit` is negative or `on_bad_case` unknown.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"limit must be None or at least 0, got {limit}")
    if on_bad_case not in ("fail", "skip"):
        raise ValueError(f"on_bad_case must be 'fail' or 'skip', got {on_bad_case!r}")


def refuse(faults: Iterable[Fault], on_bad_case: Literal["fail", "skip"]) -> None:
    """
    Raises:
        DataError: There are faults that cannot be skipped: those of whole files, or under `fail` all.
    """
    fatal = [fault for fault in faults if on_bad_case == "fail" or fault.place is None]
    if fatal:
        raise DataError(fatal)


def _given_ids(document: Document, rules: Rules) -> list[str | int | None]:
    """What the top level calls the cases: by key, or by place if none of them has an id."""
    if document.keys is not None:
        return list(document.keys)
    for raw in document.cases:
        if isinstance(raw, dict) and find(raw, {"id": CASE_ALIASES["id"]}, rules.field_map)["id"] is not None:
            return [None] * len(document.cases)
    return list(range(len(document.cases)))


def _against_name(head: dict[str, Any], name: FileName) -> list[str]:
    """Where the file's metadata says something else than its name."""
    metadata = head.get("metadata", {})
    if not isinstance(metadata, dict):
        return [f"its metadata is a {type(metadata).__name__}, not an object"]
    return [
        f"its name says {field}={value!r}, its metadata {field}={metadata[field]!r}"
        for field, value in dataclasses.asdict(name).items()
        if field in metadata and metadata[field] != value
    ]
