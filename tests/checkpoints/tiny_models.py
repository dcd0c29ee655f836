"""Tiny random models as Hugging Face stores them, and their parameters in canonical layout, written out by hand."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors.numpy import save_file

from brb_jax.checkpoints.streaming import nest, parameter_shapes

LAYERS, D, F, V, HEADS, KV_HEADS, H = 3, 24, 40, 50, 4, 2, 8  # HEADS · H is not D: no two axes can be mistaken.

_SIZES = {
    "vocab_size": V,
    "hidden_size": D,
    "intermediate_size": F,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": H,
    "max_position_embeddings": 64,
    "attention_bias": False,
}


@dataclasses.dataclass(frozen=True)
class TinyModel:
    """A `config.json` and tensors by name."""

    config: dict[str, Any]
    tensors: dict[str, np.ndarray]

    def save(self, folder: Path, shards: int = 1) -> None:
        """Writes the folder as `save_pretrained` would, in one file or in shards with an index."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(self.config))
        if shards == 1:
            save_file(self.tensors, folder / "model.safetensors")
            return
        places = {
            name: f"model-{i % shards + 1:05}-of-{shards:05}.safetensors" for i, name in enumerate(sorted(self.tensors))
        }
        for file in set(places.values()):
            save_file({name: self.tensors[name] for name in places if places[name] == file}, folder / file)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))


def llama(**changes: Any) -> TinyModel:
    """An untied Llama without biases, but for `changes` to its config."""
    config = {
        **_SIZES,
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "mlp_bias": False,
        "tie_word_embeddings": False,
        **changes,
    }
    return TinyModel(config, _random_tensors(config))


def gemma3(**changes: Any) -> TinyModel:
    """A tied Gemma 3, but for `changes` to its config."""
    config = {
        **_SIZES,
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "sliding_window": 4,
        "query_pre_attn_scalar": 8,
        "tie_word_embeddings": True,
        **changes,
    }
    return TinyModel(config, _random_tensors(config))


def canonical(model: TinyModel) -> dict[str, np.ndarray]:
    """The canonical parameters of a model, by path: plain transposes of each of its tensors, one by one."""
    tensors = model.tensors

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
    if model.config["model_type"] == "gemma3_text":
        expected["layers/post_attention_norm/scale"] = np.stack(layers("post_attention_layernorm.weight"))
        expected["layers/mlp_norm/scale"] = np.stack(layers("pre_feedforward_layernorm.weight"))
        expected["layers/post_mlp_norm/scale"] = np.stack(layers("post_feedforward_layernorm.weight"))
        expected[f"{attention}/query_norm/scale"] = np.stack(layers("self_attn.q_norm.weight"))
        expected[f"{attention}/key_norm/scale"] = np.stack(layers("self_attn.k_norm.weight"))
    else:
        expected["layers/mlp_norm/scale"] = np.stack(layers("post_attention_layernorm.weight"))
    if model.config["attention_bias"]:
        for name, part, count in (("query", "q", HEADS), ("key", "k", KV_HEADS), ("value", "v", KV_HEADS)):
            biases = layers(f"self_attn.{part}_proj.bias")
            expected[f"{attention}/{name}/bias"] = np.stack([bias.reshape(count, H) for bias in biases])
        expected[f"{attention}/out/bias"] = np.stack(layers("self_attn.o_proj.bias"))
    if model.config.get("mlp_bias"):
        for name in ("gate", "up", "down"):
            expected[f"{mlp}/{name}/bias"] = np.stack(layers(f"mlp.{name}_proj.bias"))
    if not model.config["tie_word_embeddings"]:
        expected["unembedding/kernel"] = tensors["lm_head.weight"].T
    return expected


def abstract_params(config, dtype=np.float32, sharding=None):
    """What a model of `config` asks a checkpoint for, all on one device unless a sharding is given."""
    sharding = sharding or jax.sharding.SingleDeviceSharding(jax.devices()[0])
    shapes = parameter_shapes(config)
    return nest({path: jax.ShapeDtypeStruct(shape, dtype, sharding=sharding) for path, shape in shapes.items()})


def _random_tensors(config: dict[str, Any]) -> dict[str, np.ndarray]:
    """Every tensor transformers would store, norms and biases random too: a mix-up would not show in ones and zeros."""
    gemma = config["model_type"] == "gemma3_text"
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (V, D), "model.norm.weight": (D,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (V, D)
    norms = ["input_layernorm", "post_attention_layernorm"]
    norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"] if gemma else []
    attention = {"q": (HEADS * H, D), "k": (KV_HEADS * H, D), "v": (KV_HEADS * H, D), "o": (D, HEADS * H)}
    mlp = {"gate": (F, D), "up": (F, D), "down": (D, F)}
    for i in range(LAYERS):
        layer = f"model.layers.{i}"
        shapes |= {f"{layer}.{norm}.weight": (D,) for norm in norms}
        shapes |= {f"{layer}.self_attn.{name}_norm.weight": (H,) for name in "qk" if gemma}
        shapes |= {f"{layer}.self_attn.{name}_proj.weight": shape for name, shape in attention.items()}
        shapes |= {f"{layer}.mlp.{name}_proj.weight": shape for name, shape in mlp.items()}
        if config["attention_bias"]:
            shapes |= {f"{layer}.self_attn.{name}_proj.bias": shape[:1] for name, shape in attention.items()}
        if config.get("mlp_bias"):
            shapes |= {f"{layer}.mlp.{name}_proj.bias": shape[:1] for name, shape in mlp.items()}
    random = np.random.default_rng(0)
    return {name: random.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}
