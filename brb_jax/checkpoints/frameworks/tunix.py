"""Checkpoints of Tunix, google/tunix: Flax NNX models of Llama 3, Qwen 2 and 3 with or without experts, Gemma 1 to 3.

Its checkpoint manager saves the model's state as the item `model_params`. A head's rotary pairs lie half a head apart,
as in transformers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from brb_jax.checkpoints.checkpoint import CheckpointError
from brb_jax.checkpoints.frameworks.framework import Framework
from brb_jax.checkpoints.frameworks.gemma import GEMMA_ENDS, gemma_attention, gemma_norms
from brb_jax.models.config import DecoderConfig
from brb_jax.models.families.tensors import Tensor, in_stacks

_LAYER = "layers/{layer}"
_ATTENTION = f"{_LAYER}/attn"
_MLP = f"{_LAYER}/mlp"

_LLAMA_LAYER = (
    Tensor(f"{_ATTENTION}/q_proj/w", "layers/attention/query/kernel", "D N H -> D N H"),
    Tensor(f"{_ATTENTION}/k_proj/w", "layers/attention/key/kernel", "D K H -> D K H"),
    Tensor(f"{_ATTENTION}/v_proj/w", "layers/attention/value/kernel", "D K H -> D K H"),
    Tensor(f"{_ATTENTION}/o_proj/w", "layers/attention/out/kernel", "N H D -> N H D"),
    Tensor(f"{_LAYER}/input_layernorm/w", "layers/attention_norm/scale", "D -> D"),
    Tensor(f"{_LAYER}/post_attention_layernorm/w", "layers/mlp_norm/scale", "D -> D"),
)
_BIASES = (
    Tensor(f"{_ATTENTION}/q_bias", "layers/attention/query/bias", "(N H) -> N H"),
    Tensor(f"{_ATTENTION}/k_bias", "layers/attention/key/bias", "(K H) -> K H"),
    Tensor(f"{_ATTENTION}/v_bias", "layers/attention/value/bias", "(K H) -> K H"),
)
_QK_NORMS = (
    Tensor(f"{_ATTENTION}/q_norm/w", "layers/attention/query_norm/scale", "H -> H"),
    Tensor(f"{_ATTENTION}/k_norm/w", "layers/attention/key_norm/scale", "H -> H"),
)
_DENSE = (
    Tensor(f"{_MLP}/gate_proj/kernel", "layers/mlp/gate/kernel", "D F -> D F"),
    Tensor(f"{_MLP}/up_proj/kernel", "layers/mlp/up/kernel", "D F -> D F"),
    Tensor(f"{_MLP}/down_proj/kernel", "layers/mlp/down/kernel", "F D -> F D"),
)
_EXPERTS = (
    Tensor(f"{_MLP}/router/kernel", "layers/mlp/router/kernel", "D E -> D E"),
    Tensor(f"{_MLP}/gate_proj", "layers/mlp/gate/kernel", "E D X -> E D X"),
    Tensor(f"{_MLP}/up_proj", "layers/mlp/up/kernel", "E D X -> E D X"),
    Tensor(f"{_MLP}/down_proj", "layers/mlp/down/kernel", "E X D -> E X D"),
)
_LLAMA_ENDS = (
    Tensor("embedder/input_embedding", "embedder/table", "V D -> V D"),
    Tensor("final_norm/w", "final_norm/scale", "D -> D"),
)
_UNEMBEDDING = Tensor("lm_head/w", "unembedding/kernel", "D V -> D V")

# By family, what its layers have besides those of Llama.
_LLAMA_LIKE: Mapping[str, tuple[Tensor, ...]] = {
    "llama": (),
    "qwen2": _BIASES,
    "qwen3": _QK_NORMS,
    "qwen3_moe": _QK_NORMS,
}


def _table(config: DecoderConfig, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Tensor, ...]:
    if config.family in _LLAMA_LIKE:
        ends = _LLAMA_ENDS if config.tie_embeddings else (*_LLAMA_ENDS, _UNEMBEDDING)
        return (*ends, *in_stacks(config, (*_LLAMA_LAYER, *_LLAMA_LIKE[config.family]), _DENSE, _EXPERTS))
    if config.family in ("gemma", "gemma2", "gemma3"):
        post_attention = "post_attention_norm" if config.family == "gemma3" else "post_attn_norm"
        norms = gemma_norms(config, _LAYER, post_attention)
        return (*GEMMA_ENDS, *gemma_attention(config, _LAYER), *norms, *_DENSE)
    raise CheckpointError(f"a Tunix checkpoint, but the config is of a {config.family} model, which Tunix has not")


def _recognises(paths: Collection[str]) -> bool:
    return any(re.match(r"layers/0/attn/(q_proj|attn_vec_einsum)/w(/value)?$", path) for path in paths)


def _table_name(path: str) -> str | None:
    """Without the `value` that every path of an NNX state ends in; None for what sees images."""
    return None if re.match(r"vision_encoder/|embedder/mm_", path) else path.removesuffix("/value")


TUNIX = Framework("Tunix", _recognises, _table_name, _table)
