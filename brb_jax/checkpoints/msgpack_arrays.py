"""Arrays in msgpack files of Flax: EasyLM's streams of (path, array) records, and whole trees in one object.

Opening finds where each array lies without reading any: a file may be larger than memory, and a record of EasyLM's
optimizer state is passed over. Knows nothing of decoders.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes  # noqa: F401 — teaches numpy the name bfloat16.
import numpy as np
from etils import epath

from brb_jax.checkpoints.checkpoint import CheckpointError

# By first byte: what it begins, and in how many further bytes its length (its number of entries) is given.
_SIZED = {
    **{0xC4 + i: ("bytes", 1 << i) for i in range(3)},
    **{0xC7 + i: ("extension", 1 << i) for i in range(3)},
    **{0xD9 + i: ("text", 1 << i) for i in range(3)},
    **{0xDC + i: ("list", 2 << i) for i in range(2)},
    **{0xDE + i: ("map", 2 << i) for i in range(2)},
}
_UNSIGNED = {0xCC + i: 1 << i for i in range(4)}
# nil, false, true, two floats, four signed integers: no part of an array's description.
_OTHERS = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, **{0xD0 + i: 1 << i for i in range(4)}}

_DTYPES = {"bool", "bfloat16", "float16", "float32", "float64"}
_DTYPES |= {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
_NDARRAY = 1  # Flax's code of an extension that is an array; 2 and 3 are complex numbers and scalars.
_CHUNKED = "__msgpack_chunked_array__"
_READ_BYTES = 1 << 24  # At a time, so that an array is in memory once.
_DEEPEST = 32


@dataclasses.dataclass(frozen=True)
class _Stored:
    """An array, and where its bytes are, in C order: offsets and numbers of bytes."""

    shape: tuple[int, ...]
    dtype: np.dtype
    parts: tuple[tuple[int, int], ...]


class MsgpackArrays:
    """The arrays of a file, read one by one.

    Attributes:
        shapes: By path, levels joined by slashes.
    """

    def __init__(self, path: epath.Path):
        """Reads paths, shapes and places.

        Raises:
            CheckpointError: It is no such file, or not whole.
        """
        self._path = path
        with path.open("rb") as file:
            self._stored = dict(_Walk(file, path).arrays())
        self.shapes = {name: stored.shape for name, stored in self._stored.items()}

    def chunk_shape(self, path: str) -> tuple[int, ...]:
        """An array is read as a whole."""
        return self.shapes[path]

    def read(self, path: str, block: tuple[slice, ...] = ()) -> np.ndarray:
        """An array or a block of it, in the dtype it is stored in."""
        stored = self._stored[path]
        values = np.empty(sum(size for _, size in stored.parts), np.uint8)
        filled = 0
        with self._path.open("rb") as file:
            for offset, size in stored.parts:
                file.seek(offset)
                for start in range(0, size, _READ_BYTES):
                    piece = file.read(min(_READ_BYTES, size - start))
                    values[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
                    filled += len(piece)
        return values.view(stored.dtype).reshape(stored.shape)[block]


def holds_arrays(path: epath.Path) -> bool:
    """Whether a file begins like one of these, whatever its name ends in."""
    with contextlib.suppress(CheckpointError), path.open("rb") as file:
        walk = _Walk(file, path)
        kind, count = walk.head()
        if (kind, count) == ("list", 2):
            kind, count = walk.head()
            return kind == "list" and count > 0 and walk.head()[0] == "text"
        return kind == "map" and count > 0 and walk.head()[0] == "text"
    return False


class _Walk:
    """Goes through a file from the start, over the bytes of arrays and into everything else."""

    def __init__(self, file: Any, path: epath.Path):
        self._file = file
        self._path = path
        self._size = path.stat().length
        self._at = 0

    def arrays(self) -> Iterator[tuple[str, _Stored]]:
        """All of them, by path."""
        if not holds_arrays(self._path):
            raise CheckpointError(f"{self._path} is no msgpack file of Flax or EasyLM")
        while self._at < self._size:
            kind, count = self.head()
            if kind == "map":
                yield from self._map((), count)
                continue
            self._expect((kind, count) == ("list", 2), "records of a path and an array")
            kind, count = self.head()
            self._expect(kind == "list", "a path")
            keys = tuple(self._text() for _ in range(count))
            self._expect(self.head()[0] == "bytes", f"the bytes of {'/'.join(keys)}")
            yield from self._value(keys)

    def head(self) -> tuple[str, int]:
        """What begins here, and its length, number of entries, or value; goes behind this first part of it."""
        (first,) = self._take(1)
        if first < 0x80:
            return "number", first
        if first < 0x90:
            return "map", first - 0x80
        if first < 0xA0:
            return "list", first - 0x90
        if first < 0xC0:
            return "text", first - 0xA0
        if first in _SIZED:
            kind, width = _SIZED[first]
            return kind, int.from_bytes(self._take(width))
        if first in _UNSIGNED:
            return "number", int.from_bytes(self._take(_UNSIGNED[first]))
        if 0xD4 <= first <= 0xD8:
            return "extension", 1 << (first - 0xD4)
        self._expect(first in _OTHERS or first >= 0xE0, "an object")
        self._take(_OTHERS.get(first, 0))
        return "other", 0

    def _value(self, keys: tuple[str, ...]) -> Iterator[tuple[str, _Stored]]:
        """The arrays of one object."""
        kind, count = self.head()
        if kind == "map":
            yield from self._map(keys, count)
        elif kind == "list":
            for i in range(count):
                yield from self._value((*keys, str(i)))
        elif kind == "extension":
            (code,) = self._take(1)
            end = self._at + count
            if code == _NDARRAY:
                yield "/".join(keys), self._array("/".join(keys))
            self._skip(end - self._at)
        elif kind in ("text", "bytes"):
            self._skip(count)

    def _map(self, keys: tuple[str, ...], count: int) -> Iterator[tuple[str, _Stored]]:
        self._expect(len(keys) < _DEEPEST, "a tree of a model's depth")
        for i in range(count):
            key = self._text()
            if i == 0 and key == _CHUNKED:
                yield "/".join(keys), self._chunked("/".join(keys), count)
                return
            yield from self._value((*keys, key))

    def _array(self, name: str) -> _Stored:
        """An extension's content: shape, dtype and bytes."""
        self._expect(self.head() == ("list", 3), f"shape, dtype and bytes of {name}")
        kind, rank = self.head()
        self._expect(kind == "list", f"the shape of {name}")
        shape = tuple(self._number(name) for _ in range(rank))
        dtype_name = self._text()
        if dtype_name not in _DTYPES:
            raise CheckpointError(f"{self._path}: {name} has dtype {dtype_name!r}, which is not known")
        dtype = np.dtype(dtype_name)
        kind, size = self.head()
        whole = kind == "bytes" and size == math.prod(shape) * dtype.itemsize
        self._expect(whole, f"the bytes of {name}, {shape} in {dtype}")
        offset = self._at
        self._skip(size, name)
        return _Stored(shape, dtype, ((offset, size),))

    def _chunked(self, name: str, count: int) -> _Stored:
        """An array above a gibibyte: `{_CHUNKED: true, "shape": {"0": …}, "chunks": {"0": …}}`, as Flax writes it."""
        self.head()
        self._expect(count == 3 and self._text() == "shape", f"the shape of {name}")
        shape = tuple((self._text(), self._number(name))[1] for _ in range(self.head()[1]))
        self._expect(self._text() == "chunks", f"the chunks of {name}")
        chunks = [chunk for _, chunk in self._value((name,))]
        whole = chunks and sum(math.prod(chunk.shape) for chunk in chunks) == math.prod(shape)
        self._expect(bool(whole), f"all chunks of {name}")
        return _Stored(shape, chunks[0].dtype, tuple(part for chunk in chunks for part in chunk.parts))

    def _number(self, name: str) -> int:
        kind, value = self.head()
        self._expect(kind == "number", f"the shape of {name}")
        return value

    def _text(self) -> str:
        kind, length = self.head()
        self._expect(kind == "text", "a name")
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self._path} is damaged: a name before byte {self._at} is no text") from error

    def _take(self, count: int) -> bytes:
        taken = self._file.read(count)
        if len(taken) < count:
            raise CheckpointError(f"{self._path} is not whole: it ends at byte {self._size}, within a record's head")
        self._at += count
        return taken

    def _skip(self, count: int, name: str = "a value") -> None:
        self._at += count
        if self._at > self._size:
            raise CheckpointError(f"{self._path} is not whole: it ends at byte {self._size}, within {name}")
        self._file.seek(self._at)

    def _expect(self, found: bool, what: str) -> None:
        if not found:
            raise CheckpointError(f"{self._path} is damaged: before byte {self._at} there should be {what}")
