"""Gemma 2: soft caps on attention scores and logits, and windows in every other layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import (
    SIZES,
    activation,
    positive,
    positive_or_none,
    refuse_others,
    require_sizes,
    require_value,
    sizes,
)
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer, layer_types, window
from brb_jax.models.families.rotary import flat_rotary
from brb_jax.models.families.tensors import PRE_AND_POST_NORMS, Tensor, llama_like

_UNDERSTOOD = SIZES | {
    "attention_bias",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "hidden_act",
    "hidden_activation",
    "layer_types",
    "query_pre_attn_scalar",
    "rms_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "sliding_window",
    "sliding_window_size",
    "tie_word_embeddings",
    "use_bidirectional_attention",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Gemma 2 `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import Gemma2Config  # Imported late: it takes seconds.

    defaults = Gemma2Config().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require_sizes(hf, "num_key_value_heads", "head_dim")
    require_value(hf, "use_bidirectional_attention", False, None)
    shape, values = sizes(hf), {**defaults, **hf}
    # Published files say these two twice; transformers goes by the names the other way round.
    require_value(hf, "hidden_act", values["hidden_activation"])
    require_value(hf, "sliding_window_size", values["sliding_window"])
    types = layer_types(
        hf, ["full_attention" if i % 2 else "sliding_attention" for i in range(hf["num_hidden_layers"])]
    )
    base, scaling = flat_rotary(hf, Gemma2Config.default_theta)
    kinds = {
        "full_attention": LayerKind(None, base, scaling),
        "sliding_attention": LayerKind(window(hf, values, types), base, scaling),
    }
    return DecoderConfig(
        family="gemma2",
        **shape,
        **by_layer([kinds[layer_type] for layer_type in types]),
        activation=activation(values["hidden_activation"]),
        norm_eps=positive(values, "rms_norm_eps"),
        attention_scale=positive(values, "query_pre_attn_scalar") ** -0.5,
        norm_offset=1.0,
        post_norms=True,
        attention_bias=values["attention_bias"],
        attention_softcap=positive_or_none(values, "attn_logit_softcapping"),
        logit_softcap=positive_or_none(values, "final_logit_softcapping"),
        embedding_scale=shape["d_model"] ** 0.5,
        tie_embeddings=values["tie_word_embeddings"],
    )


def tensors(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The tensors of a Gemma 2 checkpoint, by their names in transformers."""
    return llama_like(config, PRE_AND_POST_NORMS)


GEMMA2 = Family(
    name="gemma2",
    architectures=("Gemma2ForCausalLM",),
    model_types=("gemma2",),
    config_from_hf=config_from_hf,
    tensors=tensors,
)
