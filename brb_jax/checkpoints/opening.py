"""Finds out what kind of checkpoint a path is. Knows the kinds' marks, not their contents."""

from __future__ import annotations

import os
import re
from pathlib import Path

from etils import epath

from brb_jax.checkpoints import canonical, gguf_file, huggingface
from brb_jax.checkpoints.checkpoint import Checkpoint, CheckpointError

_KINDS = "a converted directory, a Hugging Face directory with safetensors, or a .gguf file"
_MOST_LISTED = 8


def open_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Opens a checkpoint of any supported kind.

    Args:
        path: A directory written by `brb_jax.convert` (local or in a bucket, `gs://…`), a Hugging Face
            directory, a GGUF file or a directory with just one, or a Hub repository, `owner/name`.

    Returns:
        A `Checkpoint`. Its weights have not been read yet, but all are there, of the shapes its config implies.

    Raises:
        CheckpointError: It is none of these, damaged, unfinished or not supported.
    """
    text = os.fspath(path)
    if "://" in text:
        return _open_remote(epath.Path(text))
    local = Path(text).expanduser()
    if not local.exists():
        if re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", text) and not local.parent.exists():
            return huggingface.open_huggingface(huggingface.download(text))
        raise CheckpointError(f"{local} does not exist{_nearest(local)}")
    local = local.resolve()
    if local.is_file():
        if local.suffix == ".gguf":
            return gguf_file.open_gguf(local)
        raise CheckpointError(f"{local} is a file; a checkpoint is {_KINDS}{_elsewhere(local)}")
    if (local / canonical.MODEL).exists() or local.name.endswith(canonical.UNFINISHED):
        return canonical.open_canonical(epath.Path(local))
    if (local / "config.json").exists():
        return huggingface.open_huggingface(local)
    ggufs = sorted(local.glob("*.gguf"))
    if len(ggufs) == 1:
        return gguf_file.open_gguf(ggufs[0])
    if ggufs:
        raise CheckpointError(f"{local} holds {len(ggufs)} GGUF files; name one: {', '.join(p.name for p in ggufs)}")
    raise CheckpointError(f"{local} is not {_KINDS}: it holds {_listing(local)}{_elsewhere(local)}")


def _open_remote(path: epath.Path) -> Checkpoint:
    if not (path / canonical.MODEL).exists():
        raise CheckpointError(f"{path} has no {canonical.MODEL}; in a bucket only converted directories can be read")
    return canonical.open_canonical(path)


def _is_checkpoint(folder: Path) -> bool:
    marks = (canonical.MODEL, "config.json")
    return any((folder / mark).is_file() for mark in marks) or len(list(folder.glob("*.gguf"))) == 1


def _elsewhere(path: Path) -> str:
    """Where the checkpoint may be, if one lies just above or below."""
    if _is_checkpoint(path.parent):
        return f"; the folder above is a checkpoint: {path.parent}"
    below = [folder for folder in sorted(path.glob("*/")) if _is_checkpoint(folder)]
    return f"; there is a checkpoint below: {', '.join(map(str, below[:3]))}" if below else ""


def _nearest(path: Path) -> str:
    """What the nearest folder that does exist holds."""
    for parent in path.absolute().parents:
        if parent.is_dir():
            return f"; {parent} holds {_listing(parent)}"
    return ""


def _listing(folder: Path) -> str:
    names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    if not names:
        return "nothing"
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(names[:_MOST_LISTED]) + more
