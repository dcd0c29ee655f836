"""A Flax NNX model that takes trees: what several options, or several cases, share is computed once.

python -m examples.tiny_llama        weights and tokenizer
python -m brb_jax.main --model=examples.nnx_model:build --data=… --out=…
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from safetensors.numpy import load_file

from brb_jax.models.own_model import OwnModel
from examples import tiny_llama as tiny


def linear(inputs: int, outputs: int, rngs: nnx.Rngs) -> nnx.Linear:
    return nnx.Linear(inputs, outputs, use_bias=False, rngs=rngs)


class Layer(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.input_layernorm = nnx.RMSNorm(tiny.WIDTH, epsilon=tiny.EPSILON, rngs=rngs)
        self.q_proj = linear(tiny.WIDTH, tiny.HEADS * tiny.HEAD_WIDTH, rngs)
        self.k_proj = linear(tiny.WIDTH, tiny.KV_HEADS * tiny.HEAD_WIDTH, rngs)
        self.v_proj = linear(tiny.WIDTH, tiny.KV_HEADS * tiny.HEAD_WIDTH, rngs)
        self.o_proj = linear(tiny.HEADS * tiny.HEAD_WIDTH, tiny.WIDTH, rngs)
        self.post_attention_layernorm = nnx.RMSNorm(tiny.WIDTH, epsilon=tiny.EPSILON, rngs=rngs)
        self.gate_proj = linear(tiny.WIDTH, tiny.MLP_WIDTH, rngs)
        self.up_proj = linear(tiny.WIDTH, tiny.MLP_WIDTH, rngs)
        self.down_proj = linear(tiny.MLP_WIDTH, tiny.WIDTH, rngs)

    def __call__(self, x, positions, mask):
        h = self.input_layernorm(x)
        q, k, v = (p(h).reshape(*h.shape[:2], -1, tiny.HEAD_WIDTH) for p in (self.q_proj, self.k_proj, self.v_proj))
        h = tiny.attend(tiny.rotate(q, positions), tiny.rotate(k, positions), v, mask)
        x = x + self.o_proj(h.reshape(*h.shape[:2], -1))
        h = self.post_attention_layernorm(x)
        return x + self.down_proj(nnx.silu(self.gate_proj(h)) * self.up_proj(h))


class Decoder(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.embed_tokens = nnx.Embed(tiny.VOCAB, tiny.WIDTH, rngs=rngs)
        self.layers = nnx.List([Layer(rngs) for _ in range(tiny.LAYERS)])
        self.norm = nnx.RMSNorm(tiny.WIDTH, epsilon=tiny.EPSILON, rngs=rngs)

    def __call__(self, tokens, positions, subtree_end):
        slots = jnp.arange(tokens.shape[1])
        mask = (slots <= slots[:, None]) & (slots[:, None] < subtree_end[:, None, :])
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, positions, mask)
        return self.norm(x)

    def logits(self, hidden):
        return self.embed_tokens.attend(hidden)


def build() -> OwnModel:
    model = nnx.eval_shape(lambda: Decoder(nnx.Rngs(0)))
    graph, shapes = nnx.split(model, nnx.Param)
    return OwnModel(
        tokenizer=tiny.FOLDER,
        vocab_size=tiny.VOCAB,
        max_length=tiny.MAX_LENGTH,
        parameters=loaded(shapes),
        tree=lambda parameters, *inputs: nnx.merge(graph, parameters)(*inputs),
        unembed=lambda parameters, hidden: nnx.merge(graph, parameters).logits(hidden),
    )


def loaded(shapes: nnx.State) -> nnx.State:
    """The Hugging Face tensors in place of the shapes; their names are those of the attributes above, nearly."""
    tensors = load_file(tiny.FOLDER / "model.safetensors")
    named = {
        tuple(part for part in name.split(".") if part not in ("model", "self_attn", "mlp")): tensor
        for name, tensor in tensors.items()
    }

    def find(path: tuple, shape: jax.ShapeDtypeStruct) -> jax.Array:
        *module, kind = (str(getattr(key, "key", getattr(key, "idx", None))) for key in path[:-1])
        tensor = named[*module, "weight"]
        return jnp.asarray(tensor.T if kind == "kernel" else tensor, shape.dtype)

    return jax.tree_util.tree_map_with_path(find, shapes)
