"""Hugging Face checkpoints: `config.json` and safetensors, in a folder or on the Hub. Never a pickle."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
from etils import epath
from safetensors import SafetensorError, safe_open

from brb_jax.checkpoints.checkpoint import CheckpointError, Params, fingerprint, read_json
from brb_jax.checkpoints.streaming import check_tensors, load_tensors
from brb_jax.checkpoints.tokenizer_files import TOKENIZER_FILES
from brb_jax.models.config import DecoderConfig
from brb_jax.models.families import Family, family_of
from brb_jax.models.families.tensors import Tensor

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}
_MOST_LISTED = 3


@dataclasses.dataclass(frozen=True)
class HuggingFaceCheckpoint:
    """A Hugging Face folder as a `Checkpoint`."""

    tensors: SafetensorsFiles
    config: DecoderConfig
    table: tuple[Tensor, ...]
    fingerprint: str
    tokenizer_path: Path
    source: str = "huggingface"

    def load(self, abstract_params: Params) -> Params:
        """See `Checkpoint.load`."""
        return load_tensors(self, abstract_params)


class SafetensorsFiles:
    """The tensors of a folder's safetensors files, under the names of their family."""

    def __init__(self, folder: Path, family: Family):
        """Finds the files and reads their headers.

        Raises:
            CheckpointError: A file is missing, damaged, or does not hold what the index says.
        """
        self.files, index = _weight_files(folder)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._places: dict[str, _Place] = {}
        found = {}
        for path in self.files:
            for stored, place in _read_header(path).items():
                found[stored] = path.name
                name = family.canonical_name(stored)
                if name is None:
                    continue
                if place.dtype not in _DTYPES:
                    raise CheckpointError(
                        f"{path.name}: {stored} is stored as {place.dtype}, only {', '.join(_DTYPES)} are read"
                    )
                if name in self._places:
                    raise CheckpointError(
                        f"{path.name}: {stored} is also in the checkpoint as {self.stored_name(name)}"
                    )
                self._places[name] = place
                self.shapes[name] = place.shape
        if index is not None and index != found:
            wrong = sorted(name for name in index.keys() | found.keys() if index.get(name) != found.get(name))
            name = wrong[0]
            raise CheckpointError(
                f"{_INDEX} places {name} in {index.get(name, 'no file')}, "
                f"but it is in {found.get(name, 'no file')} ({len(wrong)} such tensors)"
            )

    def stored_name(self, name: str) -> str:
        """The tensor's name in its file; its family's name for it if it is not there."""
        return self._places[name].stored if name in self._places else name

    def chunk_shape(self, name: str) -> tuple[int, ...]:
        """See `TensorSource`; a tensor is mapped as a whole, which takes no memory."""
        return self.shapes[name]

    def read(self, name: str, block: tuple[slice, ...] = ()) -> np.ndarray:
        """A tensor or a block of it, mapped from its file; bfloat16 as ml_dtypes', bit for bit."""
        place = self._places[name]
        return np.memmap(place.path, _DTYPES[place.dtype], "r", place.offset, place.shape)[block]


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where a tensor is: its name and its first byte in a file."""

    stored: str
    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: str


def open_huggingface(folder: Path) -> HuggingFaceCheckpoint:
    """Opens a folder with a `config.json` and safetensors files.

    Raises:
        CheckpointError: The config is not understood, or the files are not whole or do not match it.
    """
    hf = read_json(folder / "config.json")
    try:
        family = family_of(hf)
        config = family.config_from_hf(hf)
        table = family.tensors(config)
        tensors = SafetensorsFiles(folder, family)
        check_tensors(tensors, config, table)
    except ValueError as error:
        raise CheckpointError(f"{folder}: {error}") from error
    files = [(path.name, epath.Path(path)) for path in tensors.files]
    return HuggingFaceCheckpoint(tensors, config, table, fingerprint(config, files), folder)


def download(repo: str, weights: bool = True) -> Path:
    """A Hub repository's config, tokenizer and, if wanted, safetensors, in the Hub's cache.

    Raises:
        CheckpointError: There is no such repository, no access to it, or no network and no cached copy; or it has no
            safetensors.
    """
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        files = ["config.json", *TOKENIZER_FILES, *(["*.safetensors", _INDEX] if weights else [])]
        folder = huggingface_hub.snapshot_download(repo, allow_patterns=files)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        first_line = next(iter(str(error).strip().splitlines()), type(error).__name__).removeprefix("Got: ")
        raise CheckpointError(
            f"{repo} is no path here, and fetching it from the Hugging Face Hub failed: {first_line}"
        ) from error
    if weights and not list(Path(folder).glob("*.safetensors")):
        name = repo.partition("/")[2]
        raise CheckpointError(
            f"{repo} has no safetensors on the Hugging Face Hub; weights in other files, such as pytorch_model.bin, "
            f"are pickles, which are neither fetched nor loaded, because they can run any code; "
            f"{_save_as_safetensors(repo, name)}"
        )
    return Path(folder)


def refused_pickles(place: Path) -> str | None:
    """What is said of a file, or of a folder's files, that may be pickled weights, by their names alone.

    Returns:
        None where there are none, or where safetensors are beside them.
    """
    folder = place if place.is_dir() else place.parent
    files = sorted(folder.iterdir()) if place.is_dir() else [place]
    names = [path.name for path in files if path.suffix in _PICKLES]
    if not names or list(folder.glob("*.safetensors")):
        return None
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    found = f"{', '.join(names[:_MOST_LISTED])}{more}: pickles are never loaded, because they can run any code"
    if any(name.startswith("consolidated.") for name in names):
        return f"{found}; this is Meta's own form: use the same model in its Hugging Face form, with safetensors"
    return f"{found}; {_save_as_safetensors(str(folder), str(folder))}"


def _save_as_safetensors(source: str, target: str) -> str:
    """The way from pickles to safetensors, in the environment of whoever trusts the pickle."""
    return (
        "if you trust them, save the model as safetensors, where torch is installed: "
        f"transformers.AutoModelForCausalLM.from_pretrained({source!r}, dtype='auto').save_pretrained({target!r})"
    )


def _weight_files(folder: Path) -> tuple[list[Path], dict[str, str] | None]:
    """The weight files, and the index's word on which tensor is in which, if there is one."""
    single, index = folder / _SINGLE, folder / _INDEX
    if single.exists():  # As in transformers, one whole file goes before an index.
        return [_checked(single)], None
    if index.exists():
        places = read_json(index).get("weight_map")
        if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
            raise CheckpointError(f"{_INDEX} is no index of safetensors files: weight_map is no object of file names")
        return [_checked(folder / name) for name in sorted(set(places.values()))], places
    loose = sorted(folder.glob("*.safetensors"))
    if len(loose) == 1:
        return [_checked(loose[0])], None
    if loose:
        raise CheckpointError(f"there are {len(loose)} safetensors files, but no {_INDEX}")
    raise CheckpointError(refused_pickles(folder) or "there is a config.json, but no safetensors file")


def _checked(path: Path) -> Path:
    if not path.exists():
        raise CheckpointError(f"{path.name} is missing; {_INDEX} names it")
    if not path.is_file():
        raise CheckpointError(f"{path.name} is a folder, not a safetensors file")
    return path


def _read_header(path: Path) -> dict[str, _Place]:
    """Every tensor of a file. safetensors compares the header with the file's length."""
    try:
        with safe_open(path, framework="numpy"):
            pass
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path.name} is not a whole safetensors file: {error}") from error
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    header.pop("__metadata__", None)
    return {
        name: _Place(name, path, 8 + length + entry["data_offsets"][0], tuple(entry["shape"]), entry["dtype"])
        for name, entry in header.items()
    }
