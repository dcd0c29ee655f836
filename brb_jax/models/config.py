"""What a decoder family varies in. One frozen config describes any of them; the decoder asks it, never the family."""

from __future__ import annotations

import dataclasses
import itertools
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
        experts: Whether experts take the MLP's place.
    """

    window: int | None
    rotary_base: float | None
    rotary_scaling: RotaryScaling | None = None
    experts: bool = False

    def __post_init__(self) -> None:
        if self.window is not None and (type(self.window) is not int or self.window < 1):
            raise ValueError(f"a window of {self.window!r} positions is not a whole number of at least 1")
        if self.rotary_base is not None and not self.rotary_base > 1:
            raise ValueError(f"a rotary base (rope_theta) of {self.rotary_base!r} is not above 1")


@dataclasses.dataclass(frozen=True)
class ClampedGate:
    """g · sigmoid(sharpness · g) · (u + 1), where g is min(gate, limit) and u is clip(up, ±limit): gpt-oss's gate."""

    limit: float
    sharpness: float


@dataclasses.dataclass(frozen=True)
class Experts:
    """A mixture of experts in place of the MLP, and how its router picks those a token goes to.

    Attributes:
        num_experts, per_token, d_expert: How many there are (E), how many a token goes to (C), width of one's MLP (X).
        score: What becomes of the router's logits: a softmax or sigmoid of all, or a softmax of those that are chosen.
        normalize: Whether a token's weights are divided by their sum.
        scale: Multiplies the weights, after that.
        num_groups, groups_per_token: Experts lie in groups, and a token goes to experts of so many groups at most.
        best_per_group: A group's rank is the sum of so many of its highest scores.
        router_bias: Whether the router's logits have a bias.
        choice_bias: Whether a bias is added to scores where experts are ranked, but not where they are weighted.
        d_shared: Width of an MLP that every token goes through besides; 0 for none.
        bias: Whether the experts' projections have biases.
        clamped: gpt-oss's way of gating; None for `activation(gate) * up`.
    """

    num_experts: int
    per_token: int
    d_expert: int
    score: Literal["softmax", "sigmoid", "softmax_of_chosen"] = "softmax"
    normalize: bool = False
    scale: float = 1.0
    num_groups: int = 1
    groups_per_token: int = 1
    best_per_group: int = 1
    router_bias: bool = False
    choice_bias: bool = False
    d_shared: int = 0
    bias: bool = False
    clamped: ClampedGate | None = None

    def __post_init__(self) -> None:
        _check_sizes(self, "num_experts", "per_token", "d_expert", "num_groups", "groups_per_token", "best_per_group")
        size, rest = divmod(self.num_experts, self.num_groups)
        if rest:
            raise ValueError(f"{self.num_experts} experts cannot be put into {self.num_groups} groups of one size")
        if self.groups_per_token > self.num_groups or self.best_per_group > size:
            raise ValueError(
                f"{self.groups_per_token} groups a token, ranked by {self.best_per_group} experts each, "
                f"of {self.num_groups} groups with {size} experts each"
            )
        if self.per_token > self.groups_per_token * size:
            raise ValueError(f"{self.per_token} experts a token, chosen from {self.groups_per_token * size}")


