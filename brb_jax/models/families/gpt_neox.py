"""GPT-NeoX and Pythia: attention and MLP side by side, layer norms, biases, rotary positions on part of a head."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.families.attributes import SIZES, activation, positive, refuse_others, require_value, sizes
from brb_jax.models.families.family import Family
from brb_jax.models.families.layers import by_layer
from brb_jax.models.families.rotary import partial_rotary, read_rotary, rotary_base, rotary_parameters
from brb_jax.models.families.tensors import Tensor, layer_norm, unembedding

_UNDERSTOOD = (SIZES - {"head_dim", "num_key_value_heads"}) | {
    "attention_bias",
    "hidden_act",
    "is_decoder",
    "layer_norm_eps",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "rotary_emb_base",
    "rotary_pct",
    "tie_word_embeddings",
    "use_parallel_residual",
}


def config_from_hf(hf: Mapping[str, Any]) -> DecoderConfig:
    """Reads a GPT-NeoX `config.json`, written by transformers 4 or 5.

    Raises:
        ValueError: An attribute is missing, unknown or has an unsupported value; the message names it.
    """
    from transformers import GPTNeoXConfig  # Imported late: it takes seconds.

    defaults = GPTNeoXConfig().to_dict()
    refuse_others(hf, _UNDERSTOOD, defaults)
    shape, values = sizes(hf), {**defaults, **hf}
    parameters, where = rotary_parameters(hf)
    base = rotary_base(hf, GPTNeoXConfig.default_theta, "rotary_emb_base")
    # transformers 5 writes this name too, and reads the other one alone.
    require_value(hf, "rope_theta", base)
    base, scaling = read_rotary(parameters, where, base, shape["max_positions"], partial=True)
    rotary_dim = partial_rotary(hf, shape["head_dim"], 0.25)
    return DecoderConfig(
        family="gpt_neox",
        **shape,
        **by_layer([LayerKind(None, base, scaling)] * shape["num_layers"]),
        activation=activation(values["hidden_act"]),
        gated_mlp=False,
        norm="layer",
        norm_eps=positive(values, "layer_norm_eps"),
        parallel_residual=values["use_parallel_residual"],
        attention_scale=shape["head_dim"] ** -0.5,
        attention_bias=values["attention_bias"],
        mlp_bias=True,
        rotary_dim=None if rotary_dim == shape["head_dim"] else rotary_dim,
        tie_embeddings=values["tie_word_embeddings"],
    )


def tensors(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The tensors of a GPT-NeoX checkpoint. Each head's query, key and value lie together."""
    attention, mlp = "gpt_neox.layers.{layer}.attention", "gpt_neox.layers.{layer}.mlp"
    names = ("query", "key", "value")
    biases = [
        *(
            Tensor(f"{attention}.query_key_value.bias", f"layers/attention/{name}/bias", "(N H+H+H) -> N H", i)
            for i, name in enumerate(names)
        ),
        Tensor(f"{attention}.dense.bias", "layers/attention/out/bias", "D -> D"),
    ]
    return (
        Tensor("gpt_neox.embed_in.weight", "embedder/table", "V D -> V D"),
        *(
            Tensor(f"{attention}.query_key_value.weight", f"layers/attention/{name}/kernel", "(N H+H+H) D -> D N H", i)
            for i, name in enumerate(names)
        ),
        Tensor(f"{attention}.dense.weight", "layers/attention/out/kernel", "D (N H) -> N H D"),
        *(biases if config.attention_bias else ()),
        Tensor(f"{mlp}.dense_h_to_4h.weight", "layers/mlp/up/kernel", "F D -> D F"),
        Tensor(f"{mlp}.dense_h_to_4h.bias", "layers/mlp/up/bias", "F -> F"),
        Tensor(f"{mlp}.dense_4h_to_h.weight", "layers/mlp/down/kernel", "D F -> F D"),
        Tensor(f"{mlp}.dense_4h_to_h.bias", "layers/mlp/down/bias", "D -> D"),
        *layer_norm("gpt_neox.layers.{layer}.input_layernorm", "layers/attention_norm"),
        *layer_norm("gpt_neox.layers.{layer}.post_attention_layernorm", "layers/mlp_norm"),
        *layer_norm("gpt_neox.final_layer_norm", "final_norm"),
        *unembedding(config),
    )


def canonical_name(name: str) -> str | None:
    """`name`, the output matrix by its newer name; None for what follows from the config and old checkpoints store."""
    if re.fullmatch(r"gpt_neox\.layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)", name):
        return None
    return "lm_head.weight" if name == "embed_out.weight" else name


GPT_NEOX = Family(
    name="gpt_neox",
    architectures=("GPTNeoXForCausalLM",),
    model_types=("gpt_neox",),
    config_from_hf=config_from_hf,
    tensors=tensors,
    canonical_name=canonical_name,
)
