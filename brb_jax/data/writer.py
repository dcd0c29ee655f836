"""Cases ─► a file in the canonical form, which `reader` takes back unchanged."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from etils import epath

from brb_jax.data.case import Case
from brb_jax.data.filename import FileName

_BLOCK = 1 << 20


class OtherContentsError(FileExistsError):
    """A file is there already, at `path`, and holds something else than what was to be written."""

    def __init__(self, path: epath.Path):
        super().__init__(f"{path} exists and holds something else; pass --overwrite to replace it")
        self.path = path


def write_cases(
    directory: epath.PathLike,
    name: FileName,
    cases: Iterable[Case],
    metadata: Mapping[str, Any],
    *,
    overwrite: bool = False,
) -> epath.Path:
    """Writes `{"metadata": …, "cases": […]}`, one case a line, under the name the convention gives.

    The file appears whole or not at all (written beside, then renamed). Cases are written as they come, so that of a
    generator's long contexts one is in memory at a time.

    Args:
        directory: Created if missing; may be `gs://…`.
        name: The file's name.
        cases: Their `case_id`s must begin with `name.stem` and a slash.
        metadata: What holds for the whole file.
        overwrite: Whether to replace a file of the same name that holds something else.

    Returns:
        The file written.

    Raises:
        ValueError: A case belongs to another file, or its metadata is no JSON.
        OtherContentsError: There is a file of the same name that holds something else, and is not to be replaced.
    """
    directory = epath.Path(directory).expanduser()
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name.format()
    beside = directory / f".{path.name}.{os.getpid()}.tmp"
    try:
        with beside.open("wb") as file:
            for piece in _pieces(name, cases, metadata):
                file.write(piece)
        if not overwrite and path.exists() and not _same_bytes(beside, path):
            raise OtherContentsError(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    beside.replace(path)
    return path


def _same_bytes(one: epath.Path, other: epath.Path) -> bool:
    if one.stat().length != other.stat().length:
        return False
    with one.open("rb") as a, other.open("rb") as b:
        return all(block == b.read(_BLOCK) for block in iter(lambda: a.read(_BLOCK), b""))


def encode(name: FileName, cases: Iterable[Case], metadata: Mapping[str, Any]) -> bytes:
    """The bytes of the file: UTF-8, the same for the same arguments everywhere."""
    return b"".join(_pieces(name, cases, metadata))


def _pieces(name: FileName, cases: Iterable[Case], metadata: Mapping[str, Any]) -> Iterator[bytes]:
    """The bytes of the file, a case at a time."""
    yield f'{{"metadata": {_json(dict(metadata))},\n"cases": ['.encode()
    between = "\n"
    for case in cases:
        yield f"{between}{_json(_raw_case(name, case))}".encode()
        between = ",\n"
    yield b"]}\n" if between == "\n" else b"\n]}\n"


def _raw_case(name: FileName, case: Case) -> dict[str, Any]:
    own_id = case.case_id.removeprefix(f"{name.stem}/")
    if own_id == case.case_id:
        raise ValueError(f"case {case.case_id} does not belong in {name.format()}")
    is_number = own_id.isdecimal() and str(int(own_id)) == own_id
    return {
        "id": int(own_id) if is_number else own_id,
        "context": case.context,
        "query": case.query,
        "options": [{"label": o.label, "text": o.text, "type": o.type} for o in case.options],
        "answer": case.answer,
        "metadata": dict(case.metadata),
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
