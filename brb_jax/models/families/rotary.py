"""Hugging Face's rotary parameters, of either transformers generation, as the decoder's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from brb_jax.models.config import RotaryScaling
from brb_jax.models.families.attributes import positive, require_sizes

# Of each kind of scaling, the keys it must have and those it may have.
_KEYS: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "default": (frozenset(), frozenset()),
    "linear": (frozenset({"factor"}), frozenset()),
    "dynamic": (frozenset({"factor"}), frozenset()),
    "llama3": (
        frozenset({"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}),
        frozenset(),
    ),
    "yarn": (
        frozenset({"original_max_position_embeddings"}),
        frozenset(
            {"factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"},
        ),
    ),
    "longrope": (
        frozenset({"short_factor", "long_factor", "original_max_position_embeddings"}),
        frozenset({"factor", "attention_factor"}),
    ),
}
_SHARED_KEYS = frozenset({"type", "rope_type", "rope_theta", "partial_rotary_factor"})
_POSITIVE = (
    "rope_theta",
    "factor",
    "low_freq_factor",
    "high_freq_factor",
    "original_max_position_embeddings",
    "beta_fast",
    "beta_slow",
    "attention_factor",
)

ROTARY = frozenset({"rope_parameters", "rope_scaling", "rope_theta"})
"""The attributes of a config that say how it rotates."""


def flat_rotary(hf: Mapping[str, Any], default_base: float) -> tuple[float, RotaryScaling | None]:
    """Base and scaling of a config whose layers all share them: `rope_parameters`, or `rope_theta` and `rope_scaling`.

    Args:
        hf: The config, with `max_position_embeddings`.
        default_base: Used where the config has no `rope_theta`.

    Raises:
        ValueError: Both generations' attributes are set, or as for `rotary_base` and `read_rotary`.
    """
    parameters, where = rotary_parameters(hf)
    return read_rotary(parameters, where, rotary_base(hf, default_base), hf["max_position_embeddings"])


def rotary_base(hf: Mapping[str, Any], default: float, key: str = "rope_theta") -> float:
    """The base beside a config's rotary parameters; `default` where it is missing or null.

    Raises:
        ValueError: It is not a number above zero.
    """
    return default if hf.get(key) is None else positive(hf, key)


def rotary_parameters(hf: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The config's one dict of rotary parameters, empty if it has none, and the attribute it is.

    Raises:
        ValueError: There are two, one of either transformers generation, or it is no dict.
    """
    older, newer = _object(hf, "rope_scaling"), _object(hf, "rope_parameters")
    if older and newer:
        raise ValueError("config.json sets both rope_scaling and rope_parameters")
    return (older, "rope_scaling") if older else (newer, "rope_parameters")


