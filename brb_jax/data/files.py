"""Paths as a user gives them ─► the benchmark files meant, in one order for all ways of naming them.

Files are chosen by name, before any is read or downloaded.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from etils import epath

from brb_jax.data import hub
from brb_jax.data.case import TASKS
from brb_jax.data.fault import Fault
from brb_jax.data.filename import CONVENTION, SUFFIX, SUFFIXES, FileName, FileNameError

_MAGIC = re.compile(r"[*?[]")
NONE = "none"


class FilterError(ValueError):
    """A filter that cannot be followed."""


@dataclasses.dataclass(frozen=True)
class FileFilter:
    """Which files to read, by what their names say. Each is a list of what is kept; empty keeps all.

    Attributes:
        tasks, domains, m: As in file names.
        k, edit_k: None stands for a name that has no such number.
    """

    tasks: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    k: tuple[int | None, ...] = ()
    edit_k: tuple[int | None, ...] = ()
    m: tuple[int | None, ...] = ()

    def __post_init__(self):
        for task in self.tasks:
            if task not in TASKS:
                raise FilterError(f"--tasks: there is no task {task!r}; the tasks are {', '.join(TASKS)}")

    def kept(self) -> dict[str, tuple[str, tuple[Any, ...]]]:
        """By flag: the part of a file's name, and what of it is kept; filters that keep all are left out."""
        parts = {"tasks": "task", "domains": "domain", "k": "k", "edit_k": "edit_k", "m": "m"}
        return {flag: (part, getattr(self, flag)) for flag, part in parts.items() if getattr(self, flag)}

    def keeps(self, name: FileName) -> bool:
        """Whether a file of this name is to be read."""
        return all(getattr(name, part) in values for part, values in self.kept().values())


def parse_numbers(flag: str, items: Sequence[str]) -> tuple[int | None, ...]:
    """`["2", "none"]` as `(2, None)`.

    Raises:
        FilterError: An item is neither a number nor `none`.
    """
    numbers: list[int | None] = []
    for item in items:
        if item.strip() != NONE and not re.fullmatch(r"[0-9]+", item.strip()):
            raise FilterError(f"--{flag}: {item!r} is neither a whole number nor {NONE!r}; write it as 2,3")
        numbers.append(None if item.strip() == NONE else int(item))
    return tuple(numbers)


@dataclasses.dataclass(frozen=True)
class Source:
    """A file to read.

    Attributes:
        shown: The file as messages name it.
        name: What its name says.
        path: Where its bytes are.
        exact: The file as the run's record names it; of a Hub repository, with its commit.
    """

    shown: str
    name: FileName
    path: epath.Path
    exact: str


@dataclasses.dataclass(frozen=True)
class _Found:
    """A file that a path means; of a Hub repository, if `repository` is set, where it has not been fetched yet."""

    shown: str
    path: str
    repository: hub.Repository | None = None

    @property
    def file_name(self) -> str:
        return self.path.rstrip("/").rpartition("/")[2]


def find_files(paths: Iterable[epath.PathLike], only: FileFilter) -> tuple[list[Source], list[Fault]]:
    """The files meant by `paths` and kept by `only`, and what is wrong with paths and names.

    A directory, or one that a glob matches, stands for all benchmark files in it and below, hidden ones excepted (in a
    bucket, only for those in it). The order is that of the files' names, whatever the paths.
    """
    found: list[_Found] = []
    faults: list[Fault] = []
    given = [os.fspath(path) for path in paths]
    for path in given:
        try:
            found += _on_hub(path) if path.startswith(hub.SCHEME) else _on_disk(path)
        except _NothingThereError as error:
            faults.append(_fault(error.where, error.problem, error.remedy))
        except hub.HubError as error:
            faults.append(_fault(path, error.problem, error.remedy))
        except OSError as error:
            faults.append(_fault(path, f"cannot be read: {error}", "check the path and its permissions"))
    if not given:
        faults.append(_fault("(no path)", "no files were named", "name a file or a directory"))
    named: list[tuple[FileName, _Found]] = []
    for file in found:
        try:
            named.append((FileName.parse(file.file_name), file))
        except FileNameError as error:
            faults.append(_fault(file.shown, str(error), f"rename it to {CONVENTION}"))
    kept = sorted(((name, file) for name, file in named if only.keeps(name)), key=lambda pair: pair[0].format())
    if named:
        faults += _left_over(only, [name for name, _ in named], bool(kept))
    first_with: dict[str, _Found] = {}
    for name, file in kept:
        first = first_with.setdefault(name.stem, file)
        if first is not file:
            problem = f"has the same name as {first.shown}, so their case ids would collide"
            faults.append(_fault(file.shown, problem, "rename one, or leave it out"))
    sources, download_faults = _fetched(kept)
    return sources, faults + download_faults


class _NothingThereError(Exception):
    def __init__(self, where: str, problem: str, remedy: str):
        self.where, self.problem, self.remedy = where, problem, remedy


