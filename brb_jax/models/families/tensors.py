"""How a family's Hugging Face tensors become canonical parameters: names, shapes, layouts. Knows no files."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np

from brb_jax.models.config import DecoderConfig


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One Hugging Face tensor, or one a layer, and the canonical parameter it becomes.

    Attributes:
        name: The tensor's name; `{layer}` stands for the layer's number.
        path: The canonical path, levels joined by slashes.
        layout: Axes before and after in the package's shape letters, axes stored as one in parentheses:
            `(N H) D -> D N H` splits the first axis into heads and moves the model width to the front. The
            axes after gain a leading L if the name has a `{layer}`.
    """

    name: str
    path: str
    layout: str

    @property
    def stacked(self) -> bool:
        """Whether there is one such tensor a layer, stacked on a leading axis."""
        return "{layer}" in self.name

    def names(self, config: DecoderConfig) -> tuple[str, ...]:
        """The names of the tensors that make up the parameter, in the order they are stacked."""
        return tuple(self.name.format(layer=i) for i in range(config.num_layers if self.stacked else 1))

    def source_shape(self, config: DecoderConfig) -> tuple[int, ...]:
        """The shape of each tensor as Hugging Face stores it."""
        sizes = _sizes(config)
        return tuple(math.prod(sizes[letter] for letter in group) for group in self._stored_axes())

    def shape(self, config: DecoderConfig) -> tuple[int, ...]:
        """The canonical parameter's shape, layers included."""
        sizes = _sizes(config)
        axes = tuple(sizes[letter] for letter in self._canonical_axes())
        return (config.num_layers, *axes) if self.stacked else axes

    def to_canonical(self, array: np.ndarray, config: DecoderConfig) -> np.ndarray:
        """One stored tensor, of `source_shape`, in canonical layout without the layer axis; a view of it."""
        sizes = _sizes(config)
        stored = [letter for group in self._stored_axes() for letter in group]
        split = array.reshape([sizes[letter] for letter in stored])
        return split.transpose([stored.index(letter) for letter in self._canonical_axes()])

    def _stored_axes(self) -> list[str]:
        stored, _ = self.layout.split("->")
        return [group.replace(" ", "") for group in re.findall(r"\(([^)]*)\)|(\w)", stored) for group in group if group]

    def _canonical_axes(self) -> list[str]:
        return self.layout.split("->")[1].split()


def llama_like(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The tensors whose names every family descended from Llama shares: all but the layers' norms."""
    attention, mlp = "model.layers.{layer}.self_attn", "model.layers.{layer}.mlp"
    tensors = [
        Tensor("model.embed_tokens.weight", "embedder/table", "V D -> V D"),
        Tensor(f"{attention}.q_proj.weight", "layers/attention/query/kernel", "(N H) D -> D N H"),
        Tensor(f"{attention}.k_proj.weight", "layers/attention/key/kernel", "(K H) D -> D K H"),
        Tensor(f"{attention}.v_proj.weight", "layers/attention/value/kernel", "(K H) D -> D K H"),
        Tensor(f"{attention}.o_proj.weight", "layers/attention/out/kernel", "D (N H) -> N H D"),
        Tensor(f"{mlp}.gate_proj.weight", "layers/mlp/gate/kernel", "F D -> D F"),
        Tensor(f"{mlp}.up_proj.weight", "layers/mlp/up/kernel", "F D -> D F"),
        Tensor(f"{mlp}.down_proj.weight", "layers/mlp/down/kernel", "D F -> F D"),
        Tensor("model.norm.weight", "final_norm/scale", "D -> D"),
    ]
    if config.attention_bias:
        tensors += [
            Tensor(f"{attention}.q_proj.bias", "layers/attention/query/bias", "(N H) -> N H"),
            Tensor(f"{attention}.k_proj.bias", "layers/attention/key/bias", "(K H) -> K H"),
            Tensor(f"{attention}.v_proj.bias", "layers/attention/value/bias", "(K H) -> K H"),
            Tensor(f"{attention}.o_proj.bias", "layers/attention/out/bias", "D -> D"),
        ]
    if config.mlp_bias:
        tensors += [
            Tensor(f"{mlp}.gate_proj.bias", "layers/mlp/gate/bias", "F -> F"),
            Tensor(f"{mlp}.up_proj.bias", "layers/mlp/up/bias", "F -> F"),
            Tensor(f"{mlp}.down_proj.bias", "layers/mlp/down/bias", "D -> D"),
        ]
    if not config.tie_embeddings:
        tensors.append(Tensor("lm_head.weight", "unembedding/kernel", "V D -> D V"))
    return tuple(tensors)


def _sizes(config: DecoderConfig) -> dict[str, int]:
    return {
        "V": config.vocab_size,
        "D": config.d_model,
        "N": config.num_heads,
        "K": config.num_kv_heads,
        "H": config.head_dim,
        "F": config.d_mlp,
    }
