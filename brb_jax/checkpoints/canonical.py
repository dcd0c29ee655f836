"""The package's own checkpoints: `params/` (Orbax), `model.json` and the tokenizer's files in one directory.

`model.json` is written last, and the directory gets its name only then: one without it is unfinished.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint.experimental.v1 as ocp
from etils import epath

import brb_jax
from brb_jax.checkpoints.checkpoint import CheckpointError, Params, files_below, fingerprint, read_json
from brb_jax.checkpoints.streaming import (
    Part,
    TensorCheckpoint,
    check_tree,
    flatten,
    nest,
    parameter_shapes,
    place_quantised,
    read_parameter,
)
from brb_jax.checkpoints.tokenizer_files import copy_tokenizer, temporary_folder
from brb_jax.models import config as model_config
from brb_jax.models.config import DecoderConfig
from brb_jax.models.families import family_named
from brb_jax.models.families.tensors import Tensor

PARAMS, MODEL = "params", "model.json"
UNFINISHED = ".unfinished"
_FORMAT = 1
_MOST_CHARACTERS = 300
# What Orbax holds beside an array that it writes: the chunks in its hands, and what is not yet in a file.
_CHUNK_BYTES, _FILE_BYTES = 2**23, 2**26


@dataclasses.dataclass(frozen=True)
class CanonicalCheckpoint:
    """A converted directory as a `Checkpoint`."""

    path: epath.Path
    config: DecoderConfig
    fingerprint: str
    source: str

    @functools.cached_property
    def tokenizer_path(self) -> Path:
        """The directory itself; of one in a bucket, a temporary copy that lives as long as the process."""
        if "://" not in str(self.path):
            return Path(self.path)
        folder = temporary_folder()
        copy_tokenizer(self.path, epath.Path(folder))
        return folder

    def load(self, abstract_params: Params) -> Params:
        """See `Checkpoint.load`. The sharding it was saved with plays no part; Orbax casts the values."""
        try:
            stored = _stored_shapes(self.path / PARAMS)
            check_tree(stored, abstract_params)
            asked = flatten(abstract_params)
            params = self._restore({path: asked[path] for path in stored if asked[path].dtype != np.int8}, stored)
            for tensor in family_named(self.config.family).tensors(self.config):
                if asked[tensor.path].dtype == np.int8:
                    params |= place_quantised(tensor.path, self._parts(tensor, stored), asked)
            return nest(params)
        except (CheckpointError, jax.errors.JaxRuntimeError):
            raise
        except Exception as error:  # What Orbax raises for damaged files is a bare Exception of many lines.
            reason = " ".join(str(error.__cause__ or error).split())[:_MOST_CHARACTERS]
            raise CheckpointError(f"{self.path / PARAMS} is damaged; convert the checkpoint again: {reason}") from error

    def _parts(self, tensor: Tensor, stored: Iterable[str]) -> Iterator[Part]:
        """A parameter's layers, or experts layer by layer, in the dtype they are stored in; all are in host memory."""
        parameter = self._restore({tensor.path: np.ndarray}, stored)[tensor.path]
        for index in np.ndindex(tensor.leading(self.config)):
            yield Part(..., index, parameter[index])

    def _restore(self, wanted: Mapping[str, Any], stored: Iterable[str]) -> dict[str, Any]:
        """Some of the stored parameters, by path, as `wanted` says of each; nothing else is read."""
        tree = nest({path: wanted.get(path, ocp.PLACEHOLDER) for path in stored})
        return {path: value for path, value in flatten(ocp.load(self.path / PARAMS, tree)).items() if path in wanted}


def open_canonical(path: epath.Path) -> CanonicalCheckpoint:
    """Opens a converted directory.

    Raises:
        CheckpointError: It is unfinished, damaged, or of another version of the format.
    """
    if path.name.endswith(UNFINISHED):
        raise CheckpointError(f"{path} is an unfinished conversion; run brb_jax.convert again")
    model = read_json(path / MODEL)
    try:
        stored_format = model["format"]
        if stored_format == _FORMAT:
            config = model_config.from_json(model["config"])
            source = f"converted from {model['source']}"
    except (ValueError, KeyError) as error:
        raise CheckpointError(f"{path / MODEL} cannot be read: {error!r}") from error
    if stored_format != _FORMAT:
        raise CheckpointError(f"{path / MODEL} has format {stored_format}, this version reads {_FORMAT}")
    if not (path / PARAMS).exists():
        raise CheckpointError(f"{path} has a {MODEL}, but no {PARAMS}/")
    files = [(f"{PARAMS}/{name}", file) for name, file in files_below(path / PARAMS)]
    return CanonicalCheckpoint(path, config, fingerprint(config, files), source)


def save_canonical(
    checkpoint: TensorCheckpoint, path: epath.Path, dtype: np.dtype, overwrite: bool = False
) -> dict[str, tuple[int, ...]]:
    """Writes a converted directory, one parameter at a time.

    Host memory stays near the largest parameter, and no accelerator is touched.

    Args:
        checkpoint: What to convert.
        path: The directory to make.
        dtype: Of every parameter.
        overwrite: Whether to replace a converted directory at `path`, once the new one is complete.

    Returns:
        The shapes of what was written, by canonical path.

    Raises:
        CheckpointError: `path` exists, and is not to be replaced or is not a converted directory.
    """
    if "://" not in str(path):
        path = path.absolute()  # Orbax takes no relative one.
    if path.exists() and not overwrite:
        raise CheckpointError(f"{path} exists; pass --overwrite to replace it")
    if path.exists() and not (path / MODEL).exists():
        raise CheckpointError(f"{path} exists and is no converted directory, so it is not overwritten")
    unfinished = path.parent / f"{path.name}{UNFINISHED}"
    if unfinished.exists():
        unfinished.rmtree()
    unfinished.mkdir(parents=True)
    copy_tokenizer(epath.Path(checkpoint.tokenizer_path), unfinished)
    shapes = parameter_shapes(checkpoint.config)
    with _bounded_writing():
        for name in shapes:
            # No name is given to the array: it would keep the last one alive while the next one is read.
            ocp.partial.save(unfinished / PARAMS, nest({name: read_parameter(checkpoint, name, dtype)}))
        ocp.partial.finalize(unfinished / PARAMS)
    model = {
        "format": _FORMAT,
        "brb_jax": brb_jax.__version__,
        "source": checkpoint.source,
        "source_fingerprint": checkpoint.fingerprint,
        "dtype": dtype.name,
        "config": model_config.to_json(checkpoint.config),
    }
    (unfinished / MODEL).write_text(json.dumps(model, indent=2))
    if path.exists():
        path.rmtree()
    unfinished.rename(path)
    return shapes


def _bounded_writing() -> ocp.Context:
    """Settings of Orbax by which writing an array takes a fixed amount of memory beside the array itself.

    By default it copies the array, and then compresses it as one piece.
    """
    context = ocp.Context()
    context.memory.deepcopy_host_arrays = False  # `save` returns when all is written.
    saving = context.array.saving
    saving.use_zarr3 = False  # There all chunks of an array are one value, held until the last is compressed.
    saving.storage_options.chunk_byte_size = _CHUNK_BYTES
    saving.ocdbt_target_data_file_size = _FILE_BYTES
    return context


def _stored_shapes(path: epath.Path) -> dict[str, tuple[int, ...]]:
    tree: Any = ocp.metadata(path).metadata
    return {name: tuple(leaf.shape) for name, leaf in flatten(tree).items()}
