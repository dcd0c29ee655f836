"""Files ─► cases. The faults of all files are found before the first case is used, and listed together."""

from __future__ import annotations

import codecs
import dataclasses
import functools
import hashlib
from collections.abc import Iterable
from typing import Any, Literal

from etils import epath

from brb_jax.data import strict_json
from brb_jax.data.canonical import check_case
from brb_jax.data.case import Case
from brb_jax.data.fault import DataError, Fault
from brb_jax.data.filename import CONVENTION, SUFFIX, FileName, FileNameError


@dataclasses.dataclass(frozen=True)
class Dataset:
    """What was read.

    Attributes:
        cases: In the order of the files, and within a file as they stand there.
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


def read_cases(
    paths: Iterable[epath.PathLike],
    *,
    on_bad_case: Literal["fail", "skip"] = "fail",
    limit: int | None = None,
) -> Dataset:
    """Reads and checks benchmark files.

    Args:
        paths: Files, or directories of which every `*_que_ans.json` is read in order of name. May be `gs://…`.
        on_bad_case: What to do about a case with a fault: raise, or leave it out and list it in `skipped`. A
            fault of a whole file (name, JSON, metadata) always raises.
        limit: Keep the first `limit` cases of the whole list; the checks see all of them.

    Raises:
        DataError: Lists every fault that is not skipped.
        ValueError: `limit` is negative or `on_bad_case` unknown.
    """
    if limit is not None and limit < 0:
        raise ValueError(f"limit must be None or at least 0, got {limit}")
    if on_bad_case not in ("fail", "skip"):
        raise ValueError(f"on_bad_case must be 'fail' or 'skip', got {on_bad_case!r}")
    files, faults = _find_files(paths)
    cases: list[Case] = []
    digest = hashlib.sha256()
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as error:
            faults.append(_file_fault(file, f"cannot be read: {error}", "check the path and its permissions"))
            continue
        for part in (file.name.encode(), data):
            digest.update(len(part).to_bytes(8, "big") + part)
        file_cases, file_faults = _read_file(file, data)
        cases += file_cases
        faults += file_faults
    fatal = [fault for fault in faults if on_bad_case == "fail" or fault.place is None]
    if fatal:
        raise DataError(fatal)
    names = tuple(str(file) for file in files)
    return Dataset(tuple(cases[:limit]), tuple(faults), names, digest.hexdigest())


def _find_files(paths: Iterable[epath.PathLike]) -> tuple[list[epath.Path], list[Fault]]:
    """The files meant by `paths`, and what is wrong with the paths."""
    files: list[epath.Path] = []
    faults: list[Fault] = []
    for path in map(epath.Path, paths):
        path = path.expanduser()
        if path.is_dir():
            found = sorted((f for f in path.iterdir() if f.name.endswith(SUFFIX)), key=lambda f: f.name)
            files += found
            if not found:
                faults.append(_file_fault(path, f"the directory holds no *{SUFFIX} file", "name another"))
        elif path.exists():
            files.append(path)
        else:
            faults.append(_file_fault(path, "there is no such file or directory", "check the path"))
    if not files and not faults:
        faults.append(_file_fault("(no path)", "no files were named", "name a file or a directory"))
    by_name: dict[str, epath.Path] = {}
    for file in files:
        first = by_name.setdefault(file.name, file)
        if first is not file:
            problem = f"has the same name as {first}, so their case ids would collide"
            faults.append(_file_fault(file, problem, "rename one, or leave it out"))
    return files, faults


def _file_fault(file: epath.PathLike, problem: str, remedy: str) -> Fault:
    return Fault(str(file), None, None, problem, remedy)


def _read_file(file: epath.Path, data: bytes) -> tuple[list[Case], list[Fault]]:
    """The sound cases of one file, and what is wrong with the file and its other cases."""
    fault = functools.partial(_file_fault, file)
    try:
        name = FileName.parse(file.name)
    except FileNameError as error:
        return [], [fault(str(error), f"rename it to {CONVENTION}")]
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        return [], []
    try:
        document = strict_json.loads(data)
    except ValueError as error:
        return [], [fault(str(error), "correct the file")]
    if isinstance(document, dict):
        head, raw_cases = {k: v for k, v in document.items() if k != "cases"}, document.get("cases")
        doubled = getattr(document, "doubled", ())
    else:
        head, raw_cases, doubled = {}, document, ()
    if not isinstance(raw_cases, list):
        seen = f"an object with the keys {list(document)}" if isinstance(document, dict) else type(document).__name__
        return [], [fault(f"holds {seen}", 'make it an array of cases, or {"metadata": …, "cases": […]}')]
    faults = [fault(f"the key {key!r} stands twice in one object", "remove one") for key in doubled]
    faults += [fault(problem, "correct the metadata") for problem in strict_json.faults(head)]
    faults += [fault(problem, "rename the file or correct its metadata") for problem in _against_name(head, name)]
    cases: dict[str, Case] = {}
    for place, raw in enumerate(raw_cases):
        own_id, case, problems = check_case(raw, name)
        if case is not None and case.case_id in cases:
            problems = [("its id stands twice in the file", "give every case an id of its own")]
        elif case is not None:
            cases[case.case_id] = case
        faults += [Fault(str(file), place, own_id, problem, remedy) for problem, remedy in problems]
    return list(cases.values()), faults


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
