"""OLMo 2: norms behind attention and MLP alone, and queries and keys normed over all heads at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import BASICS, basics, refuse_others
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.rotary import ROTARY, flat_rotary
from brb_jax.models.families.tensors import POST_NORMS, Tensor, llama_like

_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    "attention_bias",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads an OLMo 2 `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import Olmo2Config  # Imported late: it takes seconds.

    defaults = Olmo2Config().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    shape = basics(hf, defaults)
    base, scaling = flat_rotary(hf, Olmo2Config.default_theta)
    kinds = [LayerKind(None, base, scaling)] * shape["num_layers"]
    return post_normed("olmo2", shape, kinds, {**defaults, **hf})


def post_normed(
    family: str, shape: Mapping[str, Any], kinds: list[LayerKind], values: Mapping[str, Any]
) -> DecoderConfig:
    """The config of an OLMo 2 or 3 of these `basics`, kinds of each layer, and attributes with defaults filled in."""
    return DecoderConfig(
        family=family,
        **shape,
        **by_layer(kinds),
        pre_norms=False,
        post_norms=True,
        qk_norm="joint",
        attention_bias=values["attention_bias"],
    )


def tensors(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The tensors of an OLMo 2 or 3 checkpoint, by their names in transformers."""
    return llama_like(config, POST_NORMS)


OLMO2 = Family(
    name="olmo2",
    architectures=("Olmo2ForCausalLM",),
    model_types=("olmo2",),
    config_from_hf=config_from_hf,
    tensors=tensors,
)
