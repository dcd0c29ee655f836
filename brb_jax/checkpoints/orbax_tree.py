"""Orbax checkpoints of any pytree: where the tree lies, what is in it, and a part of it restored to given shardings.

Knows nothing of decoders. Directories of `orbax.checkpoint` and of its v1 are read alike: both hold a tree where there
is a `_METADATA` file, be it the directory itself, an item in it, or an item of the latest step in it.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
import tensorstore
from etils import epath

from brb_jax.checkpoints.checkpoint import CheckpointError

_TREE = "_METADATA"
_DATABASE = "manifest.ocdbt"  # Where there is none, each array has a directory.
_UNFINISHED = ".orbax-checkpoint-tmp"
_STEP = re.compile(r"(?:(?:ckpt|checkpoint|step)_)?(\d+)")
_PARAMETERS = "model_params"  # Beside it Tunix saves the optimizer's state, as an item of its own.
_MOST_LISTED = 8


def holds_tree(path: epath.Path) -> bool:
    """Whether there is a tree for `find_tree` to find, be it one of several."""
    steps = [entry for entry in path.iterdir() if entry.is_dir()] if path.is_dir() else []
    items = [item for step in steps if _STEP.fullmatch(step.name) for item in step.iterdir()]
    return any((folder / _TREE).exists() for folder in (path, *steps, *items))


def find_tree(path: str | os.PathLike[str]) -> epath.Path:
    """The directory that holds the tree: `path`, its only item or the parameters', or that of its latest finished step.

    Raises:
        CheckpointError: There is none, or several and no telling which is meant; or it is unfinished.
    """
    root = epath.Path(path).expanduser()
    folder = root if "://" in str(root) else epath.Path(os.path.abspath(root))  # noqa: PTH100 — symbolic links stay
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a directory, so not an Orbax checkpoint")
    if _UNFINISHED in folder.name:
        raise CheckpointError(f"{folder} is an unfinished checkpoint: its saving was interrupted")
    if (folder / _TREE).exists():
        return folder
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and _UNFINISHED not in entry.name)
    trees = [name for name in names if (folder / name / _TREE).exists()]
    steps = {name: int(step[1]) for name in names if (step := _STEP.fullmatch(name))}
    if steps:
        return find_tree(folder / max(steps, key=steps.__getitem__))
    if _PARAMETERS in trees:
        return folder / _PARAMETERS
    if len(trees) == 1:
        return folder / trees[0]
    if trees:
        raise CheckpointError(f"{folder} holds several trees; name one: {', '.join(trees)}")
    found = ", ".join(sorted(entry.name for entry in folder.iterdir())[:_MOST_LISTED]) or "nothing"
    raise CheckpointError(f"{folder} is no Orbax checkpoint of a tree (no {_TREE}), nor holds one; it holds {found}")


def shapes(folder: epath.Path) -> dict[str, tuple[int, ...]]:
    """Shape of every array of the tree, by path, levels joined by slashes."""
    leaves = jax.tree_util.tree_leaves_with_path(_metadata(folder))
    return {_name(path): tuple(leaf.shape) for path, leaf in leaves if hasattr(leaf, "shape")}


def restore(folder: epath.Path, wanted: Mapping[str, jax.ShapeDtypeStruct]) -> dict[str, jax.Array]:
    """Some arrays of the tree, each straight to its sharding and cast to its dtype; nothing else is read.

    Args:
        folder: As `find_tree` returns it.
        wanted: By path, as in `shapes`, with `sharding` set.
    """
    item = jax.tree_util.tree_map_with_path(lambda path, _: wanted.get(_name(path), ocp.PLACEHOLDER), _metadata(folder))
    arguments = ocp.args.PyTreeRestore(item=item, restore_args=ocp.checkpoint_utils.construct_restore_args(item))
    restored = ocp.Checkpointer(ocp.PyTreeCheckpointHandler()).restore(folder, arguments)
    leaves = {_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(restored)}
    return {name: leaves[name] for name in wanted}


class OrbaxArrays:
    """The arrays of a tree, read to host memory one by one, or in blocks, whatever sharding they were saved with.

    Orbax reads an array as a whole, so they are opened with TensorStore, which Orbax writes them with.

    Attributes:
        shapes: As `shapes` returns them.
    """

    def __init__(self, folder: epath.Path):
        """Reads the tree's metadata; `folder` is as `find_tree` returns it."""
        leaves = {_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(_metadata(folder))}
        self._stored = {path: leaf for path, leaf in leaves.items() if hasattr(leaf, "shape")}
        self.shapes = {path: tuple(leaf.shape) for path, leaf in self._stored.items()}
        self._folder = folder
        self._opened: dict[str, tensorstore.TensorStore] = {}

    def chunk_shape(self, path: str) -> tuple[int, ...]:
        """Of the pieces that an array is compressed in: as a rule, what one device held of it."""
        chunk = self._open(path).chunk_layout.read_chunk.shape or ()
        return tuple(length or size for length, size in zip(chunk, self.shapes[path], strict=True))

    def read(self, path: str, block: tuple[slice, ...] = ()) -> np.ndarray:
        """An array or a block of it, in the dtype it is stored in.

        Raises:
            CheckpointError: It is damaged, or not all of it is there.
        """
        store = self._open(path)
        with self._told_of(path):
            return store[block].read().result()

    def _open(self, path: str) -> tensorstore.TensorStore:
        if path not in self._opened:
            with self._told_of(path):
                folder = str(self._folder)
                place: Any = folder if "://" in folder else {"driver": "file", "path": folder}
                if (self._folder / _DATABASE).exists():
                    place = {"driver": "ocdbt", "base": place}
                array = tensorstore.KvStore.open(place).result() / f"{self._stored[path].name}/"
                spec = tensorstore.open({"driver": "auto", "kvstore": array.spec().to_json()}).result().spec().to_json()
                # Without this, zeros are read where a chunk is missing.
                self._opened[path] = tensorstore.open({**spec, "fill_missing_data_reads": False}).result()
        return self._opened[path]

    @contextlib.contextmanager
    def _told_of(self, path: str) -> Iterator[None]:
        """Makes TensorStore's errors those of an array of this checkpoint."""
        try:
            yield
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise CheckpointError(f"{self._folder}: {path} cannot be read: {reason}") from error


def _metadata(folder: epath.Path) -> Any:
    try:
        return ocp.PyTreeCheckpointHandler().metadata(folder).tree
    except (ValueError, KeyError, OSError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{folder} cannot be read as an Orbax checkpoint: {reason}") from error


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
