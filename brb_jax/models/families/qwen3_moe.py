"""Qwen 3 with experts: 30B-A3B, 235B-A22B, and what shares their architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, Experts, LayerKind
from brb_jax.models.families.attributes import BASICS, basics, refuse_others, require_sizes, require_value
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.rotary import ROTARY, flat_rotary
from brb_jax.models.families.tensors import llama_like

_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    "attention_bias",
    "decoder_sparse_step",
    "max_window_layers",
    "mlp_only_layers",
    "moe_intermediate_size",
    "norm_topk_prob",
    "num_experts",
    "num_experts_per_tok",
    "num_local_experts",
    "sliding_window",
    "use_sliding_window",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Qwen 3 MoE `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import Qwen3MoeConfig  # Imported late: it takes seconds.

    defaults = Qwen3MoeConfig().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require_sizes(hf, "num_key_value_heads", "num_experts_per_tok", "moe_intermediate_size")
    # Without it, a window and the layers it begins at are not read.
    require_value(hf, "use_sliding_window", False, None)
    shape, values = basics(hf, defaults), {**defaults, **hf}
    require_sizes(values, "decoder_sparse_step")
    base, scaling = flat_rotary(hf, Qwen3MoeConfig.default_theta)
    step, without = values["decoder_sparse_step"], values["mlp_only_layers"] or []
    has_experts = [(layer + 1) % step == 0 and layer not in without for layer in range(shape["num_layers"])]
    experts = Experts(
        num_experts=_num_experts(hf),
        per_token=hf["num_experts_per_tok"],
        d_expert=hf["moe_intermediate_size"],
        normalize=values["norm_topk_prob"],
    )
    return DecoderConfig(
        family="qwen3_moe",
        **shape,
        **by_layer([LayerKind(None, base, scaling, experts=has) for has in has_experts]),
        qk_norm=True,
        attention_bias=values["attention_bias"],
        experts=experts if any(has_experts) else None,
    )


def _num_experts(hf: Mapping[str, Any]) -> int:
    """`num_experts`, which transformers 5 writes as `num_local_experts`."""
    keys = [key for key in ("num_experts", "num_local_experts") if hf.get(key) is not None]
    require_sizes(hf, *keys)
    counts = {hf[key] for key in keys}
    if len(counts) != 1:
        raise ValueError(f"config.json: num_experts and num_local_experts give {len(counts)} numbers, not one")
    return counts.pop()


QWEN3_MOE = Family(
    name="qwen3_moe",
    architectures=("Qwen3MoeForCausalLM",),
    model_types=("qwen3_moe",),
    config_from_hf=config_from_hf,
    tensors=llama_like,
)
