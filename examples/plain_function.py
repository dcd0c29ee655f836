"""A plain function of arrays, one text a row, that returns logits: the least there is to write.

python -m examples.tiny_llama        weights and tokenizer
python -m brb_jax.main --model=examples.plain_function:build --data=… --out=…
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from safetensors.numpy import load_file

from brb_jax.models.own_model import OwnModel
from examples import tiny_llama as tiny


def build() -> OwnModel:
    return OwnModel(
        tokenizer=tiny.FOLDER,
        vocab_size=tiny.VOCAB,
        max_length=tiny.MAX_LENGTH,
        parameters=load_file(tiny.FOLDER / "model.safetensors"),
        plain=logits,
    )


def logits(parameters: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
    """The next token's logits at every slot, `[batch, slots, vocabulary]`."""
    slots = jnp.arange(tokens.shape[1])
    positions, causal = slots[None], (slots[:, None] >= slots)[None]
    x = parameters["model.embed_tokens.weight"][tokens]
    for i in range(tiny.LAYERS):
        layer = {name.split(".")[-2]: value for name, value in parameters.items() if f"layers.{i}." in name}
        h = norm(x, layer["input_layernorm"])
        q, k, v = ((h @ layer[n].T).reshape(*h.shape[:2], -1, tiny.HEAD_WIDTH) for n in ("q_proj", "k_proj", "v_proj"))
        h = tiny.attend(tiny.rotate(q, positions), tiny.rotate(k, positions), v, causal)
        x = x + h.reshape(*h.shape[:2], -1) @ layer["o_proj"].T
        h = norm(x, layer["post_attention_layernorm"])
        x = x + (jax.nn.silu(h @ layer["gate_proj"].T) * (h @ layer["up_proj"].T)) @ layer["down_proj"].T
    return norm(x, parameters["model.norm.weight"]) @ parameters["model.embed_tokens.weight"].T


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    return x / jnp.sqrt(jnp.mean(x**2, axis=-1, keepdims=True) + tiny.EPSILON) * scale
