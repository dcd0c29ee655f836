"""Hugging Face configs: published ones by hand, both generations of transformers, and nothing ignored."""

import dataclasses

import published
import pytest
from transformers import Gemma3Config, Gemma3TextConfig, LlamaConfig

from brb_jax.models.config import DecoderConfig, LayerKind, RotaryScaling
from brb_jax.models.families import family_of, gemma3, llama
from brb_jax.models.families.attributes import INERT

FULL = LayerKind(window=None, rotary_base=1_000_000.0)

EXPECTED = {
    "SMOLLM2_135M": DecoderConfig(
        family="llama",
        vocab_size=49152,
        num_layers=30,
        d_model=576,
        num_heads=9,
        num_kv_heads=3,
        head_dim=64,
        d_mlp=1536,
        max_positions=8192,
        layer_kinds=(LayerKind(window=None, rotary_base=100_000.0),),
        layer_pattern=(0,) * 30,
        activation="silu",
        norm_eps=1e-5,
        attention_scale=1 / 8,
        tie_embeddings=True,
    ),
    "LLAMA_3_1_8B": DecoderConfig(
        family="llama",
        vocab_size=128256,
        num_layers=32,
        d_model=4096,
        num_heads=32,
        num_kv_heads=8,
        head_dim=128,
        d_mlp=14336,
        max_positions=131072,
        layer_kinds=(
            LayerKind(window=None, rotary_base=500_000.0, rotary_scaling=RotaryScaling("llama3", 8.0, 1.0, 4.0, 8192)),
        ),
        layer_pattern=(0,) * 32,
        activation="silu",
        norm_eps=1e-5,
        attention_scale=128**-0.5,
    ),
    "LLAMA_2_7B": DecoderConfig(
        family="llama",
        vocab_size=32000,
        num_layers=32,
        d_model=4096,
        num_heads=32,
        num_kv_heads=32,
        head_dim=128,
        d_mlp=11008,
        max_positions=4096,
        layer_kinds=(LayerKind(window=None, rotary_base=10_000.0),),
        layer_pattern=(0,) * 32,
        activation="silu",
        norm_eps=1e-5,
        attention_scale=128**-0.5,
    ),
    "GEMMA_3_270M": DecoderConfig(
        family="gemma3",
        vocab_size=262144,
        num_layers=18,
        d_model=640,
        num_heads=4,
        num_kv_heads=1,
        head_dim=256,
        d_mlp=2048,
        max_positions=32768,
        layer_kinds=(LayerKind(window=512, rotary_base=10_000.0), FULL),
        layer_pattern=(0, 0, 0, 0, 0, 1) * 3,
        activation="gelu_tanh",
        norm_eps=1e-6,
        attention_scale=1 / 16,
        norm_offset=1.0,
        post_norms=True,
        qk_norm=True,
        embedding_scale=640**0.5,
        tie_embeddings=True,
    ),
    "GEMMA_3_4B": DecoderConfig(
        family="gemma3",
        vocab_size=262208,
        num_layers=34,
        d_model=2560,
        num_heads=8,
        num_kv_heads=4,
        head_dim=256,
        d_mlp=10240,
        max_positions=131072,
        layer_kinds=(
            LayerKind(window=1024, rotary_base=10_000.0),
            dataclasses.replace(FULL, rotary_scaling=RotaryScaling("linear", 8.0)),
        ),
        layer_pattern=(0, 0, 0, 0, 0, 1) * 5 + (0, 0, 0, 0),
        activation="gelu_tanh",
        norm_eps=1e-6,
        attention_scale=1 / 16,
        norm_offset=1.0,
        post_norms=True,
        qk_norm=True,
        embedding_scale=2560**0.5,
        tie_embeddings=True,
    ),
}
CLASSES = {"llama": LlamaConfig, "gemma3_text": Gemma3TextConfig, "gemma3": Gemma3Config}


def read(hf):
    return family_of(hf).config_from_hf(hf)


@pytest.mark.parametrize("name", EXPECTED)
def test_published(name):
    assert read(getattr(published, name)) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_as_transformers_5_writes_it(name, tmp_path):
    hf = getattr(published, name)
    cls = CLASSES[hf["model_type"]]
    rewritten = cls.from_dict(hf)
    assert read(rewritten.to_dict()) == EXPECTED[name]
    assert read(rewritten.to_diff_dict() | {"architectures": hf["architectures"]}) == EXPECTED[name]