@dataclasses.dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: keys and values, and maybe queries, come from a vector narrower than the model.

    The last `rotary_dim` channels of every head are rotated; those of the keys are the same for all heads.

    Attributes:
        query_rank, key_value_rank: Width of those vectors; no query rank if queries come from the residual stream.
        value_dim: Width of a head's values.
        norm_eps: Of the norms of those vectors.
        interleaved: Whether rotation pairs channels (2i, 2i + 1), rather than (i, i + rotary_dim / 2).
    """

    query_rank: int | None
    key_value_rank: int
    value_dim: int
    norm_eps: float
    interleaved: bool

    def __post_init__(self) -> None:
        _check_sizes(self, "key_value_rank", "value_dim", *(() if self.query_rank is None else ("query_rank",)))


@dataclasses.dataclass(frozen=True)
class Stack:
    """Consecutive layers that have the same parameters, so they are stored stacked and scanned together."""

    name: str
    layers: range
    experts: bool


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
        attention_sinks: Whether every head has a score of its own, without a value, beside those of the keys.
        latent: Multi-head latent attention in place of grouped-query attention; None for the latter.
        experts: The experts of the layers whose kind has them; None if none has.
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
    attention_sinks: bool = False
    latent: Latent | None = None
    experts: Experts | None = None

    def __post_init__(self) -> None:
        _check_sizes(self, *_SIZES)
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads {self.num_heads} is not a multiple of num_kv_heads {self.num_kv_heads}")
        if len(self.layer_pattern) != self.num_layers:
            raise ValueError(f"layer_pattern names {len(self.layer_pattern)} layers, num_layers is {self.num_layers}")
        if self.layer_pattern and not 0 <= min(self.layer_pattern) <= max(self.layer_pattern) < len(self.layer_kinds):
            raise ValueError(f"layer_pattern {self.layer_pattern} names a kind outside 0…{len(self.layer_kinds) - 1}")
        rotated = self.head_dim if self.rotary_dim is None else self.rotary_dim
        if self.rotary and (rotated % 2 or not 0 < rotated <= self.head_dim):
            raise ValueError(f"{rotated} channels of heads of {self.head_dim} cannot be rotated in pairs")
        for scaling in (kind.rotary_scaling for kind in self.layer_kinds):
            lengths = () if scaling is None else (len(scaling.short_factors), len(scaling.long_factors))
            if any(lengths) and lengths != (rotated // 2, rotated // 2):
                raise ValueError(
                    f"short_factor and long_factor have lengths {lengths}, {rotated // 2} pairs are rotated"
                )
        if any(kind.experts for kind in self.layer_kinds) != (self.experts is not None):
            raise ValueError(f"experts is {self.experts}, which contradicts the layer kinds {self.layer_kinds}")

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """The layers, cut where their parameters change: one stack, `layers`, if they never do."""
        has_experts = [self.layer_kinds[kind].experts for kind in self.layer_pattern]
        runs = [list(run) for _, run in itertools.groupby(range(self.num_layers), has_experts.__getitem__)]
        if len(runs) == 1:
            return (Stack("layers", range(self.num_layers), has_experts[0]),)
        return tuple(
            Stack(f"layers_{run[0]}_to_{run[-1]}", range(run[0], run[-1] + 1), has_experts[run[0]]) for run in runs
        )

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


def _check_sizes(config: DecoderConfig | Experts | Latent, *sizes: str) -> None:
    for size in sizes:
        value = getattr(config, size)
        if type(value) is not int or value < 1:
            raise ValueError(f"{size} is {value!r}, not a whole number of at least 1")


def _scaling_from_json(values: Mapping[str, Any]) -> RotaryScaling:
    factors = {key: tuple(values.get(key, ())) for key in ("short_factors", "long_factors")}
    return RotaryScaling(**{**values, **factors})


def _experts_from_json(values: Mapping[str, Any]) -> Experts:
    return Experts(**{**values, "clamped": ClampedGate(**values["clamped"]) if values["clamped"] else None})


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
                **{
                    **kind,
                    "rotary_scaling": _scaling_from_json(kind["rotary_scaling"]) if kind["rotary_scaling"] else None,
                }
            )
            for kind in values["layer_kinds"]
        )
        parts = {
            "layer_kinds": kinds,
            "layer_pattern": tuple(values["layer_pattern"]),
            "latent": Latent(**values["latent"]) if values.get("latent") else None,
            "experts": _experts_from_json(values["experts"]) if values.get("experts") else None,
        }
        return DecoderConfig(**{**values, **parts})
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a decoder config of this version: {error}") from error
