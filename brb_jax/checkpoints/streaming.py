"""From a file's tensors to canonical parameters, one at a time: host memory holds one, not the model.

Beside the parameter that is put together it holds a block of a stored tensor: as many of the pieces it is stored in as
are small enough, or one.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import EllipsisType
from typing import Protocol

import jax
import numpy as np
from flax import traverse_util

from brb_jax.checkpoints.checkpoint import Checkpoint, CheckpointError, Params
from brb_jax.models.config import DecoderConfig
from brb_jax.models.families import family_named
from brb_jax.models.families.tensors import Tensor
from brb_jax.models.int8 import quantise, scale_path, without_scales

_MOST_LISTED = 10
_BLOCK_SIZE = 2**24  # Values.


class TensorSource(Protocol):
    """Tensors under the names of a table, whatever file they come from."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Every tensor the decoder has a part in, and its shape."""
        ...

    def stored_name(self, name: str) -> str:
        """The tensor's name in the file, for errors."""
        ...

    def chunk_shape(self, name: str) -> tuple[int, ...]:
        """Of the pieces a tensor is stored in; to read a part of one takes as much time and memory as all of it."""
        ...

    def read(self, name: str, block: tuple[slice, ...] = ()) -> np.ndarray:
        """One tensor's values, or a block of them, in a floating-point dtype of at most 64 bits."""
        ...


class TensorCheckpoint(Checkpoint, Protocol):
    """A checkpoint whose tensors can be read one by one.

    Attributes:
        tensors: What is stored.
        table: What becomes of it; the names are those of `tensors`.
    """

    @property
    def tensors(self) -> TensorSource: ...
    @property
    def table(self) -> tuple[Tensor, ...]: ...


def check_table(name: str, config: DecoderConfig, table: tuple[Tensor, ...]) -> None:
    """Checks that a framework's table says where every layer of every parameter comes from.

    Raises:
        CheckpointError: It does not: the framework has no models with such parameters.
    """
    sizes = {tensor.path: math.prod(tensor.shape(config)) for tensor in family_named(config.family).tensors(config)}
    stored = dict.fromkeys(sizes, 0)
    for tensor in table:
        stored[tensor.path] = stored.get(tensor.path, 0) + math.prod(tensor.shape(config))
    others = [path for path in stored if stored[path] != sizes.get(path, 0)]
    if others:
        raise CheckpointError(
            f"{name} has no models like that of the config: they differ in {', '.join(others[:_MOST_LISTED])}"
        )


def check_tensors(source: TensorSource, config: DecoderConfig, table: tuple[Tensor, ...]) -> None:
    """Checks that `source` holds just the tensors of a table for a decoder of this config.

    A checkpoint with tied embeddings may carry the output matrix too, if it is the embedding table bit for
    bit: some tools write it. Another one is refused, because readers disagree on which of the two counts.

    Raises:
        CheckpointError: Lists what is missing, of another shape, or left over, by tensor and tree path.
    """
    expected = {name: tensor for tensor in table for name in tensor.names(config)}
    (embeddings,) = (tensor.name for tensor in table if tensor.path == "embedder/table")
    shapes = source.shapes
    problems = []
    for name, tensor in expected.items():
        wanted = tensor.source_shape(config)
        if name not in shapes:
            problems.append(f"{source.stored_name(name)} ({tensor.path}) is missing")
        elif shapes[name] != wanted:
            problems.append(
                f"{source.stored_name(name)} ({tensor.path}) has shape {shapes[name]}, the config asks for {wanted}"
            )
    for name in shapes:
        if name in expected:
            continue
        if name == "lm_head.weight" and config.tie_embeddings and not problems:
            if not _same_bits(source.read(name), source.read(embeddings)):
                problems.append(
                    f"{source.stored_name(name)} differs from the embedding table, but the config ties them"
                )
        else:
            problems.append(f"{source.stored_name(name)} is in no part of a {config.family} decoder of this config")
    _raise_if_any(problems, "the checkpoint does not match its config")


def check_tree(stored: Mapping[str, tuple[int, ...]], abstract_params: Params) -> None:
    """Checks the parameters a checkpoint has against those a model asks for.

    Args:
        stored: Shapes by canonical path.
        abstract_params: As in `Checkpoint.load`. Scales of int8 parameters are not looked for.

    Raises:
        CheckpointError: Lists every path that is missing, left over, or of another shape.
    """
    asked = without_scales(flatten(abstract_params))
    problems = [f"{path} is not in the checkpoint" for path in asked if path not in stored]
    problems += [f"{path} is in the checkpoint, but not in the model" for path in stored if path not in asked]
    problems += [
        f"{path} has shape {stored[path]} in the checkpoint and {tuple(leaf.shape)} in the model"
        for path, leaf in asked.items()
        if path in stored and tuple(stored[path]) != tuple(leaf.shape)
    ]
    problems += [f"{path} was asked for without a sharding" for path, leaf in asked.items() if leaf.sharding is None]
    _raise_if_any(problems, "the checkpoint does not fit the model")


def parameter_shapes(config: DecoderConfig) -> dict[str, tuple[int, ...]]:
    """Shapes of the canonical parameters, by path, as the family's table gives them."""
    return {tensor.path: tensor.shape(config) for tensor in family_named(config.family).tensors(config)}