NESTED = {"sliding_attention": {"rope_type": "default", "rope_theta": 5.0}}

# Attribute, another value, and what it changes in the decoder's config.
LLAMA_CHANGES = [
    ("vocab_size", 7, {"vocab_size": 7}),
    ("hidden_size", 1152, {"d_model": 1152, "head_dim": 128, "attention_scale": 128**-0.5}),
    ("intermediate_size", 7, {"d_mlp": 7}),
    ("num_hidden_layers", 2, {"num_layers": 2, "layer_pattern": (0, 0)}),
    ("num_attention_heads", 18, {"num_heads": 18, "head_dim": 32, "attention_scale": 32**-0.5}),
    ("num_key_value_heads", 1, {"num_kv_heads": 1}),
    ("num_key_value_heads", None, {"num_kv_heads": 9}),
    ("head_dim", 16, {"head_dim": 16, "attention_scale": 1 / 4}),
    ("max_position_embeddings", 7, {"max_positions": 7}),
    ("hidden_act", "gelu", {"activation": "gelu"}),
    ("rms_norm_eps", 1e-3, {"norm_eps": 1e-3}),
    ("attention_bias", True, {"attention_bias": True}),
    ("mlp_bias", True, {"mlp_bias": True}),
    ("tie_word_embeddings", False, {"tie_embeddings": False}),
    ("rope_theta", 7, {"layer_kinds": (LayerKind(None, 7.0),)}),
    (
        "rope_scaling",
        {"type": "linear", "factor": 4},
        {"layer_kinds": (LayerKind(None, 100_000.0, RotaryScaling("linear", 4.0)),)},
    ),
    (
        "rope_parameters",
        {"rope_type": "llama3", "rope_theta": 7, "factor": 4, "low_freq_factor": 1, "high_freq_factor": 2},
        {"layer_kinds": (LayerKind(None, 7.0, RotaryScaling("llama3", 4.0, 1.0, 2.0, 8192)),)},
    ),
]
GEMMA_CHANGES = [
    ("vocab_size", 7, {"vocab_size": 7}),
    ("hidden_size", 900, {"d_model": 900, "embedding_scale": 30.0}),
    ("intermediate_size", 7, {"d_mlp": 7}),
    ("num_attention_heads", 2, {"num_heads": 2}),
    ("num_key_value_heads", 2, {"num_kv_heads": 2}),
    ("head_dim", 128, {"head_dim": 128}),
    ("max_position_embeddings", 7, {"max_positions": 7}),
    ("hidden_activation", "gelu", {"activation": "gelu"}),
    ("rms_norm_eps", 1e-3, {"norm_eps": 1e-3}),
    ("query_pre_attn_scalar", 4, {"attention_scale": 1 / 2}),
    ("attention_bias", True, {"attention_bias": True}),
    ("final_logit_softcapping", 30.0, {"logit_softcap": 30.0}),
    ("tie_word_embeddings", False, {"tie_embeddings": False}),
    ("sliding_window", 7, {"layer_kinds": (LayerKind(7, 10_000.0), FULL)}),
    ("rope_local_base_freq", 7, {"layer_kinds": (LayerKind(512, 7.0), FULL)}),
    ("rope_theta", 7, {"layer_kinds": (LayerKind(512, 10_000.0), LayerKind(None, 7.0))}),
    (
        "rope_scaling",
        {"rope_type": "linear", "factor": 2.0},
        {
            "layer_kinds": (
                LayerKind(512, 10_000.0),
                dataclasses.replace(FULL, rotary_scaling=RotaryScaling("linear", 2.0)),
            )
        },
    ),
    ("rope_parameters", NESTED, {"layer_kinds": (LayerKind(512, 5.0), FULL)}),
    (
        "layer_types",
        ["full_attention"] * 18,
        {"layer_kinds": (FULL,), "layer_pattern": (0,) * 18},
    ),
]


