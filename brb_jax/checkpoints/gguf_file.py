"""GGUF files, read like Hugging Face checkpoints: as a config dict, and tensors by their names there."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from etils import epath

from brb_jax.checkpoints.checkpoint import CheckpointError, Params, fingerprint
from brb_jax.checkpoints.gguf_header import TensorInfo, read_header
from brb_jax.checkpoints.gguf_tokenizer import write_tokenizer
from brb_jax.checkpoints.streaming import check_tensors, load_tensors
from brb_jax.checkpoints.tokenizer_files import temporary_folder
from brb_jax.models.config import DecoderConfig
from brb_jax.models.families import family_of
from brb_jax.models.families.tensors import Tensor

_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LLAMA_NAMES = {**_NAMES, "ffn_norm": "post_attention_layernorm"}
_GEMMA3_NAMES = {
    **_NAMES,
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}

_SHARED_KEYS = {
    "context_length": "max_position_embeddings",
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.key_length": "head_dim",
    "rope.freq_base": "rope_theta",
}
_DEQUANTISED_BYTES = 1 << 24  # At a time.
_REQUIRED_KEYS = (
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.layer_norm_rms_epsilon",
)


@dataclasses.dataclass(frozen=True)
class _Architecture:
    """What one of llama.cpp's architectures stores in its own way.

    Attributes:
        names: Tensor names, without `blk.N.` and suffix, as Hugging Face's.
        keys: Metadata keys, without the architecture's prefix, as attributes of the Hugging Face config.
        extra: Attributes that follow from others, or that the file leaves to the reader.
    """

    names: Mapping[str, str]
    keys: Mapping[str, str]
    extra: Callable[[Mapping[str, Any]], Mapping[str, Any]]


def _llama_extra(hf: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}


def _gemma3_extra(hf: Mapping[str, Any]) -> Mapping[str, Any]:
    # The file has no query_pre_attn_scalar. It is the head width in every size but 27B, the one of 62 layers,
    # where it is width / heads, as llama.cpp decides too.
    by_width = hf["num_hidden_layers"] == 62
    scalar = hf["hidden_size"] // hf["num_attention_heads"] if by_width else hf["head_dim"]
    return {
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        "query_pre_attn_scalar": scalar,
    }


_ARCHITECTURES = {
    "llama": _Architecture(_LLAMA_NAMES, _SHARED_KEYS, _llama_extra),
    "gemma3": _Architecture(
        _GEMMA3_NAMES,
        {
            **_SHARED_KEYS,
            "attention.sliding_window": "sliding_window",
            "rope.freq_base_swa": "rope_local_base_freq",
            "final_logit_softcapping": "final_logit_softcapping",
        },
        _gemma3_extra,
    ),
}


@dataclasses.dataclass(frozen=True)
class GgufCheckpoint:
    """One GGUF file as a `Checkpoint`."""

    tensors: GgufTensors
    config: DecoderConfig
    table: tuple[Tensor, ...]
    fingerprint: str
    source: str = "gguf"

    @functools.cached_property
    def tokenizer_path(self) -> Path:
        """A temporary folder, written at first use, that lives as long as the process."""
        folder = temporary_folder()
        write_tokenizer(self.tensors.metadata, folder)
        return folder

    def load(self, abstract_params: Params) -> Params:
        """See `Checkpoint.load`. Quantised tensors are restored to float32, then cast."""
        return load_tensors(self, abstract_params)


class GgufTensors:
    """A GGUF file's tensors under their Hugging Face names, and its metadata.

    llama.cpp rearranges some tensors for itself; `read` undoes that. In `llama` files the rows of query and
    key projections are interleaved for its rotary embedding; in `gemma3` files norm scales have a 1 added.
    """

    def __init__(self, path: Path):
        """Reads names, shapes and metadata.

        Raises:
            CheckpointError: Not a whole GGUF file, or of an unsupported architecture.
        """
        self._gguf = _import_gguf()
        header = read_header(path)
        self.metadata = header.metadata
        self.architecture: str = self.metadata.get("general.architecture", "")
        if self.architecture not in _ARCHITECTURES:
            raise CheckpointError(
                f"{path}: GGUF architecture {self.architecture!r} is not supported, only {', '.join(_ARCHITECTURES)}"
            )
        if self.metadata.get("split.count", 1) > 1:
            raise CheckpointError(f"{path} is one of {self.metadata['split.count']} parts; join them first")
        self._path = path
        self._stored = {self._hf_name(name): name for name in header.tensors}
        self._infos = {self._hf_name(name): info for name, info in header.tensors.items()}
        kinds = {kind.value for kind in self._gguf.GGMLQuantizationType}
        for name, info in self._infos.items():
            if info.kind not in kinds:
                raise CheckpointError(f"{path}: {self._stored[name]} has quantisation {info.kind}, which is not known")
            if info.offset + math.prod(self._stored_shape(info)) > path.stat().st_size:
                raise CheckpointError(f"{path} is not whole: it ends before or within {self._stored[name]}")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes as Hugging Face has them."""
        return {name: info.shape for name, info in self._infos.items()}

    def stored_name(self, name: str) -> str:
        """The tensor's name in the file; its Hugging Face name if it is not there."""
        return self._stored.get(name, name)

    def chunk_shape(self, name: str) -> tuple[int, ...]:
        """See `TensorSource`; a tensor is restored as a whole."""
        return self._infos[name].shape

    def read(self, name: str, block: tuple[slice, ...] = ()) -> np.ndarray:
        """A tensor or a block of it, in float32, as Hugging Face would store it."""
        return self._restored(name)[block]

    def _restored(self, name: str) -> np.ndarray:
        info = self._infos[name]
        kind = self._gguf.GGMLQuantizationType(info.kind)
        row_bytes = self._stored_shape(info)[-1]
        flat = np.fromfile(self._path, np.uint8, math.prod(self._stored_shape(info)), offset=info.offset)
        stored = flat.reshape(-1, row_bytes)
        array = np.empty((len(stored), info.shape[-1]), np.float32)
        # Some rows at a time: `dequantize` keeps its result twice while it puts it together.
        step = max(1, _DEQUANTISED_BYTES // row_bytes)
        for i in range(0, len(stored), step):
            array[i : i + step] = self._gguf.dequantize(stored[i : i + step], kind)
        array = array.reshape(info.shape)
        if self.architecture == "llama" and name.endswith(("q_proj.weight", "k_proj.weight")):
            key = "attention.head_count" if name.endswith("q_proj.weight") else "attention.head_count_kv"
            heads = self.metadata[f"llama.{key}"]
            # A head's rows lie in pairs (i, i + H/2); Hugging Face has the first halves, then the second.
            return array.reshape(heads, -1, 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        if self.architecture == "gemma3" and name.endswith("norm.weight"):
            return array - np.float32(1)
        return array

    def hf_config(self) -> dict[str, Any]:
        """The Hugging Face config the metadata stands for.

        Raises:
            CheckpointError: The metadata sets something about the architecture that is not understood.
        """
        architecture = _ARCHITECTURES[self.architecture]
        prefix = f"{self.architecture}."
        stated = {key.removeprefix(prefix): value for key, value in self.metadata.items() if key.startswith(prefix)}
        missing = [prefix + key for key in _REQUIRED_KEYS if key not in stated]
        if missing:
            raise CheckpointError(f"the GGUF metadata lacks {', '.join(missing)}")
        by_layer = [prefix + key for key in architecture.keys if isinstance(stated.get(key), list)]
        if by_layer:
            raise CheckpointError(f"layers of different {', '.join(by_layer)} are not supported")
        hf = {name: stated.pop(key) for key, name in architecture.keys.items() if key in stated}
        hf["rope_scaling"] = _rope_scaling(stated)
        hf.setdefault("head_dim", hf["hidden_size"] // hf["num_attention_heads"])
        hf["tie_word_embeddings"] = "lm_head.weight" not in self._infos
        if "model.embed_tokens.weight" not in self._infos:
            raise CheckpointError("the GGUF file has no token_embd.weight")
        hf["vocab_size"] = self._infos["model.embed_tokens.weight"].shape[0]
        # Said a second time, in other words; a file that contradicts itself is refused.
        again = {
            "rope.dimension_count": hf["head_dim"],
            "attention.value_length": hf["head_dim"],
            "vocab_size": hf["vocab_size"],
        }
        left = {key: value for key, value in stated.items() if again.get(key) != value}
        if left:
            listed = ", ".join(f"{prefix}{key}={value!r}" for key, value in left.items())
            raise CheckpointError(f"the GGUF metadata sets what brb_jax does not know: {listed}")
        return {**hf, **architecture.extra(hf)}

    def _stored_shape(self, info: TensorInfo) -> tuple[int, ...]:
        """The shape in bytes: only the last axis is in quantised blocks."""
        block, size = self._gguf.GGML_QUANT_SIZES[self._gguf.GGMLQuantizationType(info.kind)]
        return (*info.shape[:-1], info.shape[-1] // block * size)

    def _hf_name(self, name: str) -> str:
        match = re.fullmatch(r"(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)", name)
        names = _ARCHITECTURES[self.architecture].names
        if not match or match[2] not in names:
            return name  # Left to `check_tensors`, which refuses what no decoder has.
        layer = "" if match[1] is None else f"model.layers.{match[1]}."
        return f"{layer}{names[match[2]]}.{match[3]}"


def open_gguf(path: Path) -> GgufCheckpoint:
    """Opens a GGUF file.

    Raises:
        CheckpointError: It is damaged, not supported, or does not hold the tensors its metadata asks for.
    """
    tensors = GgufTensors(path)
    try:
        hf = tensors.hf_config()
        family = family_of(hf)
        config = family.config_from_hf(hf)
        table = family.tensors(config)
        check_tensors(tensors, config, table)
    except ValueError as error:  # Of a config, or a CheckpointError; neither knows the file.
        raise CheckpointError(f"{path}: {error}") from error
    return GgufCheckpoint(tensors, config, table, fingerprint(config, [("gguf", epath.Path(path))]))


def _rope_scaling(stated: dict[str, Any]) -> dict[str, Any] | None:
    """Takes the rotary scaling out of `stated`. Only the linear kind is stored as metadata alone."""
    kind = stated.pop("rope.scaling.type", "none")
    factor = stated.pop("rope.scaling.factor", None)
    if kind == "none":
        return None
    if kind != "linear":  # llama.cpp's YaRN has parameters of its own, in part in the program.
        raise CheckpointError(f"rope_scaling of type {kind!r} is not supported in GGUF files, only 'linear'")
    return {"rope_type": kind, "factor": factor}


def _import_gguf() -> Any:
    try:
        import gguf
    except ImportError as error:
        raise CheckpointError(
            "reading GGUF files needs the package gguf: pip install '.[demo]' in brb_jax's checkout"
        ) from error
    return gguf