def read_parameter(checkpoint: TensorCheckpoint, path: str, dtype: np.dtype) -> np.ndarray:
    """One canonical parameter, its layers and experts stacked, in host memory.

    Args:
        checkpoint: Its tensors must have passed `check_tensors`.
        path: The parameter's.
        dtype: What it is cast to, to nearest even, unless it has to be float32.
    """
    config = checkpoint.config
    (whole,) = (tensor for tensor in family_named(config.family).tensors(config) if tensor.path == path)
    parameter = np.empty(whole.shape(config), np.float32 if whole.float32 else dtype)
    for part in read_parts(checkpoint, path, in_blocks=True):
        parameter[part.rows][part.index] = part.values
    return parameter


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """What a stored tensor, or a block of one, gives to a parameter, as it is stored: `parameter[rows][index]`."""

    rows: slice | EllipsisType
    index: tuple[int | slice | EllipsisType, ...]
    values: np.ndarray


def read_parts(checkpoint: TensorCheckpoint, path: str, in_blocks: bool = False) -> Iterator[Part]:
    """The parts of a canonical parameter, one at a time: a stored tensor each, or a block of one."""
    source, config = checkpoint.tensors, checkpoint.config
    tensors = [tensor for tensor in checkpoint.table if tensor.path == path]
    first = min((tensor.layers.start for tensor in tensors if tensor.layers is not None), default=0)
    for tensor in tensors:
        layers = tensor.layers
        rows = ... if layers is None else slice(layers.start - first, layers.stop - first, layers.step)
        axes = tensor.kept_axes()
        for index, name in zip(np.ndindex(tensor.leading(config)), tensor.names(config), strict=True):
            shape = source.shapes[name]
            for block in _blocks(shape, source.chunk_shape(name) if in_blocks else shape, axes):
                values = tensor.to_canonical(source.read(name, block), config)
                places = [slice(None)] * values.ndim
                for stored_axis, axis in axes.items():
                    places[axis] = block[stored_axis]
                yield Part(rows, (*index, ..., *places), values)


def _blocks(shape: tuple[int, ...], chunk: tuple[int, ...], axes: Collection[int]) -> Iterator[tuple[slice, ...]]:
    """Cuts a stored tensor along some of its axes into blocks of whole chunks, `_BLOCK_SIZE` values if chunks allow."""
    block = [chunk[axis] if axis in axes else size for axis, size in enumerate(shape)]
    for axis in reversed(range(len(shape))):
        block[axis] = min(shape[axis], block[axis] * max(1, _BLOCK_SIZE // math.prod(block)))
    cuts = (
        [slice(start, min(start + step, size)) for start in range(0, size, step)]
        for size, step in zip(shape, block, strict=True)
    )
    return itertools.product(*cuts)


def load_tensors(checkpoint: TensorCheckpoint, abstract_params: Params) -> Params:
    """`Checkpoint.load` for a checkpoint whose tensors `check_tensors` has passed."""
    check_tree(parameter_shapes(checkpoint.config), abstract_params)
    asked = flatten(abstract_params)
    params: dict[str, jax.Array] = {}
    for path in parameter_shapes(checkpoint.config):
        if asked[path].dtype == np.int8:
            params |= place_quantised(path, read_parts(checkpoint, path), asked)
        else:
            params[path] = _place(read_parameter(checkpoint, path, asked[path].dtype), asked[path])
    return nest(params)


def place_quantised(
    path: str, parts: Iterable[Part], asked: Mapping[str, jax.ShapeDtypeStruct]
) -> dict[str, jax.Array]:
    """An int8 parameter and its scales, by path. Host and device hold one part of it at a time in floating point.

    Args:
        path: The parameter's.
        parts: All of it.
        asked: Parameters by path, with shardings; the shape of the scales says which axes are channels.
    """
    leaf, scale_leaf = asked[path], asked[scale_path(path)]
    values, scales = np.empty(leaf.shape, np.int8), np.empty(scale_leaf.shape, np.float32)
    is_channel = [size == scale_size for size, scale_size in zip(leaf.shape, scale_leaf.shape, strict=True)]
    for part in parts:
        axes = part.values.ndim  # The last ones of the parameter: a single layer has no axis of layers.
        channels = tuple(axis for axis in range(axes) if is_channel[axis - axes])
        values[part.rows][part.index], scales[part.rows][part.index] = quantise(part.values, channels)
    return {path: _place(values, leaf), scale_path(path): _place(scales, scale_leaf)}


def _place(parameter: np.ndarray, leaf: jax.ShapeDtypeStruct) -> jax.Array:
    # A callback, not device_put: with several processes each may give only the shards it can address.
    placed = jax.make_array_from_callback(leaf.shape, leaf.sharding, parameter.__getitem__)
    # Transfers are asynchronous; without this wait host copies of many parameters would be alive at once.
    return placed.block_until_ready()


def flatten(params: Params) -> dict[str, jax.ShapeDtypeStruct]:
    """Leaves by path, levels joined by slashes."""
    return traverse_util.flatten_dict(dict(params), sep="/")


def nest(leaves: Mapping[str, object]) -> Params:
    """Inverts `flatten`."""
    return traverse_util.unflatten_dict(dict(leaves), sep="/")


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a.view(np.uint8), b.view(np.uint8))


def _raise_if_any(problems: Iterable[str], what: str) -> None:
    listed = list(problems)
    if listed:
        more = f"; and {len(listed) - _MOST_LISTED} more" if len(listed) > _MOST_LISTED else ""
        raise CheckpointError(f"{what}: {'; '.join(listed[:_MOST_LISTED])}{more}")
