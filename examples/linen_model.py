"""A Flax Linen model with an Orbax checkpoint of its own, several texts packed in a row.

python -m examples.tiny_llama        weights and tokenizer
python -m examples.linen_model       saves them as a training run would: parameters, optimizer state, step
python -m brb_jax.main --model=examples.linen_model:build --data=… --out=…
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import linen as nn
from jax.sharding import PartitionSpec
from safetensors.numpy import load_file

from brb_jax.models.own_model import OwnModel
from examples import tiny_llama as tiny

CHECKPOINT = tiny.FOLDER / "linen"


class Layer(nn.Module):
    @nn.compact
    def __call__(self, x, positions, mask):
        def project(heads, name):
            return nn.DenseGeneral((heads, tiny.HEAD_WIDTH), use_bias=False, name=name)

        h = nn.RMSNorm(tiny.EPSILON, name="attention_norm")(x)
        q, k, v = project(tiny.HEADS, "q")(h), project(tiny.KV_HEADS, "k")(h), project(tiny.KV_HEADS, "v")(h)
        h = tiny.attend(tiny.rotate(q, positions), tiny.rotate(k, positions), v, mask)
        x = x + nn.DenseGeneral(tiny.WIDTH, axis=(-2, -1), use_bias=False, name="o")(h)
        h = nn.RMSNorm(tiny.EPSILON, name="mlp_norm")(x)
        h = nn.silu(nn.Dense(tiny.MLP_WIDTH, False, name="gate")(h)) * nn.Dense(tiny.MLP_WIDTH, False, name="up")(h)
        return x + nn.Dense(tiny.WIDTH, False, name="down")(h)


class Decoder(nn.Module):
    def setup(self):
        self.embed = nn.Embed(tiny.VOCAB, tiny.WIDTH)
        self.layers = [Layer() for _ in range(tiny.LAYERS)]
        self.norm = nn.RMSNorm(tiny.EPSILON)

    def __call__(self, tokens, positions, segment_ids):
        causal = jnp.tril(jnp.ones((tokens.shape[1], tokens.shape[1]), bool))
        mask = causal & (segment_ids[:, :, None] == segment_ids[:, None, :])
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, positions, mask)
        return self.norm(x)

    def logits(self, hidden):
        return self.embed.attend(hidden)


def build() -> OwnModel:
    model = Decoder()
    slots = jax.ShapeDtypeStruct((1, 8), jnp.int32)
    return OwnModel(
        tokenizer=tiny.FOLDER,
        vocab_size=tiny.VOCAB,
        max_length=tiny.MAX_LENGTH,
        parameters=jax.eval_shape(model.init, jax.random.key(0), slots, slots, slots)["params"],
        checkpoint=CHECKPOINT,
        checkpoint_key="params",
        sharding=[
            ("(q|k|v)/kernel", PartitionSpec("fsdp", "tensor")),
            ("(gate|up)/kernel", PartitionSpec("fsdp", "tensor")),
            ("(o|down)/kernel", PartitionSpec("tensor")),
            ("embedding", PartitionSpec("tensor", "fsdp")),
        ],
        packed=lambda parameters, *inputs: model.apply({"params": parameters}, *inputs),
        unembed=lambda parameters, hidden: model.apply({"params": parameters}, hidden, method="logits"),
    )


def parameters_of(tensors: dict[str, np.ndarray]) -> dict:
    """The Hugging Face tensors as this model's parameters."""
    shapes = {"q": (-1, tiny.HEADS, tiny.HEAD_WIDTH), "o": (tiny.HEADS, tiny.HEAD_WIDTH, -1)}
    shapes |= dict.fromkeys("kv", (-1, tiny.KV_HEADS, tiny.HEAD_WIDTH))
    parameters = {"embed": {"embedding": tensors["model.embed_tokens.weight"]}}
    parameters["norm"] = {"scale": tensors["model.norm.weight"]}
    for i in range(tiny.LAYERS):
        prefix = f"model.layers.{i}"
        layer = {n: {"kernel": tensors[f"{prefix}.self_attn.{n}_proj.weight"].T.reshape(shapes[n])} for n in "qkvo"}
        layer |= {n: {"kernel": tensors[f"{prefix}.mlp.{n}_proj.weight"].T} for n in ("gate", "up", "down")}
        layer["attention_norm"] = {"scale": tensors[f"{prefix}.input_layernorm.weight"]}
        layer["mlp_norm"] = {"scale": tensors[f"{prefix}.post_attention_layernorm.weight"]}
        parameters[f"layers_{i}"] = layer
    return parameters


def save() -> None:
    """What a training run leaves behind: of its three parts, brb_jax reads `params` alone."""
    parameters = parameters_of(load_file(tiny.FOLDER / "model.safetensors"))
    state = {"params": parameters, "opt_state": optax.adam(1e-3).init(parameters), "step": 1000}
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(CHECKPOINT.absolute(), state, force=True)


if __name__ == "__main__":
    save()
    print(f"written: {CHECKPOINT}")
