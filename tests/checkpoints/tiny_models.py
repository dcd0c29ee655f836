"""Tiny random models made by transformers, and their parameters in canonical layout, written out by hand."""

import jax
import numpy as np
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM

from brb_jax.checkpoints.streaming import nest, parameter_shapes

LAYERS, D, F, V, HEADS, KV_HEADS = 3, 24, 40, 50, 4, 2


def llama(head_dim: int = 8, **changes) -> LlamaForCausalLM:
    """A Llama whose head width times heads is not its model width, so no two axes can be mistaken."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=V,
        hidden_size=D,
        intermediate_size=F,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        head_dim=head_dim,
        max_position_embeddings=64,
        **changes,
    )
    return _randomised(LlamaForCausalLM(config))


def gemma3(**changes) -> Gemma3ForCausalLM:
    torch.manual_seed(1)
    config = Gemma3TextConfig(
        vocab_size=V,
        hidden_size=D,
        intermediate_size=F,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KV_HEADS,
        head_dim=8,
        max_position_embeddings=64,
        sliding_window=4,
        query_pre_attn_scalar=8,
        **changes,
    )
    return _randomised(Gemma3ForCausalLM(config))


def canonical(model) -> dict[str, np.ndarray]:
    """The canonical parameters of a model, by path: plain transposes of each of its tensors, one by one."""
    tensors = {name: tensor.detach().numpy() for name, tensor in model.named_parameters()}
    gemma = isinstance(model, Gemma3ForCausalLM)
    H = model.config.head_dim

    def layers(name):
        return [tensors[f"model.layers.{i}.{name}"] for i in range(LAYERS)]

    def heads(name, count):
        return np.stack([weight.reshape(count, H, D).transpose(2, 0, 1) for weight in layers(name)])

    attention, mlp = "layers/attention", "layers/mlp"
    expected = {
        "embedder/table": tensors["model.embed_tokens.weight"],
        f"{attention}/query/kernel": heads("self_attn.q_proj.weight", HEADS),
        f"{attention}/key/kernel": heads("self_attn.k_proj.weight", KV_HEADS),
        f"{attention}/value/kernel": heads("self_attn.v_proj.weight", KV_HEADS),
        f"{attention}/out/kernel": np.stack([w.T.reshape(HEADS, H, D) for w in layers("self_attn.o_proj.weight")]),
        f"{mlp}/gate/kernel": np.stack([w.T for w in layers("mlp.gate_proj.weight")]),
        f"{mlp}/up/kernel": np.stack([w.T for w in layers("mlp.up_proj.weight")]),
        f"{mlp}/down/kernel": np.stack([w.T for w in layers("mlp.down_proj.weight")]),
        "final_norm/scale": tensors["model.norm.weight"],
        "layers/attention_norm/scale": np.stack(layers("input_layernorm.weight")),
    }
    if gemma:
        expected["layers/post_attention_norm/scale"] = np.stack(layers("post_attention_layernorm.weight"))
        expected["layers/mlp_norm/scale"] = np.stack(layers("pre_feedforward_layernorm.weight"))
        expected["layers/post_mlp_norm/scale"] = np.stack(layers("post_feedforward_layernorm.weight"))
        expected[f"{attention}/query_norm/scale"] = np.stack(layers("self_attn.q_norm.weight"))
        expected[f"{attention}/key_norm/scale"] = np.stack(layers("self_attn.k_norm.weight"))
    else:
        expected["layers/mlp_norm/scale"] = np.stack(layers("post_attention_layernorm.weight"))
    if model.config.attention_bias:
        for name, part, count in (("query", "q", HEADS), ("key", "k", KV_HEADS), ("value", "v", KV_HEADS)):
            biases = layers(f"self_attn.{part}_proj.bias")
            expected[f"{attention}/{name}/bias"] = np.stack([bias.reshape(count, H) for bias in biases])
        expected[f"{attention}/out/bias"] = np.stack(layers("self_attn.o_proj.bias"))
    if getattr(model.config, "mlp_bias", False):
        for name in ("gate", "up", "down"):
            expected[f"{mlp}/{name}/bias"] = np.stack(layers(f"mlp.{name}_proj.bias"))
    if not model.config.tie_word_embeddings:
        expected["unembedding/kernel"] = tensors["lm_head.weight"].T
    return expected


def abstract_params(config, dtype=np.float32, sharding=None):
    """What a model of `config` asks a checkpoint for, all on one device unless a sharding is given."""
    sharding = sharding or jax.sharding.SingleDeviceSharding(jax.devices()[0])
    shapes = parameter_shapes(config)
    return nest({path: jax.ShapeDtypeStruct(shape, dtype, sharding=sharding) for path, shape in shapes.items()})


def _randomised(model):
    """Norm scales start at one and biases at zero, where a mix-up would not show."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return model.to(torch.float32)