def _object(hf: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An attribute that is an object; empty if it is missing or null."""
    value = hf.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"config.json: {key} is {value!r}, not an object")
    return value or {}


def partial_rotary(hf: Mapping[str, Any], head_dim: int, otherwise: float) -> int:
    """How many channels of a head a config rotates: a factor of them, in its rotary parameters or beside them.

    Raises:
        ValueError: The factor is not a number above zero and at most one.
    """
    factors = (
        rotary_parameters(hf)[0].get("partial_rotary_factor"),
        hf.get("partial_rotary_factor"),
        hf.get("rotary_pct"),
    )
    factor = next((factor for factor in factors if factor is not None), otherwise)
    if not positive({"partial_rotary_factor": factor}, "partial_rotary_factor") <= 1:
        raise ValueError(f"config.json: partial_rotary_factor={factor} rotates more than a head")
    return int(head_dim * factor)


def nested_parameters(hf: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Rotary parameters by layer type. transformers 4's `rope_scaling` stretches the layers with full attention alone.

    Raises:
        ValueError: `rope_parameters` has other keys than layer types, or `rope_scaling` is set as well.
    """
    nested = dict(_object(hf, "rope_parameters"))
    full, sliding = (dict(_object(nested, kind)) for kind in ("full_attention", "sliding_attention"))
    nested = {key: value for key, value in nested.items() if key not in ("full_attention", "sliding_attention")}
    if nested:
        raise ValueError(
            f"config.json: rope_parameters sets {', '.join(sorted(nested))}; "
            f"a {hf.get('model_type')} nests them by layer type"
        )
    older = _object(hf, "rope_scaling")
    if full and older:
        raise ValueError("config.json sets both rope_scaling and rope_parameters.full_attention")
    return {"full_attention": {**full, **older}, "sliding_attention": sliding}


def nested_rotary(
    parameters: Mapping[str, Any], layer_type: str, base: float, max_positions: int
) -> tuple[float, RotaryScaling | None]:
    """As `read_rotary`, of the parameters that a config nests by layer type.

    Raises:
        ValueError: `truncate` is set there, where transformers does not look for it; or as for `read_rotary`.
    """
    where = f"rope_parameters.{layer_type}"
    if parameters.get("truncate") not in (None, True):
        raise ValueError(f"config.json: {where}.truncate is not supported, only True")
    return read_rotary(parameters, where, base, max_positions)


def read_rotary(
    parameters: Mapping[str, Any], where: str, base: float, max_positions: int, *, partial: bool = False
) -> tuple[float, RotaryScaling | None]:
    """Base and scaling from one flat dict of rotary parameters.

    Args:
        parameters: transformers 5's `rope_parameters` or 4's `rope_scaling`; empty for plain embeddings.
        where: The attribute's name, for errors.
        base: Used where `parameters` has no `rope_theta`, which otherwise wins, as in transformers.
        max_positions: What transformers takes for a missing `original_max_position_embeddings`.
        partial: Whether the caller reads `partial_rotary_factor`; it must be 1 otherwise.

    Raises:
        ValueError: An unsupported kind of scaling, a key that kind lacks or should not have, a value that is not a
            number above zero, or a partial rotation.
    """
    kind = parameters.get("rope_type") or parameters.get("type") or "default"
    if not isinstance(kind, str) or kind not in _KEYS:
        raise ValueError(f"config.json: {where} of type {kind!r} is not supported, only {', '.join(_KEYS)}")
    required, optional = _KEYS[kind]
    unknown = sorted(set(parameters) - required - optional - _SHARED_KEYS)
    if unknown:
        raise ValueError(f"config.json: {where} of type {kind!r} sets what brb_jax does not know: {', '.join(unknown)}")
    if not partial and parameters.get("partial_rotary_factor") not in (None, 1, 1.0):
        raise ValueError(f"config.json: {where}.partial_rotary_factor is not supported, only 1.0")
    for key in _POSITIVE:
        if parameters.get(key) is not None:
            positive(parameters, key, where)
    for key in ("mscale", "mscale_all_dim"):
        if parameters.get(key) not in (None, 0):
            positive(parameters, key, where)
    for key in ("short_factor", "long_factor"):
        _check_factors(parameters, key, where)
    if parameters.get("truncate") not in (None, True, False):
        raise ValueError(f"config.json: {where}.truncate={parameters['truncate']!r} is not true or false")
    if parameters.get("rope_theta") is not None:
        base = parameters["rope_theta"]
    values = {"original_max_position_embeddings": max_positions, **parameters}
    length = "original_max_position_embeddings"
    missing = sorted(key for key in required if values.get(key) is None)
    if missing:
        raise ValueError(f"config.json: {where} of type {kind!r} lacks {', '.join(missing)}")
    require_sizes({f"{where}.{length}": values[length]}, f"{where}.{length}", least=2)
    return float(base), _scaling(kind, values, max_positions)


def _check_factors(parameters: Mapping[str, Any], key: str, where: str) -> None:
    factors = parameters.get(key)
    if factors is None:
        return
    if not isinstance(factors, list):
        raise ValueError(f"config.json: {where}.{key}={factors!r} is not a list")
    for i, factor in enumerate(factors):
        positive({f"{key}[{i}]": factor}, f"{key}[{i}]", where)


def _scaling(kind: str, values: Mapping[str, Any], max_positions: int) -> RotaryScaling | None:
    """The scaling of a known kind that has all it needs. Defaults are those of transformers' `modeling_rope_utils`."""
    original = int(values["original_max_position_embeddings"])
    # transformers takes the lengths' ratio where the file names no factor.
    factor = float(values.get("factor") or max_positions / original)
    match kind:
        case "linear":
            return RotaryScaling("linear", factor)
        case "dynamic":
            return RotaryScaling("dynamic", factor, original_max_positions=max_positions)
        case "llama3":
            return RotaryScaling(
                "llama3",
                factor,
                low_freq_factor=float(values["low_freq_factor"]),
                high_freq_factor=float(values["high_freq_factor"]),
                original_max_positions=original,
            )
        case "yarn":
            return RotaryScaling(
                "yarn",
                factor,
                original_max_positions=original,
                beta_fast=float(values.get("beta_fast") or 32),
                beta_slow=float(values.get("beta_slow") or 1),
                truncate=bool(values.get("truncate", True)),
                attention_factor=_yarn_attention_factor(factor, values),
            )
        case "longrope":
            attention_factor = values.get("attention_factor")
            if attention_factor is None:
                attention_factor = math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
            return RotaryScaling(
                "longrope",
                factor,
                original_max_positions=original,
                attention_factor=float(attention_factor),
                short_factors=tuple(map(float, values["short_factor"])),
                long_factors=tuple(map(float, values["long_factor"])),
            )
    return None


def _yarn_attention_factor(factor: float, values: Mapping[str, Any]) -> float:
    if values.get("attention_factor") is not None:
        return float(values["attention_factor"])

    def growth(scale: float) -> float:
        return 0.1 * scale * math.log(factor) + 1.0 if factor > 1 else 1.0

    if values.get("mscale") and values.get("mscale_all_dim"):
        return growth(values["mscale"]) / growth(values["mscale_all_dim"])
    return growth(1.0)