def _fault(file: str, problem: str, remedy: str) -> Fault:
    return Fault(file, None, None, problem, remedy)


def _on_disk(given: str) -> list[_Found]:
    path = epath.Path(given).expanduser()
    if path.is_dir():
        files = _below(str(path))
        if not files:
            raise _NothingThereError(str(path), f"the directory holds no *{SUFFIX} file", "name another")
    elif path.exists():
        files = [str(path)]
    elif _MAGIC.search(str(path)):
        matches = _glob(str(path))
        files = [file for match in matches for file in (_below(match) if epath.Path(match).is_dir() else [match])]
        files = [file for file in dict.fromkeys(files) if file.endswith(SUFFIXES)]
        if not files:
            raise _NothingThereError(str(path), f"no *{SUFFIX} file matches", "check the pattern")
    else:
        raise _NothingThereError(str(path), "there is no such file or directory", "check the path")
    return [_Found(file, file) for file in files]


def _below(directory: str) -> list[str]:
    """Benchmark files of a directory and those in it; of a directory in a bucket alone, where each costs a request."""
    if "://" in directory:
        return [str(f) for f in epath.Path(directory).iterdir() if f.name.endswith(SUFFIXES)]
    files: list[str] = []
    seen: set[str] = set()
    for folder, subfolders, names in os.walk(directory, onerror=_refuse, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:  # A link that leads back.
            subfolders.clear()
            continue
        seen.add(real)
        files += [
            str(Path(folder, name))
            for name in (*names, *subfolders)
            if name.endswith(SUFFIXES) and not name.startswith(".")
        ]
        subfolders[:] = (name for name in subfolders if not name.startswith("."))
    return sorted(files)


def _refuse(error: OSError) -> None:
    raise error


def _glob(pattern: str) -> list[str]:
    if "://" not in pattern:
        return glob.glob(pattern, recursive=True)  # noqa: PTH207 — pathlib's differs from Python to Python
    parts = epath.Path(pattern).parts
    fixed = next(i for i, part in enumerate(parts) if _MAGIC.search(part))
    try:
        return [str(match) for match in epath.Path(*parts[:fixed]).glob("/".join(parts[fixed:]))]
    except NotImplementedError:
        raise _NothingThereError(pattern, "** does not work in a bucket", "name the folders") from None


def _on_hub(uri: str) -> list[_Found]:
    repository, paths = hub.find_files(uri)
    files = [path for path in paths if path.endswith(SUFFIXES) and not path.rpartition("/")[2].startswith(".")]
    if not files:
        what = f"holds no *{SUFFIX} file" if not paths else f"means {len(paths)} files, of which none is a *{SUFFIX}"
        raise _NothingThereError(uri, what, "check the path behind the repository's name, or name another repository")
    address = repository.address(repository.revision)
    return [_Found(f"{address}/{path}", path, repository) for path in files]


def _left_over(only: FileFilter, names: Sequence[FileName], any_kept: bool) -> list[Fault]:
    """Faults of filters: a value that no file has is a slip of the pen, and so is a filter that leaves nothing."""
    faults = []
    for flag, (part, values) in only.kept().items():
        there = dict.fromkeys(getattr(name, part) for name in names)
        for value in values:
            if value not in there:
                listed = ", ".join(_shown(v) for v in sorted(there, key=lambda v: (v is not None, v)))
                problem = f"none of the {len(names)} files has it; they have {part} = {listed}"
                faults.append(_fault(f"--{flag}={_shown(value)}", problem, "correct the flag, or --data"))
    if not any_kept and not faults:
        flags = ", ".join(f"--{flag}={','.join(map(_shown, values))}" for flag, (_, values) in only.kept().items())
        faults.append(_fault(flags, f"no file is left of {len(names)}", "loosen the filters"))
    return faults


def _shown(value: Any) -> str:
    return NONE if value is None else str(value)


def _fetched(kept: Sequence[tuple[FileName, _Found]]) -> tuple[list[Source], list[Fault]]:
    """The files, those of the Hub downloaded."""
    wanted: dict[hub.Repository, list[str]] = {}
    for _, file in kept:
        if file.repository is not None:
            wanted.setdefault(file.repository, []).append(file.path)
    folders, faults = {}, []
    for repository, paths in wanted.items():
        try:
            folders[repository] = hub.download(repository, paths)
        except hub.HubError as error:
            faults.append(_fault(repository.address(repository.revision), error.problem, error.remedy))
    sources = []
    for name, file in kept:
        if file.repository is None:
            sources.append(Source(file.shown, name, epath.Path(file.path), file.shown))
        elif file.repository in folders:
            folder, commit = folders[file.repository]
            exact = f"{file.repository.address(commit)}/{file.path}"
            sources.append(Source(file.shown, name, epath.Path(folder) / file.path, exact))
    return sources, faults
