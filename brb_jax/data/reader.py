"""Files ─► cases. The faults of all files are found before the first case is used, and listed together."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable
from typing import Literal

from etils import epath

from brb_jax.data.canonical import check_case
from brb_jax.data.case import Case
from brb_jax.data.contents import Contents, Kind, check_settings, read_contents, refuse
from brb_jax.data.fault import Fault
from brb_jax.data.filename import FileName
from brb_jax.data.files import FileFilter, find_files
from brb_jax.data.rules import Rules

_CASES = Kind(check_case, ("options",))


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
class Survey:
    """What the files hold, sound or not.

    Attributes:
        files: In order of their names.
        faults: All of them: those of paths and names first, then file by file.
        fingerprint: See `Dataset`.
    """

    files: tuple[Contents[Case], ...]
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
    check_settings(on_bad_case, limit)
    survey = survey_files(paths, only=only, rules=rules)
    refuse(survey.faults, on_bad_case)
    cases = tuple(case for file in survey.files for case in file.items)
    names = tuple(file.source.exact for file in survey.files)
    return Dataset(cases[:limit], survey.faults, names, survey.fingerprint)


def survey_files(
    paths: Iterable[epath.PathLike], *, only: FileFilter | None = None, rules: Rules | None = None
) -> Survey:
    """Reads and checks benchmark files, and keeps faults beside what is sound. For the arguments see `read_cases`."""
    sources, faults = find_files(paths, only or FileFilter())
    texts: dict[str, str] = {}
    digest = hashlib.sha256()
    files = tuple(read_contents(source, _CASES, rules or Rules(), texts, digest) for source in sources)
    every = (*faults, *(fault for file in files for fault in file.faults))
    return Survey(files, every, digest.hexdigest())
