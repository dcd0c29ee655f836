"""Attributes of a Hugging Face config: each is understood, known not to matter, at its default, or refused.

The idea is penzai's (google-deepmind/penzai, `penzai/models/transformer/variants`): an attribute this package
has never heard of may change what the model computes, so a config that sets one is refused by name.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any

# Say where a model comes from, how it was trained, stored or is sampled from; a forward pass reads none.
INERT = frozenset(
    {
        "_attn_implementation",
        "_attn_implementation_autoset",
        "_commit_hash",
        "_name_or_path",
        "architectures",
        "attention_dropout",
        "attn_implementation",
        "bos_token_id",
        "cache_implementation",
        "do_sample",
        "dtype",
        "eos_token_id",
        "id2label",
        "initializer_range",
        "label2id",
        "max_length",
        "model_type",
        "name_or_path",
        "num_labels",
        "output_attentions",
        "output_hidden_states",
        "output_router_logits",
        "pad_token_id",
        "pretraining_tp",
        "problem_type",
        "return_dict",
        "router_aux_loss_coef",
        "router_jitter_noise",
        "temperature",
        "tokenizer_class",
        "top_k",
        "top_p",
        "torch_dtype",
        "transformers.js_config",
        "transformers_version",
        "use_cache",
    }
)

_ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}


# Sizes by the names most configs give them; `sizes` reads these.
SIZES = frozenset(
    {
        "head_dim",
        "hidden_size",
        "intermediate_size",
        "max_position_embeddings",
        "num_attention_heads",
        "num_hidden_layers",
        "num_key_value_heads",
        "vocab_size",
    }
)

# With these beside: what every config descended from Llama's has. `basics` reads them.
BASICS = SIZES | {"hidden_act", "rms_norm_eps", "tie_word_embeddings"}


def refuse_others(hf: Mapping[str, Any], understood: Collection[str], defaults: Mapping[str, Any]) -> None:
    """Refuses a config with an attribute that is neither understood, inert, nor at its class's default.

    One that is understood must be of its default's kind, if that is no number; numbers are checked where they are read.

    Args:
        hf: The config, as in `config.json`.
        understood: Attributes the family reads itself.
        defaults: `to_dict()` of a default config of the same transformers class.

    Raises:
        ValueError: Names every such attribute and its value, or says what to do with quantised weights.
    """
    for key in sorted(hf.keys() & set(understood) & defaults.keys()):
        kind = _kind(defaults[key])
        if kind and hf[key] is not None and _kind(hf[key]) != kind:
            raise ValueError(f"config.json: {key}={hf[key]!r} is not {kind}")
    others = {
        key: value
        for key, value in hf.items()
        if key not in understood and key not in INERT and not (key in defaults and defaults[key] == value)
    }
    if "quantization_config" in others:
        raise ValueError(
            "config.json has a quantization_config, and quantised weights are not supported; "
            "dequantise the checkpoint, to bfloat16 say, and save it without one"
        )
    if others:
        listed = ", ".join(f"{key}={value!r}" for key, value in sorted(others.items()))
        raise ValueError(
            f"config.json of model_type {hf.get('model_type')!r} sets what brb_jax does not know: {listed}"
        )


def _kind(value: Any) -> str | None:
    kinds = {bool: "true or false", str: "a text", list: "a list", dict: "an object"}
    return kinds.get(type(value))


def require_sizes(hf: Mapping[str, Any], *keys: str, least: int = 1) -> None:
    """Raises ValueError naming every one of `keys` that `hf` lacks or sets to null, or one that is below `least`."""
    missing = [key for key in keys if hf.get(key) is None]
    if missing:
        raise ValueError(f"config.json of model_type {hf.get('model_type')!r} lacks {', '.join(missing)}")
    for key in keys:
        if type(hf[key]) is not int or hf[key] < least:
            raise ValueError(f"config.json: {key}={hf[key]!r} is not a whole number of at least {least}")


def positive(values: Mapping[str, Any], key: str, where: str = "") -> float:
    """The number `values[key]`; `where` is the attribute that holds it, if it is not the config itself.

    Raises:
        ValueError: It is missing, or not a number above zero.
    """
    value: Any = values.get(key)
    if type(value) not in (int, float) or not 0 < value <= sys.float_info.max:
        raise ValueError(f"config.json: {f'{where}.' if where else ''}{key}={value!r} is not a number above zero")
    return float(value)


def positive_or_none(values: Mapping[str, Any], key: str) -> float | None:
    """As `positive`, of what may be null."""
    return None if values[key] is None else positive(values, key)


def require_value(hf: Mapping[str, Any], key: str, *allowed: Any) -> None:
    """Raises ValueError if `hf` sets `key` to anything but `allowed`; a missing key passes."""
    if key in hf and hf[key] not in allowed:
        raise ValueError(f"config.json: {key}={hf[key]!r} is not supported, only {allowed[0]!r}")


def sizes(hf: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes of a `DecoderConfig`, of a config with the attributes `SIZES`.

    They have no default but two, which follow from others: transformers would fill in those of some published model.

    Raises:
        ValueError: One is missing or null, or not a whole number of at least 1.
    """
    optional = ("head_dim", "num_key_value_heads")
    require_sizes(hf, *sorted(SIZES - {key for key in optional if hf.get(key) is None}))
    heads = hf["num_attention_heads"]
    return {
        "vocab_size": hf["vocab_size"],
        "num_layers": hf["num_hidden_layers"],
        "d_model": hf["hidden_size"],
        "num_heads": heads,
        "num_kv_heads": hf.get("num_key_value_heads") or heads,
        "head_dim": hf.get("head_dim") or hf["hidden_size"] // heads,
        "d_mlp": hf["intermediate_size"],
        "max_positions": hf["max_position_embeddings"],
    }


def basics(hf: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The sizes, and what else of a `DecoderConfig` the attributes `BASICS` say; attention scores are scaled as usual.

    Raises:
        ValueError: A size is missing or null, or the decoder has no such activation.
    """
    shape, values = sizes(hf), {**defaults, **hf}
    return {
        **shape,
        "activation": activation(values["hidden_act"]),
        "norm_eps": positive(values, "rms_norm_eps"),
        "attention_scale": shape["head_dim"] ** -0.5,
        "tie_embeddings": values["tie_word_embeddings"],
    }


def activation(name: str) -> Any:
    """The decoder's name of a Hugging Face activation.

    Raises:
        ValueError: The decoder has no such activation.
    """
    if name not in _ACTIVATIONS:
        raise ValueError(f"config.json: activation {name!r} is not supported, only {', '.join(_ACTIVATIONS)}")
    return _ACTIVATIONS[name]