def assert_changes(hf, key, value, changes):
    before, after = read(hf), read({**hf, key: value})
    assert after == dataclasses.replace(before, **changes)
    assert after != before


@pytest.mark.parametrize(("key", "value", "changes"), LLAMA_CHANGES)
def test_llama_attributes(key, value, changes):
    assert_changes(published.SMOLLM2_135M, key, value, changes)


@pytest.mark.parametrize(("key", "value", "changes"), GEMMA_CHANGES)
def test_gemma3_attributes(key, value, changes):
    assert_changes(published.GEMMA_3_270M, key, value, changes)


def test_layers_without_layer_types():
    hf = {
        key: value for key, value in published.GEMMA_3_270M.items() if key not in ("layer_types", "num_hidden_layers")
    }
    assert read({**hf, "num_hidden_layers": 7}).layer_pattern == (0, 0, 0, 0, 0, 1, 0)
    hf.pop("_sliding_window_pattern")
    assert read({**hf, "num_hidden_layers": 4, "sliding_window_pattern": 2}).layer_pattern == (0, 1, 0, 1)


def test_every_understood_attribute_is_tested():
    fixed = {"is_llama_config", "rope_interleaved", "partial_rotary_factor"}
    assert {key for key, _, _ in LLAMA_CHANGES} == llama._UNDERSTOOD - fixed
    elsewhere = {"num_hidden_layers", "sliding_window_pattern", "_sliding_window_pattern"}
    fixed = {"use_bidirectional_attention", "attn_logit_softcapping"}
    assert {key for key, _, _ in GEMMA_CHANGES} == gemma3._UNDERSTOOD - fixed - elsewhere


@pytest.mark.parametrize(
    ("hf", "understood"),
    [(published.SMOLLM2_135M, llama._UNDERSTOOD), (published.GEMMA_3_270M, gemma3._UNDERSTOOD)],
    ids=["llama", "gemma3"],
)
def test_every_other_attribute_of_the_class_is_refused_by_name(hf, understood):
    for key in CLASSES[hf["model_type"]]().to_dict().keys() - understood - INERT:
        with pytest.raises(ValueError, match=f"does not know: {key}='surprise'"):
            read({**hf, key: "surprise"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_experts": 8, "qkv_clip": 1.5}, r"does not know: num_experts=8, qkv_clip=1.5"),
        ({"quantization_config": {"bits": 4}}, "quantised weights are not supported; dequantise the checkpoint"),
        ({"hidden_act": "relu"}, "activation 'relu' is not supported"),
        ({"rope_interleaved": True}, "rope_interleaved=True is not supported, only False"),
        ({"is_llama_config": False}, "is_llama_config=False is not supported, only True"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5 is not supported"),
        ({"rope_scaling": {"rope_type": "proportional"}}, "rope_scaling of type 'proportional' is not supported"),
        ({"rope_scaling": {"type": "dynamic"}}, "rope_scaling of type 'dynamic' lacks factor"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0, "alpha": 1.0}}, "does not know: alpha"),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rope_scaling of type 'longrope' lacks long_factor, short_fact"),
        ({"rope_scaling": {"type": "linear"}}, "rope_scaling of type 'linear' lacks factor"),
        (
            {"rope_scaling": {"type": "linear", "factor": 4.0, "attention_factor": 2.0}},
            "rope_scaling of type 'linear' sets what brb_jax does not know: attention_factor",
        ),
        (
            {"rope_parameters": {"partial_rotary_factor": 0.5}},
            r"rope_parameters.partial_rotary_factor is not supported",
        ),
        (
            {"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {"rope_theta": 1.0}},
            "sets both rope_scaling and rope_parameters",
        ),
        ({"max_position_embeddings": None}, "lacks max_position_embeddings"),
        ({"num_hidden_layers": "2"}, "num_hidden_layers='2' is not a whole number of at least 1"),
        ({"num_hidden_layers": 2.0}, "num_hidden_layers=2.0 is not a whole number"),
        ({"head_dim": 0}, "head_dim=0 is not a whole number"),
        ({"max_position_embeddings": -5}, "max_position_embeddings=-5 is not a whole number"),
        ({"vocab_size": True}, "vocab_size=True is not a whole number"),
        ({"rope_theta": -1.0}, "rope_theta=-1.0 is not a number above zero"),
        ({"rope_scaling": "x"}, "rope_scaling is 'x', not an object"),
        ({"rope_scaling": []}, r"rope_scaling is \[\], not an object"),
        ({"architectures": "LlamaForCausalLM"}, "architectures is 'LlamaForCausalLM', not a list of names"),
        ({"architectures": [1]}, r"architectures is \[1\], not a list of names"),
        ({"num_key_value_heads": 2}, "num_heads 9 is not a multiple of num_kv_heads 2"),
    ],
)
def test_llama_refuses(changes, message):
    with pytest.raises(ValueError, match=message):
        read({**published.SMOLLM2_135M, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attn_logit_softcapping": 50.0}, "attn_logit_softcapping=50.0 is not supported, only None"),
        ({"use_bidirectional_attention": True}, "use_bidirectional_attention=True is not supported"),
        ({"layer_types": ["chunked_attention"] * 18}, "layer_types holds chunked_attention"),
        ({"layer_types": ["full_attention"]}, "layer_pattern names 1 layers, num_layers is 18"),
        ({"layer_types": None, "_sliding_window_pattern": 3}, "_sliding_window_pattern=3 is not supported, only 6"),
        ({"sliding_window": None}, "sliding_window is null"),
        ({"sliding_window": 0}, "a window of 0 positions is not a whole number of at least 1"),
        ({"sliding_window": -1}, "a window of -1 positions"),
        ({"num_hidden_layers": 0, "layer_types": None}, "num_hidden_layers=0 is not a whole number of at least 1"),
        ({"rope_parameters": {"full_attention": "x"}}, "full_attention is 'x', not an object"),
        ({"rope_parameters": {"rope_theta": 1.0}}, "rope_parameters sets rope_theta; a gemma3_text nests them"),
        (
            {"rope_parameters": {"sliding_attention": {"rope_type": "axial"}}},
            r"rope_parameters.sliding_attention of type 'axial' is not supported",
        ),
        (
            {"rope_parameters": {"full_attention": {"rope_type": "yarn", "factor": 2.0, "truncate": False}}},
            r"rope_parameters.full_attention.truncate is not supported, only True",
        ),
    ],
)
def test_gemma3_refuses(changes, message):
    with pytest.raises(ValueError, match=message):
        read({**published.GEMMA_3_270M, **changes})


