"""Files ─► cases. The faults of all files are found before the first case is used, and listed together."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, MutableMapping
from typing import Any, Literal

from etils import epath

from brb_jax.data import strict_json
from brb_jax.data.canonical import check_case
from brb_jax.data.case import Case
from brb_jax.data.document import Document, DocumentError, read_document
from brb_jax.data.fault import DataError, Fault
from brb_jax.data.fields import CASE_ALIASES, find
from brb_jax.data.filename import FileName
from brb_jax.data.files import FileFilter, Source, find_files
from brb_jax.data.rules import Rules


@dataclasses.dataclass(frozen=True)
class Dataset:
    """What was read.

    Attributes:
        cases: In order of the files' names, and within a file as they stand there.
        skipped: The faults of cases left out under `on_bad_case="skip"`.
        files: The files read, in order.
        fingerprint: sha256 over the files' names and bytes, in order; independent of directory and `limit`.
    """

    cases: tuple[Case, ...]
    skipped: tuple[Fault, ...]
    files: tuple[str, ...]
    fingerprint: str

    @property
    def skipped_cases(self) -> tuple[FileName, ...]:
        """For each case left out, the name of its file (a case may have several faults)."""
        places = dict.fromkeys((fault.file, fault.place) for fault in self.skipped)
        return tuple(FileName.parse(epath.Path(file).name) for file, _ in places)


@dataclasses.dataclass(frozen=True)
class FileCases:
    """What one file holds: its sound cases, and what is wrong with it and its other cases."""

    source: Source
    cases: tuple[Case, ...]
    faults: tuple[Fault, ...]


@dataclasses.dataclass(frozen=True)
class Survey:
    """What the files hold, sound or not.

    Attributes:
        files: In order of their names.
        faults: All of them: those of paths and names first, then file by file.
        fingerprint: See `Dataset`.
    """

    files: tuple[FileCases, ...]
    faults: tuple[Fault, ...]
    fingerprint: str


def read_cases(
    paths: Iterable[epath.PathLike],
    *,
    on_bad_case: Literal["fail", "skip"] = "fail",
    limit: int | None = None,
    only: FileFilter | None = None,
    rules: Rules | None = None,
) -> Dataset:
    """Reads and checks benchmark files.

    Args:
        paths: Files, directories of which every benchmark file in and below is read, globs, or Hub repositories
            (`hf://datasets/owner/name`). May be `gs://…`.
        on_bad_case: What to do about a case with a fault: raise, or leave it out and list it in `skipped`. A
            fault of a whole file (name, JSON, metadata) always raises.
        limit: Keep the first `limit` cases of the whole list; the checks see all of them.
        only: Which files to read; by default all.
        rules: How cases of another form than the canonical one are to be read.

    Raises:
        DataError: Lists every fault that is not skipped.
        ValueError: `limit` is negative or `on_bad_case` unknown.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"limit must be None or at least 0, got {limit}")
    if on_bad_case not in ("fail", "skip"):
        raise ValueError(f"on_bad_case must be 'fail' or 'skip', got {on_bad_case!r}")
    survey = survey_files(paths, only=only, rules=rules)
    fatal = [fault for fault in survey.faults if on_bad_case == "fail" or fault.place is None]
    if fatal:
        raise DataError(fatal)
    cases = tuple(case for file in survey.files for case in file.cases)
    names = tuple(file.source.exact for file in survey.files)
    return Dataset(cases[:limit], survey.faults, names, survey.fingerprint)


def survey_files(
    paths: Iterable[epath.PathLike], *, only: FileFilter | None = None, rules: Rules | None = None
) -> Survey:
    """Reads and checks benchmark files, and keeps faults beside what is sound. For the arguments see `read_cases`."""
    sources, faults = find_files(paths, only or FileFilter())
    files: list[FileCases] = []
    texts: dict[str, str] = {}
    digest = hashlib.sha256()
    for source in sources:
        try:
            data = source.path.read_bytes()
        except OSError as error:
            problem = f"cannot be read: {error}"
            fault = Fault(source.shown, None, None, problem, "check the path and its permissions")
            files.append(FileCases(source, (), (fault,)))
            continue
        for part in (source.path.name.encode(), data):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        cases, file_faults = _read_file(source, data, rules or Rules(), texts)
        files.append(FileCases(source, tuple(cases), tuple(file_faults)))
    every = (*faults, *(fault for file in files for fault in file.faults))
    return Survey(tuple(files), every, digest.hexdigest())


def _read_file(
    source: Source, data: bytes, rules: Rules, texts: MutableMapping[str, str]
) -> tuple[list[Case], list[Fault]]:
    """The sound cases of one file, and what is wrong with the file and its other cases."""

    def fault(problem: str, remedy: str) -> Fault:
        return Fault(source.shown, None, None, problem, remedy)

    try:
        document = read_document(data, source.path.name, rules, texts)
    except DocumentError as error:
        return [], [fault(*problem) for problem in error.problems]
    name = source.name
    faults = [fault(f"the key {key!r} stands twice in one object", "remove one") for key in document.doubled]
    faults += [fault(problem, "correct the metadata") for problem in strict_json.faults(document.head)]
    faults += [
        fault(problem, "rename the file or correct its metadata") for problem in _against_name(document.head, name)
    ]
    cases: dict[str, Case] = {}
    for place, (raw, given_id) in enumerate(zip(document.cases, _given_ids(document, rules), strict=True)):
        own_id, case, problems = check_case(raw, name, rules, given_id)
        if case is not None and case.case_id in cases:
            problems = [("its id stands twice in the file", "give every case an id of its own")]
        elif case is not None:
            shared = texts.setdefault(case.context, case.context)
            cases[case.case_id] = case if shared is case.context else dataclasses.replace(case, context=shared)
        faults += [Fault(source.shown, place, own_id, problem, remedy) for problem, remedy in problems]
    return list(cases.values()), faults


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
