"""Finds out what kind of checkpoint a path is. Knows the kinds' marks, not their contents."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from etils import epath

from brb_jax.checkpoints import canonical, framework_checkpoint, gguf_file, huggingface, msgpack_arrays, orbax_tree
from brb_jax.checkpoints.checkpoint import Checkpoint, CheckpointError
from brb_jax.checkpoints.streaming import TensorCheckpoint

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
        return _open_remote(located(text))
    local = Path(text).expanduser()
    if not local.exists():
        if _is_repository(text):
            return huggingface.open_huggingface(huggingface.download(text))
        unfinished = local.with_name(f"{local.name}{canonical.UNFINISHED}")
        if unfinished.exists():
            raise CheckpointError(
                f"{local} does not exist, but {unfinished} is an unfinished conversion; run brb_jax.convert again"
            )
        raise CheckpointError(f"{local} does not exist{_nearest(local)}")
    local = local.resolve()
    if local.is_file():
        if local.suffix == ".gguf":
            return gguf_file.open_gguf(local)
        if msgpack_arrays.holds_arrays(epath.Path(local)):
            raise CheckpointError(_needs_conversion(local, "a msgpack file"))
        if pickles := huggingface.refused_pickles(local):
            raise CheckpointError(f"{local.parent}: {pickles}")
        raise CheckpointError(f"{local} is a file; a checkpoint is {_KINDS}{_elsewhere(local)}")
    if (local / canonical.MODEL).exists():
        return canonical.open_canonical(epath.Path(local))
    for folder in (local, *local.parents):
        if folder.name.endswith(canonical.UNFINISHED):
            raise CheckpointError(f"{folder} is an unfinished conversion; run brb_jax.convert again")
    if (local / "config.json").exists():
        if orbax_tree.holds_tree(local) and not list(local.glob("*.safetensors")):
            raise CheckpointError(_needs_conversion(local, "an Orbax checkpoint", local))
        return huggingface.open_huggingface(local)
    ggufs = sorted(local.glob("*.gguf"))
    if len(ggufs) == 1:
        return gguf_file.open_gguf(ggufs[0])
    if ggufs:
        raise CheckpointError(f"{local} holds {len(ggufs)} GGUF files; name one: {', '.join(p.name for p in ggufs)}")
    if orbax_tree.holds_tree(local) and not (local.parent / canonical.MODEL).exists():
        raise CheckpointError(_needs_conversion(local, "an Orbax checkpoint"))
    elsewhere = _elsewhere(local)
    if not elsewhere and (pickles := huggingface.refused_pickles(local)):
        raise CheckpointError(f"{local}: {pickles}")
    raise CheckpointError(f"{local} is not {_KINDS}: it holds {_listing(local)}{elsewhere}")


def open_framework(
    path: str | os.PathLike[str], hf_config: str, settings: Mapping[str, str] = MappingProxyType({})
) -> TensorCheckpoint:
    """Opens a checkpoint of another JAX framework, which carries neither config nor tokenizer.

    Args:
        path: A directory of Orbax's, local or in a bucket: a run's, a step's or the parameters'. Or a msgpack file.
        hf_config: The Hugging Face directory, or Hub repository, of a model with the same architecture and tokenizer.
        settings: What the framework's own config says and the tree does not tell, by name; see `Framework.settings`.

    Raises:
        CheckpointError: It is of no known framework, damaged, or does not hold what the config asks for.
    """
    folder = Path(hf_config).expanduser()
    if not folder.is_dir():
        if not _is_repository(hf_config):
            raise CheckpointError(f"--hf_config: {folder} does not exist{_nearest(folder)}")
        folder = huggingface.download(hf_config, weights=False)
    source = located(path)
    if not source.exists():
        raise CheckpointError(f"{source} does not exist" + ("" if "://" in str(source) else _nearest(Path(source))))
    return framework_checkpoint.open_framework(source, folder, settings)


def located(path: str | os.PathLike[str]) -> epath.Path:
    """A path here or in a bucket, `~` resolved.

    Raises:
        CheckpointError: It begins with something else than `gs://`, as a path in a bucket.
    """
    try:
        return epath.Path(path).expanduser()
    except KeyError as error:
        raise CheckpointError(f"{path} is no path that can be read; give a local path or gs://…") from error


def _open_remote(path: epath.Path) -> Checkpoint:
    if (path / canonical.MODEL).exists():
        return canonical.open_canonical(path)
    if orbax_tree.holds_tree(path):
        raise CheckpointError(_needs_conversion(path, "an Orbax checkpoint"))
    raise CheckpointError(f"{path} has no {canonical.MODEL}; in a bucket only converted directories can be read")


def _needs_conversion(path: os.PathLike[str], kind: str, folder: Path | None = None) -> str:
    """What to do with a checkpoint of another framework; `folder` holds its config, if any is known to."""
    command = f"python -m brb_jax.convert --source={path} --hf_config={folder or 'REPOSITORY'} --out=DIR"
    if folder is not None:
        return f"{path} is {kind} of another framework; convert it: {command}"
    return (
        f"{path} is {kind} without config and tokenizer; convert it: {command}, where REPOSITORY, or a folder like it, "
        "has these two"
    )


def _is_repository(text: str) -> bool:
    """Whether this may be the name of a Hub repository, `owner/name`."""
    return re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", text) is not None and not Path(text).parent.exists()


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
