"""Files that are there whole or not at all, on a local file system and in an object store."""

from __future__ import annotations

import os
import pathlib

from etils import epath


def is_local(path: epath.PathLike) -> bool:
    """Whether `path` is on a mounted file system, where files can be appended to, synced and locked."""
    return "://" not in os.fspath(path)


def write_text(path: epath.PathLike, text: str) -> None:
    """Writes `text` as UTF-8 so that a reader, or a crash, finds the old file or the new one, whole.

    Locally: write aside, sync, rename, sync the directory. An object store's write is atomic by itself.
    """
    if not is_local(path):
        epath.Path(path).write_bytes(text.encode())
        return
    target = pathlib.Path(os.fspath(path))
    aside = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    with aside.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(target)
    sync_directory(target.parent)


def sync_directory(directory: pathlib.Path) -> None:
    """Makes the names in a local directory durable: a file's own fsync does not cover its directory entry."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
