"""The parameters of a user's own model: identified, placed on a mesh, and, if it names a checkpoint, restored there."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from brb_jax.checkpoints import orbax_tree
from brb_jax.checkpoints.checkpoint import SAMPLE_BYTES, CheckpointError, files_below, files_digest
from brb_jax.checkpoints.streaming import check_tree, nest
from brb_jax.models.own_model import OwnModel, OwnModelError, Signature, build_own_model


@dataclasses.dataclass(frozen=True)
class OwnConfig:
    """What the record of a run says of a user's own model, under the names that every model's config has."""

    name: str
    signature: Signature
    returns: str
    vocab_size: int
    max_positions: int
    source_file: str
    source_sha256: str
    checkpoint: str | None
    parameters_sha256: str


@dataclasses.dataclass(frozen=True, eq=False)
class OwnCheckpoint:
    """A user's own model, with what `checkpoints.Checkpoint` says of others. Its parameters are a tree of its own."""

    own: OwnModel
    config: OwnConfig
    tokenizer_path: str

    @property
    def source(self) -> str:
        return "own model"

    @property
    def fingerprint(self) -> str:
        """Names what the scores depend on; does not depend on where the files lie."""
        c = self.config
        return f"{c.name} ({c.signature}) source sha256:{c.source_sha256} parameters sha256:{c.parameters_sha256}"

    def abstract_parameters(self, mesh: Mesh) -> Any:
        """The tree of `jax.ShapeDtypeStruct`, each with its sharding on the mesh.

        Raises:
            OwnModelError: A rule names another axis, or more axes than a parameter has.
        """
        place = functools.partial(_place, self.config.name, self.own.sharding, mesh)
        return jax.tree_util.tree_map_with_path(place, self.own.parameters)

    def load(self, mesh: Mesh) -> Any:
        """The parameters on the mesh.

        Raises:
            CheckpointError: The checkpoint holds other parameters, or of another shape; each is named.
        """
        abstract = self.abstract_parameters(mesh)
        if self.own.checkpoint is None:
            return jax.tree.map(_spread, self.own.parameters, abstract)
        folder = orbax_tree.find_tree(self.own.checkpoint)
        paths, structure = jax.tree_util.tree_flatten_with_path(abstract)
        wanted = _without_value({_name(path): leaf for path, leaf in paths})
        shapes = orbax_tree.shapes(folder)
        stored = _without_value(_below(shapes, self.own.checkpoint_key, folder))
        check_tree({name: shapes[stored[name]] for name in stored}, nest(wanted))
        arrays = orbax_tree.restore(folder, {stored[name]: leaf for name, leaf in wanted.items()})
        return jax.tree.unflatten(structure, [arrays[stored[name]] for name in wanted])


def open_own_model(name: str, mesh: Mesh) -> OwnCheckpoint:
    """Builds the model that `package.module:build` declares; its parameters are not read yet.

    Raises:
        OwnModelError: It cannot be found or is declared wrongly.
        CheckpointError: It names a checkpoint that is not there.
    """
    own, source = build_own_model(name, mesh)
    for path, leaf in jax.tree_util.tree_leaves_with_path(own.parameters):
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise OwnModelError(f"--model={name}: the parameter {_name(path)} is a {type(leaf).__name__}, not an array")
        if not jnp.issubdtype(leaf.dtype, np.number):
            raise OwnModelError(
                f"--model={name}: the parameter {_name(path)} has dtype {leaf.dtype}, not that of numbers; "
                "of an NNX model, give the nnx.Param part alone: nnx.split(model, nnx.Param, ...)"
            )
        if own.checkpoint is None and isinstance(leaf, jax.ShapeDtypeStruct):
            raise OwnModelError(
                f"--model={name}: the parameter {_name(path)} is only a shape; give arrays, or name a checkpoint"
            )
    if own.checkpoint is None:
        checkpoint, digest = None, _digest(name, own.parameters)
    else:
        folder = orbax_tree.find_tree(own.checkpoint)
        checkpoint, digest = str(folder), files_digest(files_below(folder))
        if own.checkpoint_key:
            checkpoint, digest = f"{checkpoint}, {own.checkpoint_key}", f"{digest} at {own.checkpoint_key}"
    config = OwnConfig(
        name=name,
        signature=own.signature,
        returns="logits" if own.unembed is None else "hidden states",
        vocab_size=own.vocab_size,
        max_positions=own.max_length,
        source_file=source.file,
        source_sha256=source.sha256,
        checkpoint=checkpoint,
        parameters_sha256=digest,
    )
    return OwnCheckpoint(own, config, _tokenizer_path(own.tokenizer))


def _tokenizer_path(tokenizer: str | os.PathLike[str]) -> str:
    local = Path(tokenizer).expanduser()
    return str(local) if local.exists() else os.fspath(tokenizer)


def _place(model: str, rules: Any, mesh: Mesh, path: Any, leaf: Any) -> jax.ShapeDtypeStruct:
    name = _name(path)
    spec = next((spec for pattern, spec in rules if re.search(pattern, name)), PartitionSpec())
    if len(spec) > len(leaf.shape):
        raise OwnModelError(f"--model={model}: sharding: {spec} is for more axes than {name} has, {tuple(leaf.shape)}")
    entries = []
    for size, axes in zip(leaf.shape, spec, strict=False):
        parts = 1
        for axis in (axes,) if isinstance(axes, str) else axes or ():
            if axis not in mesh.shape:
                raise OwnModelError(
                    f"--model={model}: sharding: {spec} for {name} names the axis {axis!r}; "
                    f"the mesh has {', '.join(mesh.shape)}"
                )
            parts *= mesh.shape[axis]
        entries.append(None if size % parts else axes)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, PartitionSpec(*entries)))


def _spread(value: Any, leaf: jax.ShapeDtypeStruct) -> jax.Array:
    host = np.asarray(value)
    # A callback, not device_put: with several processes each may give only the shards it can address.
    return jax.make_array_from_callback(leaf.shape, leaf.sharding, lambda index: host[index])


def _below(names: Iterable[str], key: str, folder: os.PathLike[str]) -> dict[str, str]:
    """The names of all arrays below `key`, by their path from there."""
    prefix = f"{key.strip('/')}/" if key.strip("/") else ""
    below = {name.removeprefix(prefix): name for name in names if name.startswith(prefix)}
    if not below:
        tops = sorted({"/".join(name.split("/")[:2]) for name in names})
        raise CheckpointError(f"{folder} has nothing at {key!r} (checkpoint_key); there are {', '.join(tops[:8])}")
    return below


def _without_value(leaves: Mapping[str, Any]) -> dict[str, Any]:
    """NNX states end every path in `value`, or not, depending on the version of flax and the way they were saved."""
    if all(name.endswith("/value") for name in leaves):
        return {name.removesuffix("/value"): leaf for name, leaf in leaves.items()}
    return dict(leaves)


def _digest(model: str, parameters: Any) -> str:
    """Of arrays in memory, by path, shape, dtype, and first and last 64 KiB: a training step changes all of these."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(parameters):
        if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
            raise OwnModelError(
                f"--model={model}: the parameter {_name(path)} is spread over several processes; "
                "give abstract parameters and name a checkpoint"
            )
        digest.update(f"\n{_name(path)} {tuple(leaf.shape)} {leaf.dtype}\n".encode())
        count = SAMPLE_BYTES // np.dtype(leaf.dtype).itemsize
        flat = leaf.reshape(-1)
        digest.update(np.asarray(flat[:count]).tobytes())
        digest.update(np.asarray(flat[-count:]).tobytes())
    return digest.hexdigest()


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
