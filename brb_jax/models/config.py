"""What a decoder family varies in. One frozen config describes any of them; the decoder asks it, never the family."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal


@dataclasses.dataclass(frozen=True)
class RotaryScaling:
    """How a family stretches rotary frequencies beyond its pretraining length.

    `linear` divides every frequency by `factor`. `llama3` divides the low ones, keeps the high ones and blends those
    between, by wavelength against `original_max_positions` (Llama 3.1's rule).
    """

    kind: Literal["linear", "llama3"]
    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 1.0
    original_max_positions: int = 0


@dataclasses.dataclass(frozen=True)
class LayerKind:
    """What may differ from layer to layer.

    Attributes:
        window: A token sees the `window` latest positions, itself included; None for all of them.
        rotary_base: Base of the geometric sequence of rotary wavelengths.
        rotary_scaling: None for plain rotary embeddings.
    """

    window: int | None
    rotary_base: float
    rotary_scaling: RotaryScaling | None = None


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    """A decoder-only transformer.

    Attributes:
        family: Name of the family that wrote this config (`llama`, `gemma3`).
        vocab_size: Rows of the embedding table, padding included.
        num_layers, d_model, num_heads, num_kv_heads, head_dim, d_mlp: Sizes L, D, N, K, H, F.
        max_positions: Longest input the model was made for, in tokens.
        layer_kinds: The distinct kinds of layer.
        layer_pattern: For each layer, the index of its kind; `len(layer_pattern) == num_layers`.
        activation: Of the gated MLP: `down(activation(gate(x)) * up(x))`.
        norm_eps: Added to the mean square in every RMS norm.
        norm_offset: RMS norms multiply by `norm_offset + scale` (Gemma stores scale − 1).
        post_norms: Whether attention and MLP outputs are normed before they join the residual stream.
        qk_norm: Whether queries and keys are RMS-normed over the head width, before rotary.
        attention_scale: Multiplies query·key.
        attention_bias: Whether query, key, value and output projections have biases.
        mlp_bias: Whether the MLP's projections have biases.
        attention_softcap, logit_softcap: c in c·tanh(x / c), on attention scores or output logits; None for neither.
        embedding_scale: Multiplies token embeddings.
        tie_embeddings: Whether the unembedding is the embedding table.
    """

    family: str
    vocab_size: int
    num_layers: int
    d_model: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    d_mlp: int
    max_positions: int
    layer_kinds: tuple[LayerKind, ...]
    layer_pattern: tuple[int, ...]
    activation: Literal["silu", "gelu", "gelu_tanh"]
    norm_eps: float
    attention_scale: float
    norm_offset: float = 0.0
    post_norms: bool = False
    qk_norm: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    attention_softcap: float | None = None
    logit_softcap: float | None = None
    embedding_scale: float = 1.0
    tie_embeddings: bool = False

    def __post_init__(self) -> None:
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads {self.num_heads} is not a multiple of num_kv_heads {self.num_kv_heads}")
        if len(self.layer_pattern) != self.num_layers:
            raise ValueError(f"layer_pattern names {len(self.layer_pattern)} layers, num_layers is {self.num_layers}")
        if self.layer_pattern and not 0 <= min(self.layer_pattern) <= max(self.layer_pattern) < len(self.layer_kinds):
            raise ValueError(f"layer_pattern {self.layer_pattern} names a kind outside 0…{len(self.layer_kinds) - 1}")


def to_json(config: DecoderConfig) -> dict[str, Any]:
    """The config as plain JSON values; `from_json` inverts it."""
    return dataclasses.asdict(config)


def from_json(values: Mapping[str, Any]) -> DecoderConfig:
    """Rebuilds a config, refusing keys it does not know.

    Raises:
        ValueError: A key is unknown or missing.
    """
    try:
        kinds = tuple(
            LayerKind(
                window=kind["window"],
                rotary_base=kind["rotary_base"],
                rotary_scaling=RotaryScaling(**kind["rotary_scaling"]) if kind["rotary_scaling"] else None,
            )
            for kind in values["layer_kinds"]
        )
        return DecoderConfig(**{**values, "layer_kinds": kinds, "layer_pattern": tuple(values["layer_pattern"])})
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a decoder config of this version: {error}") from error
