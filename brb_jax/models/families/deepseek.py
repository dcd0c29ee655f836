"""DeepSeek V2 and V3, and what shares their architectures, such as DeepSeek R1 and Moonlight."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, Experts, Latent, LayerKind, RotaryScaling
from brb_jax.models.families.attributes import BASICS, basics, positive, refuse_others, require_sizes, require_value
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.rotary import ROTARY, flat_rotary, rotary_parameters
from brb_jax.models.families.tensors import ENDS, EXPERTS, PRE_NORMS, Tensor, in_stacks, mlp, unembedding

_SIZES = (
    "kv_lora_rank",
    "moe_intermediate_size",
    "n_routed_experts",
    "n_shared_experts",
    "num_experts_per_tok",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
)
_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    *_SIZES,
    "attention_bias",
    "first_k_dense_replace",
    "moe_layer_freq",
    "n_group",
    "norm_topk_prob",
    "q_lora_rank",
    "qk_head_dim",
    "routed_scaling_factor",
    "scoring_func",
    "topk_group",
    "topk_method",
}
# How the model was trained and parallelised, where its code is, and the layers that predict the token after the next.
_INERT = {"auto_map", "aux_loss_alpha", "ep_size", "num_nextn_predict_layers", "seq_aux"}
_V2 = frozenset(_UNDERSTOOD | _INERT | {"mlp_bias"})
_V3 = frozenset(_UNDERSTOOD | _INERT | {"rope_interleave"})

# transformers gives these norms no epsilon, so they have its default.
_LATENT_NORM_EPS = 1e-6


def v2_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a DeepSeek V2 `config.json`, written by transformers 4 or 5 or by DeepSeek.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import DeepseekV2Config  # Imported late: it takes seconds.

    defaults = DeepseekV2Config().to_dict()
    refuse_others(hf, _V2, defaults)
    require_value(hf, "mlp_bias", False)
    require_value(hf, "scoring_func", "softmax")
    # DeepSeek's code then ignores the scaling factor, and transformers ignores this.
    require_value(hf, "norm_topk_prob", False)
    require_value(hf, "topk_method", "greedy", "group_limited_greedy")
    values = {**defaults, **hf}
    grouped = values["topk_method"] == "group_limited_greedy"
    if grouped:
        require_sizes(hf, "n_group", "topk_group")
    rule = {
        "scale": positive(values, "routed_scaling_factor"),
        "num_groups": values["n_group"] if grouped else 1,
        "groups_per_token": values["topk_group"] if grouped else 1,
    }
    return _config("deepseek_v2", hf, values, rule, DeepseekV2Config.default_theta, interleaved=True)


def v3_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a DeepSeek V3 `config.json`, written by transformers 4 or 5 or by DeepSeek.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import DeepseekV3Config  # Imported late: it takes seconds.

    defaults = DeepseekV3Config().to_dict()
    refuse_others(hf, _V3, defaults)
    require_value(hf, "scoring_func", "sigmoid")
    require_value(hf, "topk_method", "noaux_tc")
    require_sizes(hf, "n_group", "topk_group")
    values = {**defaults, **hf}
    rule = {
        "score": "sigmoid",
        "normalize": values["norm_topk_prob"],
        "scale": positive(values, "routed_scaling_factor"),
        "num_groups": values["n_group"],
        "groups_per_token": values["topk_group"],
        "best_per_group": 2,
        "choice_bias": True,
    }
    interleaved = values["rope_interleave"]
    return _config("deepseek_v3", hf, values, rule, DeepseekV3Config.default_theta, interleaved=interleaved)


def _config(
    family: str,
    hf: Mapping[str, Any],
    values: Mapping[str, Any],
    rule: Mapping[str, Any],
    default_base: float,
    *,
    interleaved: bool,
) -> DecoderConfig:
    """The config of either version.

    Args:
        family: Its name.
        hf: The Hugging Face config.
        values: The same over the defaults of its class.
        rule: How the router picks experts.
        default_base: Of rotary embeddings, where the config has none.
        interleaved: As in `Latent`.
    """
    require_sizes(hf, *_SIZES)
    require_sizes(hf, "first_k_dense_replace", least=0)
    if values["q_lora_rank"] is not None:
        require_sizes(values, "q_lora_rank")
    rotary_dim = hf["qk_rope_head_dim"]
    head_dim = hf["qk_nope_head_dim"] + rotary_dim
    shape = basics({**hf, "head_dim": head_dim}, values)
    require_value(hf, "num_key_value_heads", shape["num_heads"], None)
    require_value(hf, "head_dim", rotary_dim, None)  # transformers means the rotated channels
    require_value(hf, "qk_head_dim", head_dim)
    require_value(hf, "moe_layer_freq", 1)
    base, scaling = flat_rotary(hf, default_base)
    dense, layers = hf["first_k_dense_replace"], shape["num_layers"]
    shape["attention_scale"] *= _score_growth(hf, scaling) ** 2
    experts = Experts(
        num_experts=hf["n_routed_experts"],
        per_token=hf["num_experts_per_tok"],
        d_expert=hf["moe_intermediate_size"],
        d_shared=hf["moe_intermediate_size"] * hf["n_shared_experts"],
        **rule,
    )
    return DecoderConfig(
        family=family,
        **shape,
        **by_layer([LayerKind(None, base, scaling, experts=layer >= dense) for layer in range(layers)]),
        attention_bias=values["attention_bias"],
        rotary_dim=rotary_dim,
        latent=Latent(
            query_rank=values["q_lora_rank"],
            key_value_rank=hf["kv_lora_rank"],
            value_dim=hf["v_head_dim"],
            norm_eps=_LATENT_NORM_EPS,
            interleaved=interleaved,
        ),
        experts=experts if dense < layers else None,
    )


def _score_growth(hf: Mapping[str, Any], scaling: RotaryScaling | None) -> float:
    """What multiplies queries and keys under YaRN, those without a position as well."""
    growth = rotary_parameters(hf)[0].get("mscale_all_dim") or 0.0
    if scaling is None or scaling.factor <= 1:
        return 1.0
    return 0.1 * growth * math.log(scaling.factor) + 1.0


def tensors(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The tensors of a DeepSeek checkpoint, by their published names, which transformers 5 writes too."""
    assert config.latent is not None
    layer = "model.layers.{layer}"
    attention, shared, path = f"{layer}.self_attn", f"{layer}.mlp.shared_experts", "layers/attention"
    every = [
        *PRE_NORMS,
        Tensor(f"{attention}.kv_a_proj_with_mqa.weight", f"{path}/key_value_down/kernel", "Z D -> D Z"),
        Tensor(f"{attention}.kv_a_layernorm.weight", f"{path}/key_value_norm/scale", "R -> R"),
        Tensor(f"{attention}.kv_b_proj.weight", f"{path}/key_value_up/kernel", "(N M) R -> R N M"),
        Tensor(f"{attention}.o_proj.weight", f"{path}/out/kernel", "D (N W) -> N W D"),
    ]
    if config.latent.query_rank is None:
        every.append(Tensor(f"{attention}.q_proj.weight", f"{path}/query/kernel", "(N H) D -> D N H"))
    else:
        every += [
            Tensor(f"{attention}.q_a_proj.weight", f"{path}/query_down/kernel", "Q D -> D Q"),
            Tensor(f"{attention}.q_a_layernorm.weight", f"{path}/query_norm/scale", "Q -> Q"),
            Tensor(f"{attention}.q_b_proj.weight", f"{path}/query_up/kernel", "(N H) Q -> Q N H"),
        ]
    if config.attention_bias:
        every += [
            Tensor(f"{attention}.kv_a_proj_with_mqa.bias", f"{path}/key_value_down/bias", "Z -> Z"),
            Tensor(f"{attention}.o_proj.bias", f"{path}/out/bias", "D -> D"),
        ]
        if config.latent.query_rank is not None:
            every.append(Tensor(f"{attention}.q_a_proj.bias", f"{path}/query_down/bias", "Q -> Q"))
    sparse = [
        *EXPERTS,
        Tensor(f"{shared}.gate_proj.weight", "layers/mlp/shared/gate/kernel", "Y D -> D Y"),
        Tensor(f"{shared}.up_proj.weight", "layers/mlp/shared/up/kernel", "Y D -> D Y"),
        Tensor(f"{shared}.down_proj.weight", "layers/mlp/shared/down/kernel", "D Y -> Y D"),
    ]
    if config.experts is not None and config.experts.choice_bias:
        bias = f"{layer}.mlp.gate.e_score_correction_bias"
        sparse.append(Tensor(bias, "layers/mlp/router/choice_bias", "E -> E", float32=True))
    return (*ENDS, *in_stacks(config, every, mlp(config), sparse), *unembedding(config))


def v3_canonical_name(name: str) -> str | None:
    """`name` itself; None for the layer behind the last of V3's 61, which predicts the token after the next."""
    return None if re.match(r"model\.layers\.61\.", name) else name


DEEPSEEK_V2 = Family(
    name="deepseek_v2",
    architectures=("DeepseekV2ForCausalLM",),
    model_types=("deepseek_v2",),
    config_from_hf=v2_from_hf,
    tensors=tensors,
)
DEEPSEEK_V3 = Family(
    name="deepseek_v3",
    architectures=("DeepseekV3ForCausalLM",),
    model_types=("deepseek_v3",),
    config_from_hf=v3_from_hf,
    tensors=tensors,
    canonical_name=v3_canonical_name,
)