@pytest.mark.parametrize(
    ("outer", "text", "message"),
    [
        ({"audio_config": {}}, {}, r"does not know: audio_config=\{\}"),
        ({}, {"altup_num_inputs": 4}, "does not know: altup_num_inputs=4"),
        ({"tie_word_embeddings": False}, {"tie_word_embeddings": True}, "tie_word_embeddings differs"),
    ],
)
def test_nested_gemma3_refuses(outer, text, message):
    hf = {**published.GEMMA_3_4B, **outer}
    with pytest.raises(ValueError, match=message):
        read({**hf, "text_config": {**hf["text_config"], **text}})


def test_nested_untied_embeddings():
    assert not read({**published.GEMMA_3_4B, "tie_word_embeddings": False}).tie_embeddings


def test_family_by_model_type_where_no_architecture_is_named():
    hf = {key: value for key, value in published.LLAMA_2_7B.items() if key != "architectures"}
    assert read(hf) == EXPECTED["LLAMA_2_7B"]


@pytest.mark.parametrize("hf", [{"architectures": ["LlamaForSequenceClassification"], "model_type": "llama"}, {}])
def test_unknown_architecture_names_the_supported_ones(hf):
    with pytest.raises(ValueError, match="not supported, only LlamaForCausalLM, Gemma3ForCausalLM, Gemma3ForCond"):
        family_of(hf)


@pytest.mark.parametrize("name", ["GEMMA_2_27B", "GEMMA_3_270M"])
@pytest.mark.parametrize("value", [0, -1, "256", None])
def test_query_pre_attn_scalar_that_scales_nothing_is_refused_by_name(name, value):
    hf = {**getattr(published, name), "query_pre_attn_scalar": value}
    with pytest.raises(ValueError, match=f"config.json: query_pre_attn_scalar={value!r} is not a number above zero"):
        read(hf)
