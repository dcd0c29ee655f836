"""What every kind of checkpoint offers once it is open, and the error any of them raises."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from etils import epath

from brb_jax.data import strict_json
from brb_jax.models import config as model_config
from brb_jax.models.config import DecoderConfig

Params = Mapping[str, Any]  # The canonical parameters: nested dicts with arrays, or abstract arrays, as leaves.

SAMPLE_BYTES = 64 * 1024


class CheckpointError(ValueError):
    """A checkpoint cannot be used; the message names the file or tensor and says what to do."""


class Checkpoint(Protocol):
    """An open checkpoint. Opening reads names, shapes and settings only, and checks that all parts are there.

    Attributes:
        source: Its kind, for the record of a run.
        config: The decoder it holds parameters of.
        fingerprint: Changes whenever the weights or the config do; does not depend on where the files lie.
        tokenizer_path: A folder `transformers.AutoTokenizer` can load.
    """

    @property
    def source(self) -> str: ...
    @property
    def config(self) -> DecoderConfig: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def tokenizer_path(self) -> Path: ...

    def load(self, abstract_params: Params) -> Params:
        """Reads the parameters, each straight to its sharding.

        Every process of a run must call this; each reads the files itself.

        Args:
            abstract_params: Nested dicts of `jax.ShapeDtypeStruct` with `sharding` set. Values are cast to
                the dtype asked for, to nearest even; for int8 as `models.int8` says, whose scales are asked for beside.

        Returns:
            The same tree of `jax.Array`.

        Raises:
            CheckpointError: A parameter is missing, of another shape, or not asked for; before any is built.
        """
        ...


def read_json(path: epath.Path | Path) -> dict[str, Any]:
    """The object that a JSON file of a checkpoint holds.

    Raises:
        CheckpointError: It cannot be read, is not JSON, or holds something else than an object.
    """
    try:
        value = strict_json.parse(strict_json.decode(path.read_bytes()))
    except (ValueError, OSError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds a {type(value).__name__}, not an object")
    return value


def fingerprint(config: DecoderConfig, files: Iterable[tuple[str, epath.Path]]) -> str:
    """A digest of a config and of weight files, by name, size, and first and last 64 KiB.

    Reading whole files would take minutes for large models. A further training step changes every tensor, so
    it changes the last bytes of every file.

    Args:
        config: The decoder's config.
        files: Names relative to the checkpoint, and where the files are.
    """
    settings = json.dumps(model_config.to_json(config), sort_keys=True)
    return f"sha256:{files_digest(files, settings)}"


def files_digest(files: Iterable[tuple[str, epath.Path]], settings: str = "") -> str:
    """The digest behind `fingerprint`, in hexadecimal, of any files and a text."""
    digest = hashlib.sha256(settings.encode())
    for name, path in sorted(files):
        size = path.stat().length
        digest.update(f"\n{name} {size}\n".encode())
        with path.open("rb") as file:
            digest.update(file.read(SAMPLE_BYTES))
            file.seek(max(0, size - SAMPLE_BYTES))
            digest.update(file.read())
    return digest.hexdigest()


def files_below(folder: epath.Path) -> list[tuple[str, epath.Path]]:
    """All files in a folder and the folders below, by their names relative to it."""
    found = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += [(f"{entry.name}/{name}", path) for name, path in files_below(entry)]
        else:
            found.append((entry.name, entry))
    return found
