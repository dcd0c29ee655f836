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
            axes after gain a leading L if the name has a `{layer}`. A sum is an axis that holds several
            parameters one behind another: `(N+K+K H) D -> D K H` for the heads of queries, keys and values.
        piece: Which of a sum's parts is this parameter's.
    """

    name: str
    path: str
    layout: str
    piece: int = 0

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
        return tuple(math.prod(sum(_parts(axis, sizes)) for axis in group) for group in self._stored_axes())

    def shape(self, config: DecoderConfig) -> tuple[int, ...]:
        """The canonical parameter's shape, layers included."""
        sizes = _sizes(config)
        axes = tuple(sizes[letter] for letter in self._canonical_axes())
        return (config.num_layers, *axes) if self.stacked else axes

    def to_canonical(self, array: np.ndarray, config: DecoderConfig) -> np.ndarray:
        """One stored tensor, of `source_shape`, in canonical layout without the layer axis; a view of it."""
        sizes = _sizes(config)
        stored = [axis for group in self._stored_axes() for axis in group]
        split = array.reshape([sum(_parts(axis, sizes)) for axis in stored])
        for i, axis in enumerate(stored):
            if "+" in axis:
                parts = _parts(axis, sizes)
                start = sum(parts[: self.piece])
                split = split[(slice(None),) * i + (slice(start, start + parts[self.piece]),)]
                stored[i] = axis.split("+")[self.piece]
        return split.transpose([stored.index(letter) for letter in self._canonical_axes()])

    def _stored_axes(self) -> list[list[str]]:
        stored, _ = self.layout.split("->")
        return [(grouped or single).split() for grouped, single in re.findall(r"\(([^)]*)\)|(\S+)", stored)]

    def _canonical_axes(self) -> list[str]:
        return self.layout.split("->")[1].split()


# The two ends of a family descended from Llama, but for the output matrix.
ENDS = (
    Tensor("model.embed_tokens.weight", "embedder/table", "V D -> V D"),
    Tensor("model.norm.weight", "final_norm/scale", "D -> D"),
)

# The layers' norms of such a family: before attention and MLP, behind them, or both. One name means two things.
PRE_NORMS = (
    Tensor("model.layers.{layer}.input_layernorm.weight", "layers/attention_norm/scale", "D -> D"),
    Tensor("model.layers.{layer}.post_attention_layernorm.weight", "layers/mlp_norm/scale", "D -> D"),
)
POST_NORMS = (
    Tensor("model.layers.{layer}.post_attention_layernorm.weight", "layers/post_attention_norm/scale", "D -> D"),
    Tensor("model.layers.{layer}.post_feedforward_layernorm.weight", "layers/post_mlp_norm/scale", "D -> D"),
)
PRE_AND_POST_NORMS = (
    Tensor("model.layers.{layer}.input_layernorm.weight", "layers/attention_norm/scale", "D -> D"),
    Tensor("model.layers.{layer}.pre_feedforward_layernorm.weight", "layers/mlp_norm/scale", "D -> D"),
    *POST_NORMS,
)


def layer_norm(name: str, path: str) -> tuple[Tensor, Tensor]:
    """The scale and bias of a layer norm."""
    return Tensor(f"{name}.weight", f"{path}/scale", "D -> D"), Tensor(f"{name}.bias", f"{path}/bias", "D -> D")


def unembedding(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The output matrix, unless it is the embedding table."""
    return () if config.tie_embeddings else (Tensor("lm_head.weight", "unembedding/kernel", "V D -> D V"),)


def llama_like(config: DecoderConfig, norms: tuple[Tensor, ...] = PRE_NORMS) -> tuple[Tensor, ...]:
    """The tensors of a family descended from Llama, by the names they all share.

    Args:
        config: Says which of them there are.
        norms: Those around attention and MLP, in which the families differ.
    """
    attention, mlp = "model.layers.{layer}.self_attn", "model.layers.{layer}.mlp"
    tensors = [
        *ENDS,
        Tensor(f"{attention}.q_proj.weight", "layers/attention/query/kernel", "(N H) D -> D N H"),
        Tensor(f"{attention}.k_proj.weight", "layers/attention/key/kernel", "(K H) D -> D K H"),
        Tensor(f"{attention}.v_proj.weight", "layers/attention/value/kernel", "(K H) D -> D K H"),
        Tensor(f"{attention}.o_proj.weight", "layers/attention/out/kernel", "D (N H) -> N H D"),
        Tensor(f"{mlp}.gate_proj.weight", "layers/mlp/gate/kernel", "F D -> D F"),
        Tensor(f"{mlp}.up_proj.weight", "layers/mlp/up/kernel", "F D -> D F"),
        Tensor(f"{mlp}.down_proj.weight", "layers/mlp/down/kernel", "D F -> F D"),
    ]
    if config.attention_bias:
        tensors += [
            Tensor(f"{attention}.q_proj.bias", "layers/attention/query/bias", "(N H) -> N H"),
            Tensor(f"{attention}.k_proj.bias", "layers/attention/key/bias", "(K H) -> K H"),
            Tensor(f"{attention}.v_proj.bias", "layers/attention/value/bias", "(K H) -> K H"),
        ]
    if config.attention_bias is True:
        tensors.append(Tensor(f"{attention}.o_proj.bias", "layers/attention/out/bias", "D -> D"))
    if config.qk_norm:
        layouts = ("(N H) -> N H", "(K H) -> K H") if config.qk_norm == "joint" else ("H -> H", "H -> H")
        tensors += [
            Tensor(f"{attention}.q_norm.weight", "layers/attention/query_norm/scale", layouts[0]),
            Tensor(f"{attention}.k_norm.weight", "layers/attention/key_norm/scale", layouts[1]),
        ]
    if config.mlp_bias:
        tensors += [
            Tensor(f"{mlp}.gate_proj.bias", "layers/mlp/gate/bias", "F -> F"),
            Tensor(f"{mlp}.up_proj.bias", "layers/mlp/up/bias", "F -> F"),
            Tensor(f"{mlp}.down_proj.bias", "layers/mlp/down/bias", "D -> D"),
        ]
    return (*tensors, *norms, *unembedding(config))


def _parts(axis: str, sizes: dict[str, int]) -> list[int]:
    """The sizes of an axis' parts: of one letter, or of a sum of letters."""
    return [sizes[letter] for letter in axis.split("+")]


def _sizes(config: DecoderConfig) -> dict[str, int]:
    return {
        "V": config.vocab_size,
        "D": config.d_model,
        "N": config.num_heads,
        "K": config.num_kv_heads,
        "H": config.head_dim,
        "F": config.d_mlp,
        "P": config.max_positions,
    }
