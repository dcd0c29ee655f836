"""Phi 3, 3.5 mini, 4 and 4 mini: fused projections, and for long contexts LongRoPE, on part of a head in Phi 4 mini."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import BASICS, basics, refuse_others, require_value
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.rotary import ROTARY, partial_rotary, read_rotary, rotary_base, rotary_parameters
from brb_jax.models.families.tensors import ENDS, PRE_NORMS, Tensor, unembedding

_UNDERSTOOD = {
    *BASICS,
    *ROTARY,
    "attention_bias",
    "auto_map",
    "embd_pdrop",
    "full_attn_mod",
    "interpolate_factor",
    "lm_head_bias",
    "mlp_bias",
    "original_max_position_embeddings",
    "partial_rotary_factor",
    "resid_pdrop",
    "sliding_window",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a Phi 3 `config.json`, written by transformers 4 or 5.

    `auto_map` names code in the repository; this package, as transformers by default, has its own. Dropout rates are
    of training.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import Phi3Config  # Imported late: it takes seconds.

    defaults = Phi3Config().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    # Phi 4 mini's file states these, which its code in the repository reads and transformers does not.
    for key in ("attention_bias", "lm_head_bias", "mlp_bias"):
        require_value(hf, key, False)
    for key in ("full_attn_mod", "interpolate_factor"):
        require_value(hf, key, 1)
    shape, values = basics(hf, defaults), {**defaults, **hf}
    base, scaling = _rotary(hf, values)
    rotary_dim = partial_rotary(hf, shape["head_dim"], 1.0)
    lengths = () if scaling is None else (len(scaling.short_factors), len(scaling.long_factors))
    if any(length != rotary_dim // 2 for length in lengths):
        raise ValueError(
            f"config.json: short_factor and long_factor have lengths {lengths}, {rotary_dim // 2} pairs are rotated"
        )
    return DecoderConfig(
        family="phi3",
        **shape,
        **by_layer([LayerKind(values["sliding_window"], base, scaling)] * shape["num_layers"]),
        rotary_dim=None if rotary_dim == shape["head_dim"] else rotary_dim,
    )


def _rotary(hf: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    """Base and scaling. The first files call LongRoPE `su` or `yarn`; its switch is an attribute of the config."""
    parameters, where = rotary_parameters(hf)
    kind = parameters.get("rope_type") or parameters.get("type")
    if kind in ("su", "yarn", "longrope"):
        original = values["original_max_position_embeddings"]
        parameters = {**parameters, "rope_type": "longrope", "original_max_position_embeddings": original}
    elif kind not in (None, "default"):
        raise ValueError(f"config.json: {where} of type {kind!r} is not supported, only default, longrope")
    base = rotary_base(hf, 10_000.0)
    return read_rotary(parameters, where, base, hf["max_position_embeddings"], partial=True)


def tensors(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The tensors of a Phi 3 checkpoint, by their names in transformers."""
    attention, mlp = "model.layers.{layer}.self_attn", "model.layers.{layer}.mlp"
    return (
        *ENDS,
        Tensor(f"{attention}.qkv_proj.weight", "layers/attention/query/kernel", "(N+K+K H) D -> D N H", 0),
        Tensor(f"{attention}.qkv_proj.weight", "layers/attention/key/kernel", "(N+K+K H) D -> D K H", 1),
        Tensor(f"{attention}.qkv_proj.weight", "layers/attention/value/kernel", "(N+K+K H) D -> D K H", 2),
        Tensor(f"{attention}.o_proj.weight", "layers/attention/out/kernel", "D (N H) -> N H D"),
        Tensor(f"{mlp}.gate_up_proj.weight", "layers/mlp/gate/kernel", "F+F D -> D F", 0),
        Tensor(f"{mlp}.gate_up_proj.weight", "layers/mlp/up/kernel", "F+F D -> D F", 1),
        Tensor(f"{mlp}.down_proj.weight", "layers/mlp/down/kernel", "D F -> F D"),
        *PRE_NORMS,
        *unembedding(config),
    )


PHI3 = Family(
    name="phi3",
    architectures=("Phi3ForCausalLM",),
    model_types=("phi3",),
    config_from_hf=config_from_hf,
    tensors=tensors,
)
