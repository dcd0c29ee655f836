"""Reads a GGUF file's header: its metadata, and where each tensor lies. Knows nothing of models.

The gguf package has a reader too, but builds several objects for every string: 15 seconds for Gemma's vocabulary,
where this takes less than one. The format: github.com/ggml-org/ggml, `docs/gguf.md`.
"""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Any

import numpy as np

from brb_jax.checkpoints.checkpoint import CheckpointError

_NUMBERS = {
    0: "u1",
    1: "i1",
    2: "u2",
    3: "i2",
    4: "u4",
    5: "i4",
    6: "f4",
    7: "?",
    10: "u8",
    11: "i8",
    12: "f8",
}
_STRING, _ARRAY = 8, 9
_VERSIONS = (2, 3)


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """One tensor of a file.

    Attributes:
        shape: Slowest axis first, as numpy writes it; the file has it the other way round.
        kind: GGML's number of the quantisation.
        offset: Of its first byte in the file.
    """

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclasses.dataclass(frozen=True)
class Header:
    """A file's metadata by key, and its tensors by name."""

    metadata: dict[str, Any]
    tensors: dict[str, TensorInfo]


def read_header(path: Path) -> Header:
    """Reads the header of a little-endian GGUF file of version 2 or 3.

    Raises:
        CheckpointError: It is no such file, or ends within its header.
    """
    cursor = _Cursor(np.memmap(path, mode="r") if path.stat().st_size else np.empty(0, np.uint8))
    try:
        if bytes(cursor.take(4)) != b"GGUF":
            raise CheckpointError(f"{path} is no GGUF file: it does not begin with 'GGUF'")
        version = cursor.number("u4")
        if version not in _VERSIONS:
            raise CheckpointError(f"{path} is a GGUF file of version {version}, only {_VERSIONS} are read")
        num_tensors, num_keys = cursor.number("u8"), cursor.number("u8")
        metadata = {}
        for _ in range(num_keys):
            key = cursor.string()
            metadata[key] = cursor.value(cursor.number("u4"))
        infos = {}
        for _ in range(num_tensors):
            name = cursor.string()
            shape = tuple(reversed(cursor.numbers("u8", cursor.number("u4"))))
            infos[name] = TensorInfo(shape, kind=cursor.number("u4"), offset=cursor.number("u8"))
    except EOFError as error:
        raise CheckpointError(f"{path} is not whole: it ends within its header") from error
    except (KeyError, RecursionError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} has a damaged header: {error!r}") from error
    alignment = metadata.get("general.alignment", 32)
    start = -(-cursor.position // alignment) * alignment  # Offsets count from the first aligned byte.
    tensors = {name: dataclasses.replace(info, offset=start + info.offset) for name, info in infos.items()}
    return Header(metadata, tensors)


class _Cursor:
    """Walks through the bytes of a header; raises EOFError past the end."""

    def __init__(self, data: np.ndarray):
        self._data = data.data
        self.position = 0

    def take(self, count: int) -> memoryview:
        taken = self._data[self.position : self.position + count]
        if len(taken) != count:
            raise EOFError
        self.position += count
        return taken

    def number(self, kind: str) -> Any:
        return self.numbers(kind, 1)[0]

    def numbers(self, kind: str, count: int) -> list[Any]:
        dtype = np.dtype(kind).newbyteorder("<")
        return np.frombuffer(self.take(count * dtype.itemsize), dtype).tolist()

    def string(self) -> str:
        (length,) = struct.unpack("<Q", self.take(8))
        return str(self.take(length), "utf-8")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            return self.number(_NUMBERS[kind])
        items, count = self.number("u4"), self.number("u8")
        if items in _NUMBERS:
            return self.numbers(_NUMBERS[items], count)
        return [self.value(items) for _ in range(count)]
