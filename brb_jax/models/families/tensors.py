"""How stored tensors become canonical parameters: names, shapes, layouts. Knows no files."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Sequence

import numpy as np

from brb_jax.models.config import DecoderConfig, Stack


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One stored tensor, or one a layer, and the canonical parameter it becomes, or the layers of it.

    Attributes:
        name: The tensor's name; `{layer}` stands for the layer's number, `{expert}` for the expert's.
        path: The canonical path, levels joined by slashes.
        layout: Axes before and after in the package's shape letters, axes that are one in parentheses:
            `(N H) D -> D N H` splits the first axis into heads and moves the model width to the front. The
            axes after gain a leading L if the name has a `{layer}`, then an E if it has an `{expert}`. A sum is
            an axis that holds several parameters one behind another: `(N+K+K H) D -> D K H` for the heads of
            queries, keys and values. In `D (F 1+1) -> D F` they take turns; an axis 1 is left out. Rotary pairs
            are stored next to each other in `D N (h 2) -> D N (2 h)`, where h is half a head.
        piece: Which of a sum's parts is this parameter's.
        layers: The layers it is one of, or holds on its L axis; None for all.
        float32: Whether the parameter is float32 whatever the dtype of the others.
        times, plus: The parameter is the stored value times the one, plus the other.
    """

    name: str
    path: str
    layout: str
    piece: int = 0
    layers: range | None = None
    float32: bool = False
    times: float = 1.0
    plus: float = 0.0

    def in_stack(self, stack: Stack) -> Tensor:
        """A tensor of every layer, whose path begins with `layers/`, as one of the layers of a stack."""
        path = self.path.removeprefix("layers/")
        return dataclasses.replace(self, path=f"{stack.name}/{path}", layers=stack.layers)

    def names(self, config: DecoderConfig) -> tuple[str, ...]:
        """The names of the tensors, in the order of `leading`."""
        return tuple(
            self.name.format(**dict(zip(self._counts(config), numbers, strict=True)))
            for numbers in itertools.product(*self._counts(config).values())
        )

    def leading(self, config: DecoderConfig) -> tuple[int, ...]:
        """The axes the tensors are stacked on: how many layers and experts the names tell apart."""
        return tuple(len(numbers) for numbers in self._counts(config).values())

    def source_shape(self, config: DecoderConfig) -> tuple[int, ...]:
        """The shape of each tensor as it is stored."""
        sizes = self._sizes(config)
        return tuple(math.prod(sum(_parts(axis, sizes)) for axis in group) for group in self._axes()[0])

    def shape(self, config: DecoderConfig) -> tuple[int, ...]:
        """The shape of the parameter, or of these layers of it."""
        sizes = self._sizes(config)
        return self.leading(config) + tuple(math.prod(sizes[axis] for axis in group) for group in self._axes()[1])

    def kept_axes(self) -> dict[int, int]:
        """The stored tensors' axes that are axes of the parameter too, by number, and which, leading ones not counted.

        A block along these axes becomes a block of the parameter.
        """
        before, after = self._axes()
        return {i: after.index(group) for i, group in enumerate(before) if len(group) == 1 and group in after}

    def to_canonical(self, array: np.ndarray, config: DecoderConfig) -> np.ndarray:
        """One stored tensor in canonical layout, without leading axes; where it can be, a view.

        Args:
            array: Of `source_shape`, or a block of such a tensor, whole along all but the `kept_axes`.
            config: The decoder's.
        """
        before, after = self._axes()
        sizes = self._sizes(config) | {before[i][0]: array.shape[i] for i in self.kept_axes()}
        stored = [axis for group in before for axis in group]
        split = array.reshape([sum(_parts(axis, sizes)) for axis in stored])
        for i, axis in enumerate(stored):
            if "+" in axis:
                parts = _parts(axis, sizes)
                start = sum(parts[: self.piece])
                split = split[(slice(None),) * i + (slice(start, start + parts[self.piece]),)]
                stored[i] = axis.split("+")[self.piece]
        split = split.squeeze(tuple(i for i, axis in enumerate(stored) if axis == "1"))
        stored = [axis for axis in stored if axis != "1"]
        moved = split.transpose([stored.index(axis) for group in after for axis in group])
        moved = moved.reshape([math.prod(sizes[axis] for axis in group) for group in after])
        if self.times == 1 and self.plus == 0:
            return moved
        return moved.astype(np.float32) * np.float32(self.times) + np.float32(self.plus)

    def _counts(self, config: DecoderConfig) -> dict[str, range]:
        """The numbers that stand in the name, by placeholder, in the order of the leading axes."""
        counts = {}
        if "{layer}" in self.name:
            counts["layer"] = self._layers(config)
        if "{expert}" in self.name:
            assert config.experts is not None
            counts["expert"] = range(config.experts.num_experts)
        return counts

    def _layers(self, config: DecoderConfig) -> range:
        return range(config.num_layers) if self.layers is None else self.layers

    def _axes(self) -> tuple[list[list[str]], list[list[str]]]:
        """The axes before and after; each is the list of axes that it is split into."""
        before, after = (
            [(grouped or single).split() for grouped, single in re.findall(r"\(([^)]*)\)|(\S+)", side)]
            for side in self.layout.split("->")
        )
        return before, after

    def _sizes(self, config: DecoderConfig) -> dict[str, int]:
        return {**_sizes(config), "L": len(self._layers(config))}


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

