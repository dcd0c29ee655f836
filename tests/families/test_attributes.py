"""Of every family: each attribute its reader says it understands changes the decoder's config, or is refused."""

import copy
import sys

import published
import published_experts
import pytest
from transformers import AutoConfig

from brb_jax.models.families import family_of
from brb_jax.models.families.attributes import INERT

MODELS = ["QWEN_2_5_3B", "QWEN_3_8B", "MISTRAL_7B_V0_1", "GEMMA_2B", "GEMMA_2_27B", "OLMO_2_1B", "OLMO_3_7B"]
MODELS += ["SMOLLM_3_3B", "PHI_3_MINI_4K", "PHI_4_MINI", "GRANITE_3_3_8B", "GPT2_MEDIUM", "PYTHIA_1B"]

FULL, SLIDING = "full_attention", "sliding_attention"
LINEAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 7.0}

# Values unlike the published ones. A list of layers is made to measure.
OTHERS = {
    "activation_function": "silu",
    "hidden_act": lambda hf: "gelu" if hf["hidden_act"] == "silu" else "silu",
    "hidden_activation": "gelu",
    "layer_types": lambda hf: [SLIDING, FULL] + [FULL] * (hf["num_hidden_layers"] - 2),
    "no_rope_layers": lambda hf: [0, 1] * (hf["num_hidden_layers"] // 2),
    "num_attention_heads": 64,
    "num_key_value_heads": lambda hf: 2 if hf["num_key_value_heads"] == 1 else 1,
    "n_head": 32,
    "n_inner": 7,
    "partial_rotary_factor": 0.5,
    "rope_parameters": LINEAR,
    "rope_scaling": {"type": "linear", "factor": 3.0},
    "summary_type": "mean",
}

# Changing these alone changes nothing: no part of a forward pass, or another attribute has to say that they count.
ALONE_NOTHING = {
    "QWEN_2_5_3B": {"max_window_layers", "sliding_window", "use_sliding_window"},
    "QWEN_3_8B": {"max_window_layers", "sliding_window", "use_sliding_window"},
    "SMOLLM_3_3B": {"max_window_layers", "no_rope_layer_interval", "sliding_window", "use_sliding_window"},
    "PHI_3_MINI_4K": {"auto_map", "embd_pdrop", "original_max_position_embeddings", "resid_pdrop"},
    "PHI_4_MINI": {"auto_map", "embd_pdrop", "resid_pdrop"},
    "GPT2_MEDIUM": {
        *("attn_pdrop", "embd_pdrop", "n_ctx", "n_special", "predict_special_tokens", "reorder_and_upcast_attn"),
        *("resid_pdrop", "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type"),
        *("summary_use_proj", "task_specific_params"),
    },
    "PYTHIA_1B": {"is_decoder"},
}


def read(hf):
    return family_of(hf).config_from_hf(hf)


def understood(hf) -> frozenset[str]:
    return sys.modules[family_of(hf).config_from_hf.__module__]._UNDERSTOOD


def other(hf, key):
    """A value of `key` that differs from the config's own, or from the class's default."""
    if key in OTHERS:
        return OTHERS[key](hf) if callable(OTHERS[key]) else OTHERS[key]
    default = AutoConfig.for_model(hf["model_type"]).to_dict().get(key)
    value = hf.get(key, default)
    if isinstance(value, bool):
        return not value
    return 2 * value if isinstance(value, int | float) else 4


@pytest.mark.parametrize("name", MODELS)
def test_nothing_understood_is_ignored(name):
    hf = getattr(published, name)
    before, without_effect = read(hf), set()
    for key in understood(hf):
        try:
            after = read({**hf, key: other(hf, key)})
        except ValueError as error:
            assert "config.json" in str(error) or "num_" in str(error), key
        else:
            if after == before:
                without_effect.add(key)
    assert without_effect == ALONE_NOTHING.get(name, set())


@pytest.mark.parametrize("name", MODELS)
def test_every_other_attribute_of_the_class_is_refused_by_name(name):
    hf = getattr(published, name)
    for key in AutoConfig.for_model(hf["model_type"]).to_dict().keys() - understood(hf) - INERT:
        with pytest.raises(ValueError, match=f"does not know: {key}='surprise'"):
            read({**hf, key: "surprise"})
    with pytest.raises(ValueError, match="does not know: qkv_clip=8"):
        read({**hf, "qkv_clip": 8})


@pytest.mark.parametrize("name", MODELS)
def test_as_transformers_5_writes_it(name):
    hf = getattr(published, name)
    config = AutoConfig.for_model(**copy.deepcopy(hf))  # It writes into nested dicts.
    assert read(config.to_dict() | {"architectures": hf["architectures"]}) == read(hf)
    assert read(config.to_diff_dict() | {"architectures": hf["architectures"]}) == read(hf)


@pytest.mark.parametrize("name", MODELS)
def test_a_value_of_another_kind_than_the_default_is_refused(name):
    """A text such as "false" counts as true, were it not refused. Numbers without effect may be anything."""
    hf = getattr(published, name)
    defaults = AutoConfig.for_model(hf["model_type"]).to_dict()
    numbers = set(understood(hf)) - ALONE_NOTHING.get(name, set()) - {"no_rope_layer_interval"}
    kinds = {key: type(value) for key, value in defaults.items() if key in understood(hf)}
    checked = [key for key, kind in kinds.items() if kind in (bool, str) or (kind in (int, float) and key in numbers)]
    assert len(checked) >= 10
    for key in checked:
        for value in {bool: ["false", 1], str: [3, True]}.get(kinds[key], ["7", True]):
            refusals = (f"{key}={value!r} is not ", f"{key} {value!r} is not ", f"window of {value!r} ")
            with pytest.raises(ValueError, match="|".join((*refusals, f"{key}_size=.* only {value!r}"))):
                read({**hf, key: value})


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("QWEN_3_8B", "rms_norm_eps", -1e-6),
        ("GEMMA_2B", "rms_norm_eps", 0),
        ("GPT2_MEDIUM", "layer_norm_epsilon", 1e999),
        ("PYTHIA_1B", "layer_norm_eps", None),
        ("GEMMA_2_27B", "final_logit_softcapping", 0.0),
        ("GEMMA_2_27B", "attn_logit_softcapping", -50.0),
    ],
)
def test_a_number_that_is_none_of_its_kind(name, key, value):
    with pytest.raises(ValueError, match=rf"config.json: {key}={value!r} is not a number above zero"):
        read({**getattr(published, name), key: value})


CONFIGS = {
    name: value
    for name, value in (vars(published) | vars(published_experts)).items()
    if isinstance(value, dict) and "num_hidden_layers" in value
}
ODD = ["x", -1, 0, 0.5, True, None, 1e999, [1, "a"], [[]], {}, {"factor": "x"}]


@pytest.mark.parametrize("name", CONFIGS)
def test_odd_values_are_read_or_refused_in_one_line(name):
    """Whatever an attribute, or one in an object, is set to: a config comes of it, or a ValueError."""
    hf = CONFIGS[name]
    places = [(key,) for key in understood(hf)]
    places += [(key, inner) for key, value in hf.items() if isinstance(value, dict) for inner in value]
    for place in places:
        for value in ODD:
            changed = copy.deepcopy(hf)
            at = changed[place[0]] if len(place) == 2 else changed
            at[place[-1]] = value
            try:
                assert read(changed).num_layers > 0
            except ValueError as error:
                assert "\n" not in str(error), (place, value)
