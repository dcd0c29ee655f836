"""Mixtral 8x7B and 8x22B, and what shares their architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, Experts, LayerKind
from brb_jax.models.families.attributes import BASICS, basics, refuse_others, require_sizes
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.rotary import ROTARY, flat_rotary
from brb_jax.models.families.tensors import Tensor, llama_like

_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    "num_experts_per_tok",
    "num_local_experts",
    "sliding_window",
}

# By their published names, which transformers 5 writes too.
_EXPERTS = (
    Tensor("model.layers.{layer}.block_sparse_moe.gate.weight", "layers/mlp/router/kernel", "E D -> D E"),
    Tensor("model.layers.{layer}.block_sparse_moe.experts.{expert}.w1.weight", "layers/mlp/gate/kernel", "X D -> D X"),
    Tensor("model.layers.{layer}.block_sparse_moe.experts.{expert}.w3.weight", "layers/mlp/up/kernel", "X D -> D X"),
    Tensor("model.layers.{layer}.block_sparse_moe.experts.{expert}.w2.weight", "layers/mlp/down/kernel", "D X -> X D"),
)


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Mixtral `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import MixtralConfig  # Imported late: it takes seconds.

    defaults = MixtralConfig().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require_sizes(hf, "num_key_value_heads", "num_local_experts", "num_experts_per_tok")
    shape, values = basics(hf, defaults), {**defaults, **hf}
    base, scaling = flat_rotary(hf, MixtralConfig.default_theta)
    return DecoderConfig(
        family="mixtral",
        **shape,
        **by_layer([LayerKind(values["sliding_window"], base, scaling, experts=True)] * shape["num_layers"]),
        experts=Experts(
            num_experts=hf["num_local_experts"],
            per_token=hf["num_experts_per_tok"],
            d_expert=shape["d_mlp"],
            normalize=True,
        ),
    )


def tensors(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The tensors of a Mixtral checkpoint."""
    return llama_like(config, experts=_EXPERTS)


MIXTRAL = Family(
    name="mixtral",
    architectures=("MixtralForCausalLM",),
    model_types=("mixtral",),
    config_from_hf=config_from_hf,
    tensors=tensors,
)
