"""Tiny random models, written as Hugging Face directories without torch: what whole runs are tested on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

D, F, HEADS, KV_HEADS, H, V = 32, 48, 4, 2, 8, 320
WINDOW = 16

_CORPUS = [
    "ravov: nest wool shoe peak -> shoe peak nest wool\nFrom now on, nefoj: swap the first word.\n8 2 0 1 -> 1 0 2 8\n"
]

_SIZES = {
    "vocab_size": V,
    "hidden_size": D,
    "intermediate_size": F,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "head_dim": H,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
}


def write_llama(folder: Path, seed: int = 0, vocab_size: int = V, nan_in: str | None = None) -> Path:
    """Two layers; its tokenizer adds nothing.

    Args:
        folder: Is created.
        seed: Of the parameters.
        vocab_size: Rows of the embedding table.
        nan_in: A tensor whose first number becomes NaN.
    """
    layers = 2
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": layers,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        **_SIZES,
        "vocab_size": vocab_size,
    }
    norms = {"input_layernorm": D, "post_attention_layernorm": D}
    tensors = _tensors(layers, norms, seed, norm_mean=1.0, rows=vocab_size)
    if nan_in is not None:
        tensors[nan_in].flat[0] = np.nan
    return _write(folder, config, tensors, _tokenizer())


def write_gemma3(folder: Path, nested_limit: int | None = None) -> Path:
    """Two layers that see the last 16 tokens and one that sees all; its tokenizer puts BOS in front.

    Args:
        folder: Is created.
        nested_limit: Writes the text part of a checkpoint with images, whose nested config alone tells this limit.
    """
    config = {
        "architectures": ["Gemma3ForCausalLM"],
        "model_type": "gemma3_text",
        "num_hidden_layers": 3,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "sliding_window": WINDOW,
        "query_pre_attn_scalar": 12,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000.0,
        "rope_local_base_freq": 10_000.0,
        "hidden_activation": "gelu_pytorch_tanh",
        **_SIZES,
    }
    norms = {
        "input_layernorm": D,
        "post_attention_layernorm": D,
        "pre_feedforward_layernorm": D,
        "post_feedforward_layernorm": D,
        "self_attn.q_norm": H,
        "self_attn.k_norm": H,
    }
    tokenizer = _tokenizer()
    bos = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", bos)])
    tensors = _tensors(3, norms, seed=1, norm_mean=0.0, rows=V)
    if nested_limit is not None:
        text = {**config, "max_position_embeddings": nested_limit}
        config = {
            "architectures": ["Gemma3ForConditionalGeneration"],
            "model_type": "gemma3",
            "text_config": text,
            "tie_word_embeddings": True,
        }
        tensors = {f"language_model.{name}": tensor for name, tensor in tensors.items()}
    return _write(folder, config, tensors, tokenizer)


def _tensors(layers: int, norms: dict[str, int], seed: int, norm_mean: float, rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def matrix(outputs: int, inputs: int) -> np.ndarray:
        return (rng.standard_normal((outputs, inputs)) / np.sqrt(inputs)).astype(np.float32)

    def scale(width: int) -> np.ndarray:
        return (norm_mean + 0.2 * rng.standard_normal(width)).astype(np.float32)

    tensors = {"model.embed_tokens.weight": matrix(rows, D), "model.norm.weight": scale(D)}
    for layer in range(layers):
        parts = {
            "self_attn.q_proj": matrix(HEADS * H, D),
            "self_attn.k_proj": matrix(KV_HEADS * H, D),
            "self_attn.v_proj": matrix(KV_HEADS * H, D),
            "self_attn.o_proj": matrix(D, HEADS * H),
            "mlp.gate_proj": matrix(F, D),
            "mlp.up_proj": matrix(F, D),
            "mlp.down_proj": matrix(D, F),
            **{name: scale(width) for name, width in norms.items()},
        }
        tensors |= {f"model.layers.{layer}.{name}.weight": tensor for name, tensor in parts.items()}
    return tensors


def _tokenizer() -> Tokenizer:
    """Byte-level BPE of fewer ids than the models have rows: the rows beyond are padding."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=V - 20,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_CORPUS * 3, trainer)
    return tokenizer


def _write(folder: Path, config: dict[str, Any], tensors: dict[str, np.ndarray], tokenizer: Tokenizer) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"))
    # transformers writes 1e30 where no limit is known: it must not be taken for one.
    settings = {
        "model_max_length": 10**30,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder
