"""Checkpoints of other JAX frameworks. They carry neither config nor tokenizer: a Hugging Face folder lends both."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from etils import epath

from brb_jax.checkpoints import orbax_tree
from brb_jax.checkpoints.checkpoint import CheckpointError, Params, files_below, fingerprint, read_json
from brb_jax.checkpoints.frameworks import framework_of
from brb_jax.checkpoints.frameworks.framework import Framework
from brb_jax.checkpoints.msgpack_arrays import MsgpackArrays
from brb_jax.checkpoints.streaming import check_table, check_tensors, load_tensors
from brb_jax.models.config import DecoderConfig
from brb_jax.models.families import family_of
from brb_jax.models.families.tensors import Tensor

_PADDING = 256  # Rows; twice the multiple that accelerators like.


class Arrays(Protocol):
    """A tree of stored arrays, read one by one."""

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Of every array, by path, levels joined by slashes."""
        ...

    def chunk_shape(self, path: str) -> tuple[int, ...]: ...
    def read(self, path: str, block: tuple[slice, ...] = ()) -> np.ndarray: ...


@dataclasses.dataclass(frozen=True)
class FrameworkTensors:
    """The arrays of a tree under the names of their framework's table: a `TensorSource`."""

    arrays: Arrays
    paths: Mapping[str, str]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See `TensorSource`."""
        return {name: self.arrays.shapes[path] for name, path in self.paths.items()}

    def stored_name(self, name: str) -> str:
        """The array's path in the tree; the table's name for it if it is not there."""
        return self.paths.get(name, name)

    def chunk_shape(self, name: str) -> tuple[int, ...]:
        """See `TensorSource`."""
        return self.arrays.chunk_shape(self.paths[name])

    def read(self, name: str, block: tuple[slice, ...] = ()) -> np.ndarray:
        """An array or a block of it, in host memory."""
        return self.arrays.read(self.paths[name], block)


@dataclasses.dataclass(frozen=True)
class FrameworkCheckpoint:
    """A checkpoint of another framework as a `Checkpoint`."""

    tensors: FrameworkTensors
    config: DecoderConfig
    table: tuple[Tensor, ...]
    fingerprint: str
    tokenizer_path: Path
    source: str

    def load(self, abstract_params: Params) -> Params:
        """See `Checkpoint.load`."""
        return load_tensors(self, abstract_params)


def open_framework(path: epath.Path, hf_folder: Path, settings: Mapping[str, str]) -> FrameworkCheckpoint:
    """Opens a checkpoint of another framework.

    Args:
        path: An Orbax directory: the run's, a step's or the parameters'. Or a msgpack file.
        hf_folder: A Hugging Face folder with the model's config and tokenizer.
        settings: See `Framework.settings`.

    Raises:
        CheckpointError: The tree is not recognised, or does not hold what the config asks for.
    """
    tree = path if path.is_file() else orbax_tree.find_tree(path)
    arrays: Arrays = MsgpackArrays(tree) if tree.is_file() else orbax_tree.OrbaxArrays(tree)
    files = [(tree.name, tree)] if tree.is_file() else files_below(tree)
    hf = read_json(hf_folder / "config.json")
    try:
        framework = framework_of(arrays.shapes)
        _check_settings(framework, settings)
        config = family_of(hf).config_from_hf(hf)
        tensors = FrameworkTensors(arrays, _paths(framework, arrays.shapes))
        config = _padded(config, framework.table(config, tensors.shapes, **settings), tensors.shapes)
        table = framework.table(config, tensors.shapes, **settings)
        check_table(framework.name, config, table)
        check_tensors(tensors, config, table)
    except ValueError as error:
        raise CheckpointError(f"{tree}: {error}") from error
    told = ", ".join(f"{name}={value}" for name, value in sorted(settings.items()))
    source = f"{framework.name} ({told})" if told else framework.name
    return FrameworkCheckpoint(tensors, config, table, fingerprint(config, files), hf_folder, source)


def _check_settings(framework: Framework, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        if name not in framework.settings:
            known = ", ".join(framework.settings) or "none"
            raise CheckpointError(f"{framework.name} has no setting {name!r} that counts here, only {known}")
        if value not in framework.settings[name]:
            raise CheckpointError(f"{name}={value}: its values are {', '.join(framework.settings[name])}")


def _paths(framework: Framework, stored: Collection[str]) -> dict[str, str]:
    """The paths of the arrays that a decoder may have a part in, by the framework's names for them."""
    paths: dict[str, str] = {}
    for path in stored:
        name = framework.table_name(path)
        if name is None:
            continue
        if name in paths:
            raise CheckpointError(
                f"{path} and {paths[name]} are both {name}; name the directory of one of the two trees"
            )
        paths[name] = path
    return paths


def _padded(config: DecoderConfig, table: tuple[Tensor, ...], shapes: Mapping[str, tuple[int, ...]]) -> DecoderConfig:
    """The config with as many rows of embeddings as are stored, if they are padded in another way than its own.

    Gemma 2 has 256,128 rows in JAX checkpoints and 256,000 on the Hub; Gemma 3 with images 262,144 and 262,208.
    """
    (embeddings,) = (tensor for tensor in table if tensor.path == "embedder/table")
    stored = shapes.get(embeddings.name, embeddings.source_shape(config))
    rows = stored[embeddings.layout.split().index("V")]
    return dataclasses.replace(config, vocab_size=rows) if abs(rows - config.vocab_size) <= _PADDING else config
