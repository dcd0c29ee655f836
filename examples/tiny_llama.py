"""What the three examples share: a tiny Llama's sizes, its rotary embedding, and random weights to run them with.

    python -m examples.tiny_llama        writes ./tiny_llama, a Hugging Face directory with random weights

brb_jax reads that directory by itself, too (`--model=tiny_llama`): the examples must give the same scores.
"""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

FOLDER = Path("tiny_llama")
VOCAB, WIDTH, LAYERS, HEADS, KV_HEADS, HEAD_WIDTH, MLP_WIDTH = 256, 64, 2, 4, 2, 16, 96
MAX_LENGTH, EPSILON, ROTARY_BASE = 2048, 1e-5, 10_000.0


def rotate(x: jax.Array, positions: jax.Array) -> jax.Array:
    """Rotary position embedding of `[batch, slots, heads, head width]`."""
    frequencies = ROTARY_BASE ** (-jnp.arange(HEAD_WIDTH // 2) / (HEAD_WIDTH // 2))
    angles = positions[:, :, None, None] * frequencies
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * jnp.cos(angles) - b * jnp.sin(angles), b * jnp.cos(angles) + a * jnp.sin(angles)], -1)


def attend(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array) -> jax.Array:
    """Attention of `[batch, slots, heads, head width]`; `mask[..., i, j]` says whether slot i sees slot j."""
    k, v = (jnp.repeat(x, HEADS // KV_HEADS, axis=2) for x in (k, v))
    scores = jnp.einsum("bihd,bjhd->bhij", q, k) * HEAD_WIDTH**-0.5
    weights = jax.nn.softmax(jnp.where(mask[:, None], scores, -1e30))
    return jnp.einsum("bhij,bjhd->bihd", weights, v)


def write(folder: Path) -> None:
    """Writes a random model and a tokenizer of single bytes."""
    rng = np.random.default_rng(0)

    def matrix(outputs: int, inputs: int) -> np.ndarray:
        return (rng.standard_normal((outputs, inputs)) / np.sqrt(inputs)).astype(np.float32)

    def scale() -> np.ndarray:
        return (1 + 0.1 * rng.standard_normal(WIDTH)).astype(np.float32)

    tensors = {"model.embed_tokens.weight": matrix(VOCAB, WIDTH), "model.norm.weight": scale()}
    for layer in range(LAYERS):
        for name, tensor in {
            "self_attn.q_proj": matrix(HEADS * HEAD_WIDTH, WIDTH),
            "self_attn.k_proj": matrix(KV_HEADS * HEAD_WIDTH, WIDTH),
            "self_attn.v_proj": matrix(KV_HEADS * HEAD_WIDTH, WIDTH),
            "self_attn.o_proj": matrix(WIDTH, HEADS * HEAD_WIDTH),
            "mlp.gate_proj": matrix(MLP_WIDTH, WIDTH),
            "mlp.up_proj": matrix(MLP_WIDTH, WIDTH),
            "mlp.down_proj": matrix(WIDTH, MLP_WIDTH),
            "input_layernorm": scale(),
            "post_attention_layernorm": scale(),
        }.items():
            tensors[f"model.layers.{layer}.{name}.weight"] = tensor
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": VOCAB,
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_WIDTH,
        "intermediate_size": MLP_WIDTH,
        "max_position_embeddings": MAX_LENGTH,
        "rms_norm_eps": EPSILON,
        "rope_theta": ROTARY_BASE,
        "tie_word_embeddings": True,
    }
    tokenizer = Tokenizer(models.BPE({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))


if __name__ == "__main__":
    write(FOLDER)
    print(f"written: {FOLDER}")
