"""GPT-2: learned positions, layer norms and biases everywhere, an MLP without a gate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import activation, positive, refuse_others, require_sizes, require_value
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.tensors import Tensor, layer_norm, unembedding

# Dropout rates, what a summary of a text is made of, a second name of the length: no part of a forward pass.
_NO_PART = frozenset(
    {
        "attn_pdrop",
        "embd_pdrop",
        "n_ctx",
        "n_special",
        "predict_special_tokens",
        "resid_pdrop",
        "summary_activation",
        "summary_first_dropout",
        "summary_proj_to_labels",
        "summary_type",
        "summary_use_proj",
        "task_specific_params",
    }
)
_UNDERSTOOD = _NO_PART | {
    "activation_function",
    "add_cross_attention",
    "layer_norm_epsilon",
    "n_embd",
    "n_head",
    "n_inner",
    "n_layer",
    "n_positions",
    "reorder_and_upcast_attn",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "tie_word_embeddings",
    "vocab_size",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a GPT-2 `config.json`, written by transformers 4 or 5.

    `reorder_and_upcast_attn` is about half precision; scores are float32 here in any case.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import GPT2Config  # Imported late: it takes seconds.

    defaults = GPT2Config().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    require_sizes(hf, "vocab_size", "n_embd", "n_head", "n_layer", "n_positions")
    require_value(hf, "scale_attn_by_inverse_layer_idx", False)
    require_value(hf, "add_cross_attention", False)
    values = {**defaults, **hf}
    if values["n_inner"] is not None:
        require_sizes(values, "n_inner")
    width, heads = hf["n_embd"], hf["n_head"]
    return DecoderConfig(
        family="gpt2",
        vocab_size=hf["vocab_size"],
        num_layers=hf["n_layer"],
        d_model=width,
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=width // heads,
        d_mlp=4 * width if values["n_inner"] is None else values["n_inner"],
        max_positions=hf["n_positions"],
        **by_layer([LayerKind(window=None, rotary_base=None)] * hf["n_layer"]),
        activation=activation(values["activation_function"]),
        gated_mlp=False,
        norm="layer",
        norm_eps=positive(values, "layer_norm_epsilon"),
        attention_scale=(width // heads) ** -0.5 if values["scale_attn_weights"] else 1.0,
        attention_bias=True,
        mlp_bias=True,
        learned_positions=True,
        tie_embeddings=values["tie_word_embeddings"],
    )


def tensors(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The tensors of a GPT-2 checkpoint, by their names in OpenAI's, which has no `transformer.` before them.

    Its projections are stored as inputs × outputs.
    """
    attention, mlp = "h.{layer}.attn", "h.{layer}.mlp"
    fused = [
        Tensor(f"{attention}.c_attn.{kind}", f"layers/attention/{name}/{parameter}", layout, piece)
        for kind, parameter, layout in (
            ("weight", "kernel", "D (N+N+N H) -> D N H"),
            ("bias", "bias", "(N+N+N H) -> N H"),
        )
        for piece, name in enumerate(("query", "key", "value"))
    ]
    return (
        Tensor("wte.weight", "embedder/table", "V D -> V D"),
        Tensor("wpe.weight", "position_embedder/table", "P D -> P D"),
        *fused,
        Tensor(f"{attention}.c_proj.weight", "layers/attention/out/kernel", "(N H) D -> N H D"),
        Tensor(f"{attention}.c_proj.bias", "layers/attention/out/bias", "D -> D"),
        Tensor(f"{mlp}.c_fc.weight", "layers/mlp/up/kernel", "D F -> D F"),
        Tensor(f"{mlp}.c_fc.bias", "layers/mlp/up/bias", "F -> F"),
        Tensor(f"{mlp}.c_proj.weight", "layers/mlp/down/kernel", "F D -> F D"),
        Tensor(f"{mlp}.c_proj.bias", "layers/mlp/down/bias", "D -> D"),
        *layer_norm("h.{layer}.ln_1", "layers/attention_norm"),
        *layer_norm("h.{layer}.ln_2", "layers/mlp_norm"),
        *layer_norm("ln_f", "final_norm"),
        *unembedding(config),
    )


def canonical_name(name: str) -> str | None:
    """`name` without `transformer.`; None for causal masks, which old checkpoints store."""
    name = name.removeprefix("transformer.")
    return None if re.fullmatch(r"h\.\d+\.attn\.(masked_)?bias", name) else name


GPT2 = Family(
    name="gpt2",
    architectures=("GPT2LMHeadModel",),
    model_types=("gpt2",),
    config_from_hf=config_from_hf,
    tensors=tensors,
    canonical_name=canonical_name,
)
