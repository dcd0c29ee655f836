"""Gemma 3: text-only checkpoints, and the text part of those with a vision tower."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families import layers
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
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.rotary import nested_parameters, nested_rotary, rotary_base
from brb_jax.models.families.tensors import PRE_AND_POST_NORMS, Tensor, llama_like

_UNDERSTOOD = frozenset(
    {
        "_sliding_window_pattern",
        "attention_bias",
        "attn_logit_softcapping",
        "final_logit_softcapping",
        "head_dim",
        "hidden_activation",
        "hidden_size",
        "intermediate_size",
        "layer_types",
        "max_position_embeddings",
        "num_attention_heads",
        "num_hidden_layers",
        "num_key_value_heads",
        "query_pre_attn_scalar",
        "rms_norm_eps",
        "rope_local_base_freq",
        "rope_parameters",
        "rope_scaling",
        "rope_theta",
        "sliding_window",
        "sliding_window_pattern",
        "tie_word_embeddings",
        "use_bidirectional_attention",
        "vocab_size",
    }
)

# What the outer config of a checkpoint with images says about them; text alone never meets it.
_IMAGE_ATTRIBUTES = frozenset(
    {
        "boi_token_index",
        "eoi_token_index",
        "image_token_index",
        "mm_tokens_per_image",
        "text_config",
        "tie_word_embeddings",
        "vision_config",
    }
)


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Gemma 3 `config.json`, written by transformers 4 or 5, nested `text_config` or not.

    Attributes a config leaves out take the default of transformers' class, as published Gemma 3 configs count
    on (the nested ones give neither vocabulary nor length).

    Raises:
        ValueError: An attribute is unknown or has an unsupported value; the message names it.
    """
    from transformers import Gemma3TextConfig  # Imported late: it takes seconds.

    if "text_config" in hf:
        hf = _text_part(hf)
    defaults = Gemma3TextConfig().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require_value(hf, "use_bidirectional_attention", False, None)
    # transformers reads this one and then does not apply it (5.24), so it is open what a checkpoint with it means.
    require_value(hf, "attn_logit_softcapping", None)
    values = {**defaults, **hf}
    require_sizes(values, *sorted(SIZES))
    shape = sizes(values)
    kinds = _layer_kinds(hf, values)
    layer_types = _layer_types(hf, shape["num_layers"])
    return DecoderConfig(
        family="gemma3",
        **shape,
        **by_layer([kinds[layer_type] for layer_type in layer_types]),
        activation=activation(values["hidden_activation"]),
        norm_eps=positive(values, "rms_norm_eps"),
        attention_scale=positive(values, "query_pre_attn_scalar") ** -0.5,
        norm_offset=1.0,
        post_norms=True,
        qk_norm=True,
        attention_bias=values["attention_bias"],
        logit_softcap=positive_or_none(values, "final_logit_softcapping"),
        embedding_scale=shape["d_model"] ** 0.5,
        tie_embeddings=values["tie_word_embeddings"],
    )


def _text_part(hf: Mapping[str, Any]) -> Mapping[str, Any]:
    """The nested text config, with the outer one's word on tied embeddings, which transformers obeys."""
    from transformers import Gemma3Config

    refuse_others(hf, _IMAGE_ATTRIBUTES, Gemma3Config().to_dict())
    text = {"model_type": "gemma3_text", **(hf["text_config"] or {})}
    tied = hf.get("tie_word_embeddings", True)
    if text.setdefault("tie_word_embeddings", tied) != tied:
        raise ValueError("config.json: tie_word_embeddings differs between the outer config and text_config")
    return text


def _layer_types(hf: Mapping[str, Any], num_layers: int) -> list[str]:
    """Each layer's type, from the list or from the period; the list wins, as in transformers."""
    if hf.get("layer_types") is not None:
        return layers.layer_types(hf, [])
    period = hf.get("sliding_window_pattern", 6)
    require_sizes({"sliding_window_pattern": period}, "sliding_window_pattern")
    # transformers writes the private key but never reads it back, so it has no say of its own.
    require_value(hf, "_sliding_window_pattern", period)
    return ["full_attention" if (i + 1) % period == 0 else "sliding_attention" for i in range(num_layers)]


def _layer_kinds(hf: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, LayerKind]:
    """Both kinds of layer. transformers 4's `rope_scaling` stretches the layers with full attention alone."""
    from transformers import Gemma3TextConfig

    parameters = nested_parameters(hf)
    limit = values["max_position_embeddings"]
    theta = Gemma3TextConfig.default_theta
    full_base, full_scaling = nested_rotary(
        parameters["full_attention"], "full_attention", rotary_base(hf, theta["global"]), limit
    )
    sliding_base, sliding_scaling = nested_rotary(
        parameters["sliding_attention"],
        "sliding_attention",
        rotary_base(hf, theta["local"], "rope_local_base_freq"),
        limit,
    )
    if values["sliding_window"] is None:
        raise ValueError("config.json: sliding_window is null")
    return {
        "full_attention": LayerKind(window=None, rotary_base=full_base, rotary_scaling=full_scaling),
        "sliding_attention": LayerKind(
            window=values["sliding_window"], rotary_base=sliding_base, rotary_scaling=sliding_scaling
        ),
    }


def tensors(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The tensors of a Gemma 3 text checkpoint, by their names in transformers' `Gemma3ForCausalLM`."""
    return llama_like(config, PRE_AND_POST_NORMS)


def canonical_name(name: str) -> str | None:
    """The text-only name of a tensor of either kind of checkpoint; None for the parts that see images.

    A checkpoint with a vision tower holds its text part under `language_model.` (published ones) or
    `model.language_model.` (saved by transformers 5).
    """
    if re.match(r"(model\.)?(vision_tower|multi_modal_projector)\.", name):
        return None
    name = re.sub(r"^model\.language_model\.", "model.", name)
    return re.sub(r"^language_model\.", "", name)


GEMMA3 = Family(
    name="gemma3",
    architectures=("Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"),
    model_types=("gemma3_text", "gemma3"),
    config_from_hf=config_from_hf,
    tensors=tensors,
    canonical_name=canonical_name,
)
