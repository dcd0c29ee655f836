"""Checkpoints of google-deepmind/gemma: Gemma 1, 2 and 3, in the four layouts that its loader tells apart.

Flat and stacked ones are those published, nested ones are saved by `gm.ckpts.save_params`, and Kauldron's are those of
training. Norms hold the scale without its 1, as transformers does.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping

from brb_jax.checkpoints.checkpoint import CheckpointError
from brb_jax.checkpoints.frameworks.framework import Framework
from brb_jax.models.config import DecoderConfig
from brb_jax.models.families.tensors import Tensor

# What sees images, and what Kauldron saves beside the parameters.
_OTHERS = re.compile(
    r"(transformer/|params/)?(vision_encoder/|embedder/mm_)|SigLiPFromPatches_0/|(opt_state|collections)/|step$"
)


def gemma_attention(config: DecoderConfig, layer: str) -> tuple[Tensor, ...]:
    """Those of a layer's attention: one array for query, key and value where there are as many heads of each."""
    attention = f"{layer}/attn"
    query, key, value = (f"layers/attention/{name}/kernel" for name in ("query", "key", "value"))
    if config.num_heads == config.num_kv_heads:
        fused = f"{attention}/qkv_einsum/w"
        tensors = [
            Tensor(fused, query, "1+1+1 N D H -> D N H", 0),
            Tensor(fused, key, "1+1+1 K D H -> D K H", 1),
            Tensor(fused, value, "1+1+1 K D H -> D K H", 2),
        ]
    else:
        fused = f"{attention}/kv_einsum/w"
        tensors = [
            Tensor(f"{attention}/q_einsum/w", query, "N D H -> D N H"),
            Tensor(fused, key, "1+1 K D H -> D K H", 0),
            Tensor(fused, value, "1+1 K D H -> D K H", 1),
        ]
    tensors.append(Tensor(f"{attention}/attn_vec_einsum/w", "layers/attention/out/kernel", "N H D -> N H D"))
    if config.qk_norm:
        tensors += [
            Tensor(f"{attention}/_query_norm/scale", "layers/attention/query_norm/scale", "H -> H"),
            Tensor(f"{attention}/_key_norm/scale", "layers/attention/key_norm/scale", "H -> H"),
        ]
    return tuple(tensors)


def gemma_norms(config: DecoderConfig, layer: str, post_attention: str = "post_attention_norm") -> tuple[Tensor, ...]:
    """Those of the norms around a layer's attention and MLP."""
    tensors = [
        Tensor(f"{layer}/pre_attention_norm/scale", "layers/attention_norm/scale", "D -> D"),
        Tensor(f"{layer}/pre_ffw_norm/scale", "layers/mlp_norm/scale", "D -> D"),
    ]
    if config.post_norms:
        tensors += [
            Tensor(f"{layer}/{post_attention}/scale", "layers/post_attention_norm/scale", "D -> D"),
            Tensor(f"{layer}/post_ffw_norm/scale", "layers/post_mlp_norm/scale", "D -> D"),
        ]
    return tuple(tensors)


GEMMA_ENDS = (
    Tensor("embedder/input_embedding", "embedder/table", "V D -> V D"),
    Tensor("final_norm/scale", "final_norm/scale", "D -> D"),
)


def _mlp(config: DecoderConfig, layer: str, gating: tuple[int, ...] | None) -> tuple[Tensor, ...]:
    """Those of a layer's MLP; older models have gate and up with the model's width first."""
    transposed = (config.d_mlp, config.d_model)
    if config.d_mlp == config.d_model:
        raise CheckpointError("with MLPs as wide as the model it cannot be told which axis of gating_einsum is which")
    axes = "F D" if gating is None or gating[-2:] == transposed else "D F"
    return (
        Tensor(f"{layer}/mlp/gating_einsum", "layers/mlp/gate/kernel", f"1+1 {axes} -> D F", 0),
        Tensor(f"{layer}/mlp/gating_einsum", "layers/mlp/up/kernel", f"1+1 {axes} -> D F", 1),
        Tensor(f"{layer}/mlp/linear", "layers/mlp/down/kernel", "F D -> F D"),
    )


def _table(config: DecoderConfig, shapes: Mapping[str, tuple[int, ...]]) -> tuple[Tensor, ...]:
    if config.family not in ("gemma", "gemma2", "gemma3"):
        raise CheckpointError(f"a Gemma checkpoint, but the config is of a {config.family} model")
    kinds = {int(found[1]) for name in shapes if (found := re.match(r"stacked_layers/attention_type_(\d+)/", name))}
    layer = "stacked_layers/attention_type_0" if kinds else "layer_{layer}"
    gating = shapes.get(f"{layer.format(layer=0)}/mlp/gating_einsum")
    layers = (*gemma_attention(config, layer), *gemma_norms(config, layer), *_mlp(config, layer, gating))
    if kinds:
        layers = tuple(_stacked(tensor, kind, len(kinds), config) for kind in sorted(kinds) for tensor in layers)
    return (*GEMMA_ENDS, *layers)


def _stacked(tensor: Tensor, kind: int, kinds: int, config: DecoderConfig) -> Tensor:
    """The same tensor of every layer that has one kind of attention: kinds take turns."""
    return dataclasses.replace(
        tensor,
        name=tensor.name.replace("attention_type_0", f"attention_type_{kind}"),
        layout="L " + tensor.layout.replace("->", "-> L"),
        layers=range(kind, config.num_layers, kinds),
    )


def _layout(name: str, below: str, first_layer: str) -> Framework:
    """One of the layouts: a dictionary's key that all parameters are below, and where the first layer is."""

    def recognises(paths: Collection[str]) -> bool:
        return f"{below}{first_layer}/attn/attn_vec_einsum/w" in paths

    def table_name(path: str) -> str | None:
        if _OTHERS.match(path):
            return None
        return re.sub(r"(/mlp/(?:gating_einsum|linear))/w$", r"\1", path.removeprefix(below))

    return Framework(f"Gemma ({name})", recognises, table_name, _table)


GEMMA_LAYOUTS = (
    _layout("flat", "transformer/", "layer_0"),
    _layout("stacked", "transformer/", "stacked_layers/attention_type_0"),
    _layout("nested", "", "layer_0"),
    _layout("Kauldron", "params/", "layer_0"),
)