# Its layers' router and experts, where each expert is named as an MLP is.
EXPERTS = (
    Tensor("model.layers.{layer}.mlp.gate.weight", "layers/mlp/router/kernel", "E D -> D E"),
    Tensor("model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight", "layers/mlp/gate/kernel", "X D -> D X"),
    Tensor("model.layers.{layer}.mlp.experts.{expert}.up_proj.weight", "layers/mlp/up/kernel", "X D -> D X"),
    Tensor("model.layers.{layer}.mlp.experts.{expert}.down_proj.weight", "layers/mlp/down/kernel", "D X -> X D"),
)


def layer_norm(name: str, path: str) -> tuple[Tensor, Tensor]:
    """The scale and bias of a layer norm."""
    return Tensor(f"{name}.weight", f"{path}/scale", "D -> D"), Tensor(f"{name}.bias", f"{path}/bias", "D -> D")


def unembedding(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The output matrix, unless it is the embedding table."""
    return () if config.tie_embeddings else (Tensor("lm_head.weight", "unembedding/kernel", "V D -> D V"),)


def llama_like(
    config: DecoderConfig, norms: tuple[Tensor, ...] = PRE_NORMS, experts: tuple[Tensor, ...] = EXPERTS
) -> tuple[Tensor, ...]:
    """The tensors of a family descended from Llama, by the names they all share.

    Args:
        config: Says which of them there are.
        norms: Those around attention and MLP, in which the families differ.
        experts: Those in place of the MLP's in a layer with experts, in which they differ as well.
    """
    layers = in_stacks(config, (*_attention(config), *norms), mlp(config), experts)
    return (*ENDS, *layers, *unembedding(config))


def in_stacks(
    config: DecoderConfig, every: Sequence[Tensor], dense: Sequence[Tensor], sparse: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """The tensors of all stacks of layers: those of every layer, and those of layers without and with experts."""
    return tuple(
        tensor.in_stack(stack) for stack in config.stacks for tensor in (*every, *(sparse if stack.experts else dense))
    )


def _attention(config: DecoderConfig) -> tuple[Tensor, ...]:
    attention = "model.layers.{layer}.self_attn"
    tensors = [
        Tensor(f"{attention}.q_proj.weight", "layers/attention/query/kernel", "(N H) D -> D N H"),
        Tensor(f"{attention}.k_proj.weight", "layers/attention/key/kernel", "(K H) D -> D K H"),
        Tensor(f"{attention}.v_proj.weight", "layers/attention/value/kernel", "(K H) D -> D K H"),
        Tensor(f"{attention}.o_proj.weight", "layers/attention/out/kernel", "D (N H) -> N H D"),
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
    return tuple(tensors)


def mlp(config: DecoderConfig) -> tuple[Tensor, ...]:
    """The layers' MLP, where it is named as Llama's."""
    name = "model.layers.{layer}.mlp"
    tensors = [
        Tensor(f"{name}.gate_proj.weight", "layers/mlp/gate/kernel", "F D -> D F"),
        Tensor(f"{name}.up_proj.weight", "layers/mlp/up/kernel", "F D -> D F"),
        Tensor(f"{name}.down_proj.weight", "layers/mlp/down/kernel", "D F -> F D"),
    ]
    if config.mlp_bias:
        tensors += [
            Tensor(f"{name}.gate_proj.bias", "layers/mlp/gate/bias", "F -> F"),
            Tensor(f"{name}.up_proj.bias", "layers/mlp/up/bias", "F -> F"),
            Tensor(f"{name}.down_proj.bias", "layers/mlp/down/bias", "D -> D"),
        ]
    return tuple(tensors)


def _parts(axis: str, sizes: dict[str, int]) -> list[int]:
    """The sizes of an axis' parts: of one letter, or of a sum of letters."""
    return [sizes[letter] for letter in axis.split("+")]


def _sizes(config: DecoderConfig) -> dict[str, int]:
    sizes = {
        "V": config.vocab_size,
        "D": config.d_model,
        "N": config.num_heads,
        "K": config.num_kv_heads,
        "H": config.head_dim,
        "F": config.d_mlp,
        "P": config.max_positions,
        "h": config.head_dim // 2,
        "1": 1,
        "2": 2,
    }
    if config.latent is not None:
        rotary_dim, value_dim = config.rotary_dim or config.head_dim, config.latent.value_dim
        sizes |= {
            "Q": config.latent.query_rank or 0,
            "R": config.latent.key_value_rank,
            "Z": config.latent.key_value_rank + rotary_dim,
            "M": config.head_dim - rotary_dim + value_dim,
            "W": value_dim,
        }
    if config.experts is not None:
        sizes |= {"E": config.experts.num_experts, "X": config.experts.d_expert, "Y": config.experts.d_shared}
    return sizes
