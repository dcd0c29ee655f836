"""gpt-oss, with its weights dequantised to a floating-point dtype: as published they are MXFP4, which is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import ClampedGate, DecoderConfig, Experts, LayerKind
from brb_jax.models.families.attributes import BASICS, basics, positive, refuse_others, require_sizes, require_value
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer, layer_types, window
from brb_jax.models.families.rotary import ROTARY, flat_rotary, rotary_parameters
from brb_jax.models.families.tensors import Tensor, llama_like

_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    "attention_bias",
    "experts_per_token",
    "initial_context_length",
    "layer_types",
    "num_experts_per_tok",
    "num_local_experts",
    "sliding_window",
    "swiglu_alpha",
    "swiglu_limit",
}

# Gate and up take turns along one axis.
_EXPERTS = (
    Tensor("model.layers.{layer}.mlp.router.weight", "layers/mlp/router/kernel", "E D -> D E"),
    Tensor("model.layers.{layer}.mlp.router.bias", "layers/mlp/router/bias", "E -> E"),
    Tensor("model.layers.{layer}.mlp.experts.gate_up_proj", "layers/mlp/gate/kernel", "E D (X 1+1) -> E D X", piece=0),
    Tensor("model.layers.{layer}.mlp.experts.gate_up_proj", "layers/mlp/up/kernel", "E D (X 1+1) -> E D X", piece=1),
    Tensor("model.layers.{layer}.mlp.experts.gate_up_proj_bias", "layers/mlp/gate/bias", "E (X 1+1) -> E X", piece=0),
    Tensor("model.layers.{layer}.mlp.experts.gate_up_proj_bias", "layers/mlp/up/bias", "E (X 1+1) -> E X", piece=1),
    Tensor("model.layers.{layer}.mlp.experts.down_proj", "layers/mlp/down/kernel", "E X D -> E X D"),
    Tensor("model.layers.{layer}.mlp.experts.down_proj_bias", "layers/mlp/down/bias", "E D -> E D"),
)


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a gpt-oss `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import GptOssConfig  # Imported late: it takes seconds.

    defaults = GptOssConfig().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require_sizes(hf, "num_key_value_heads", "head_dim", "num_local_experts", "num_experts_per_tok")
    require_value(hf, "hidden_act", "silu")  # transformers ignores it
    require_value(hf, "experts_per_token", hf["num_experts_per_tok"])
    rotary = rotary_parameters(hf)[0]
    if not rotary:
        raise ValueError("config.json sets neither rope_scaling nor rope_parameters; transformers would assume YaRN")
    original = rotary.get("original_max_position_embeddings")
    if original is not None:
        require_value(hf, "initial_context_length", original)
    shape, values = basics(hf, defaults), {**defaults, **hf}
    base, scaling = flat_rotary(hf, GptOssConfig.default_theta)
    alternate = ["full_attention" if i % 2 else "sliding_attention" for i in range(shape["num_layers"])]
    types = layer_types(hf, alternate)
    width = window(hf, values, types)
    kinds = [LayerKind(width if t == "sliding_attention" else None, base, scaling, experts=True) for t in types]
    return DecoderConfig(
        family="gpt_oss",
        **shape,
        **by_layer(kinds),
        attention_bias=values["attention_bias"],
        attention_sinks=True,
        experts=Experts(
            num_experts=hf["num_local_experts"],
            per_token=hf["num_experts_per_tok"],
            d_expert=shape["d_mlp"],
            score="softmax_of_chosen",
            router_bias=True,
            bias=True,
            clamped=ClampedGate(limit=positive(values, "swiglu_limit"), sharpness=positive(values, "swiglu_alpha")),
        ),
    )


def tensors(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The tensors of a dequantised gpt-oss checkpoint."""
    sinks = Tensor("model.layers.{layer}.self_attn.sinks", "layers/attention/sinks", "N -> N")
    return (*llama_like(config, experts=_EXPERTS), sinks)


GPT_OSS = Family(
    name="gpt_oss",
    architectures=("GptOssForCausalLM",),
    model_types=("gpt_oss",),
    config_from_hf=config_from_hf,
    tensors=tensors,
)
