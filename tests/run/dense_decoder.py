"""The reference: the decoder as its papers write it, one sequence at a time, in numpy float64.

Reads the Hugging Face tensors itself and shares no line with brb_jax: no packing, no sharing, no stacked layers.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer


class DenseDecoder:
    """A Llama or Gemma 3 directory as a function from ids to log-probabilities of the next id."""

    def __init__(self, folder: Path):
        self.config = json.loads((folder / "config.json").read_text())
        self.gemma = self.config["model_type"] == "gemma3_text"
        self.tensors = {n: t.astype(np.float64) for n, t in load_file(folder / "model.safetensors").items()}

    def log_probabilities(self, ids: np.ndarray) -> np.ndarray:
        """float64 `[len(ids), V]`."""
        c, table = self.config, self.tensors["model.embed_tokens.weight"]
        x = table[ids] * (np.sqrt(c["hidden_size"]) if self.gemma else 1.0)
        for layer in range(c["num_hidden_layers"]):
            if self.gemma:
                a = self._attention(layer, self._norm(x, f"model.layers.{layer}.input_layernorm"))
                x = x + self._norm(a, f"model.layers.{layer}.post_attention_layernorm")
                m = self._mlp(layer, self._norm(x, f"model.layers.{layer}.pre_feedforward_layernorm"))
                x = x + self._norm(m, f"model.layers.{layer}.post_feedforward_layernorm")
            else:
                x = x + self._attention(layer, self._norm(x, f"model.layers.{layer}.input_layernorm"))
                x = x + self._mlp(layer, self._norm(x, f"model.layers.{layer}.post_attention_layernorm"))
        logits = self._norm(x, "model.norm") @ table.T
        shifted = logits - logits.max(-1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))

    def option_score(self, ids: np.ndarray, scored_from: int) -> float:
        """Sum of log P(ids[i] | ids[:i]) over i ≥ scored_from."""
        log_probabilities = self.log_probabilities(ids[:-1])
        return float(sum(log_probabilities[i - 1, ids[i]] for i in range(scored_from, len(ids))))

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        scale = self.tensors[f"{name}.weight"] + (1.0 if self.gemma else 0.0)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self.config["rms_norm_eps"]) * scale

    def _attention(self, layer: int, x: np.ndarray) -> np.ndarray:
        c, prefix = self.config, f"model.layers.{layer}.self_attn"
        n, width = len(x), c["head_dim"]

        def heads(part: str) -> np.ndarray:
            return (x @ self.tensors[f"{prefix}.{part}_proj.weight"].T).reshape(n, -1, width)

        q, k, v = heads("q"), heads("k"), heads("v")
        local = self.gemma and c["layer_types"][layer] == "sliding_attention"
        if self.gemma:
            q, k = self._norm(q, f"{prefix}.q_norm"), self._norm(k, f"{prefix}.k_norm")
        base = c["rope_local_base_freq"] if local else c["rope_theta"]
        q, k = self._rotate(q, base), self._rotate(k, base)
        distance = np.arange(n)[:, None] - np.arange(n)
        visible = (distance >= 0) & (distance < (c["sliding_window"] if local else n))
        scale = (c["query_pre_attn_scalar"] if self.gemma else width) ** -0.5
        group = c["num_attention_heads"] // c["num_key_value_heads"]
        out = []
        for head in range(c["num_attention_heads"]):
            scores = np.where(visible, q[:, head] @ k[:, head // group].T * scale, -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            out.append(weights / weights.sum(-1, keepdims=True) @ v[:, head // group])
        return np.concatenate(out, -1) @ self.tensors[f"{prefix}.o_proj.weight"].T

    def _rotate(self, x: np.ndarray, base: float) -> np.ndarray:
        """Turns each pair (i, i + H/2) by position · base^(−2i/H), as a complex number."""
        half = x.shape[-1] // 2
        angles = np.arange(len(x))[:, None] * base ** (-np.arange(half) / half)
        turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)[:, None]
        return np.concatenate([turned.real, turned.imag], -1)

    def _mlp(self, layer: int, x: np.ndarray) -> np.ndarray:
        gate, up, down = (self.tensors[f"model.layers.{layer}.mlp.{p}_proj.weight"] for p in ("gate", "up", "down"))
        g = x @ gate.T
        if self.gemma:
            g = 0.5 * g * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3)))
        else:
            g = g / (1 + np.exp(-g))
        return (g * (x @ up.T)) @ down.T


def option_scores(decoder: DenseDecoder, tokenizer: Path, case: dict, bos: bool) -> list[float]:
    """Log-probability of every option of a raw case, each by a pass of its own.

    Here every option follows a space, and a token is scored if it covers a character behind the prompt.
    """
    backend = Tokenizer.from_file(str(tokenizer))
    prompt = case["context"] + case["query"]
    scores = []
    for option in case["options"]:
        encoding = backend.encode(f"{prompt} {option['text']}", add_special_tokens=False)
        ids = [backend.token_to_id("<s>")] * bos + encoding.ids
        scored = sum(end > len(prompt) for _, end in encoding.offsets)
        scores.append(decoder.option_score(np.asarray(ids), len(ids) - scored))
    return scores
