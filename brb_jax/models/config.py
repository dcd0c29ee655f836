"""What a decoder family varies in. One frozen config describes any of them; the decoder asks it, never the family."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal


@dataclasses.dataclass(frozen=True)
class RotaryScaling:
    """How a family stretches rotary frequencies beyond its pretraining length. `models/rotary.py` has the formulas.

    `linear` divides every frequency by `factor`. `llama3` divides the low ones, keeps the high ones and blends those
    between, by wavelength against `original_max_positions` (Llama 3.1's rule). `yarn` does so by the pair's index,
    between those that turn `beta_fast` and `beta_slow` times in `original_max_positions`.

    Two kinds depend on an input's own length, in tokens. `longrope` divides each frequency by its own factor: one of
    `short_factors`, or of `long_factors` for an input longer than `original_max_positions`. `dynamic` raises the base
    for an input longer than `original_max_positions`, the more the longer it is.

    Attributes:
        truncate: Whether `yarn` widens the range it blends to whole indices.
        attention_factor: Multiplies cosines and sines, so attention scores by its square.
    """

    kind: Literal["linear", "llama3", "dynamic", "yarn", "longrope"]
    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 1.0
    original_max_positions: int = 0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    attention_factor: float = 1.0
    short_factors: tuple[float, ...] = ()
    long_factors: tuple[float, ...] = ()

    @property
    def by_length(self) -> bool:
        """Whether an input's length changes its frequencies."""
        return self.kind in ("dynamic", "longrope")


@dataclasses.dataclass(frozen=True)
class LayerKind:
    """What may differ from layer to layer.

    Attributes:
        window: A token sees the `window` latest positions, itself included; None for all of them.
        rotary_base: Base of the geometric sequence of rotary wavelengths; None for a layer without rotary positions.
        rotary_scaling: None for plain rotary embeddings.
    """

    window: int | None
    rotary_base: float | None
    rotary_scaling: RotaryScaling | None = None

    def __post_init__(self) -> None:
        if self.window is not None and (type(self.window) is not int or self.window < 1):
            raise ValueError(f"a window of {self.window!r} positions is not a whole number of at least 1")
        if self.rotary_base is not None and not self.rotary_base > 0:
            raise ValueError(f"a rotary base of {self.rotary_base!r} is not positive")


_SIZES = ("vocab_size", "num_layers", "d_model", "num_heads", "num_kv_heads", "head_dim", "d_mlp", "max_positions")


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    """A decoder-only transformer.

    Attributes:
        family: Name of the family that wrote this config (`llama`, `gemma3`, …).
        vocab_size: Rows of the embedding table, padding included.
        num_layers, d_model, num_heads, num_kv_heads, head_dim, d_mlp: Sizes L, D, N, K, H, F.
        max_positions: Longest input the model was made for, in tokens.
        layer_kinds: The distinct kinds of layer.
        layer_pattern: For each layer, the index of its kind; `len(layer_pattern) == num_layers`.
        activation: Of the MLP.
        gated_mlp: Whether the MLP is `down(activation(gate(x)) * up(x))`, or else `down(activation(up(x)))`.
        norm: RMS norms, or layer norms with a bias.
        norm_eps: Added to the mean square (the variance) in every norm.
        norm_offset: RMS norms multiply by `norm_offset + scale` (Gemma stores scale − 1).
        pre_norms: Whether the inputs of attention and MLP are normed.
        post_norms: Whether attention and MLP outputs are normed before they join the residual stream.
        parallel_residual: Whether the MLP's input is that of attention, not the sum that attention's output has joined.
        qk_norm: Whether queries and keys are RMS-normed before rotary: over the head width, or jointly over all heads.
        attention_scale: Multiplies query·key.
        attention_bias: Which of attention's projections have biases: all four, query, key and value alone, or none.
        mlp_bias: Whether the MLP's projections have biases.
        attention_softcap, logit_softcap: c in c·tanh(x / c), on attention scores or output logits; None for neither.
        rotary_dim: How many leading channels of a head are rotated; None for all.
        learned_positions: Whether a table of `max_positions` vectors is added to token embeddings.
        embedding_scale: Multiplies token embeddings.
        residual_scale: Multiplies attention and MLP outputs before they join the residual stream.
        logit_scale: Multiplies output logits, before the soft cap.
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
    gated_mlp: bool = True
    norm: Literal["rms", "layer"] = "rms"
    norm_offset: float = 0.0
    pre_norms: bool = True
    post_norms: bool = False
    parallel_residual: bool = False
    qk_norm: bool | Literal["joint"] = False
    attention_bias: bool | Literal["qkv"] = False
    mlp_bias: bool = False
    attention_softcap: float | None = None
    logit_softcap: float | None = None
    rotary_dim: int | None = None
    learned_positions: bool = False
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    logit_scale: float = 1.0
    tie_embeddings: bool = False

    def __post_init__(self) -> None:
        for size in _SIZES:
            if type(getattr(self, size)) is not int or getattr(self, size) < 1:
                raise ValueError(f"{size} is {getattr(self, size)!r}, not a whole number of at least 1")
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads {self.num_heads} is not a multiple of num_kv_heads {self.num_kv_heads}")
        if len(self.layer_pattern) != self.num_layers:
            raise ValueError(f"layer_pattern names {len(self.layer_pattern)} layers, num_layers is {self.num_layers}")
        if self.layer_pattern and not 0 <= min(self.layer_pattern) <= max(self.layer_pattern) < len(self.layer_kinds):
            raise ValueError(f"layer_pattern {self.layer_pattern} names a kind outside 0…{len(self.layer_kinds) - 1}")
        rotated = self.head_dim if self.rotary_dim is None else self.rotary_dim
        if self.rotary and (rotated % 2 or not 0 < rotated <= self.head_dim):
            raise ValueError(f"{rotated} channels of heads of {self.head_dim} cannot be rotated in pairs")

    @property
    def rotary(self) -> bool:
        """Whether any layer has rotary positions."""
        return any(kind.rotary_base is not None for kind in self.layer_kinds)

    def length_class(self, length: int) -> int:
        """Inputs of one class have the same rotary frequencies, whatever their lengths; others can share nothing.

        A number grows into the next class with an input's length in tokens. Only `longrope` and `dynamic` scaling make
        more than one: two in all, and one a length beyond the original maximum.
        """
        scalings = {kind.rotary_scaling for kind in self.layer_kinds if kind.rotary_scaling is not None}
        longer = [s for s in scalings if s.by_length and length > s.original_max_positions]
        if any(s.kind == "dynamic" for s in longer):
            return length
        return len(longer)


def _scaling_from_json(values: Mapping[str, Any]) -> RotaryScaling:
    factors = {key: tuple(values.get(key, ())) for key in ("short_factors", "long_factors")}
    return RotaryScaling(**{**values, **factors})


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
                rotary_scaling=_scaling_from_json(kind["rotary_scaling"]) if kind["rotary_scaling"] else None,
            )
            for kind in values["layer_kinds"]
        )
        return DecoderConfig(**{**values, "layer_kinds": kinds, "layer_pattern": tuple(values["layer_pattern"])})
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a decoder config of this version: {error}") from error
