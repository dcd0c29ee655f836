"""Granite 3 without experts: Llama with multipliers on embeddings, residual branches, attention scores and logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import BASICS, basics, positive, refuse_others
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.rotary import ROTARY, flat_rotary
from brb_jax.models.families.tensors import llama_like

_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    "attention_bias",
    "attention_multiplier",
    "embedding_multiplier",
    "logits_scaling",
    "mlp_bias",
    "residual_multiplier",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Granite `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import GraniteConfig  # Imported late: it takes seconds.

    defaults = GraniteConfig().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    shape, values = basics(hf, defaults), {**defaults, **hf}
    base, scaling = flat_rotary(hf, GraniteConfig.default_theta)
    return DecoderConfig(
        family="granite",
        **{**shape, "attention_scale": positive(values, "attention_multiplier")},
        **by_layer([LayerKind(None, base, scaling)] * shape["num_layers"]),
        attention_bias=values["attention_bias"],
        mlp_bias=values["mlp_bias"],
        embedding_scale=positive(values, "embedding_multiplier"),
        residual_scale=positive(values, "residual_multiplier"),
        logit_scale=1 / positive(values, "logits_scaling"),
    )


GRANITE = Family(
    name="granite",
    architectures=("GraniteForCausalLM",),
    model_types=("granite",),
    config_from_hf=config_from_hf,
    tensors=llama_like,
)
