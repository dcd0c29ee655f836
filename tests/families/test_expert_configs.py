"""Published configs of the families with experts: read, built at full size without memory, split over a pod."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import published_experts
import pytest
from flax import nnx
from transformers import DeepseekV2Config, DeepseekV3Config, GptOssConfig, MixtralConfig, Qwen3MoeConfig

from brb_jax.checkpoints.streaming import flatten, parameter_shapes
from brb_jax.models.config import ClampedGate, DecoderConfig, Experts, Latent, LayerKind, RotaryScaling
from brb_jax.models.families import deepseek, family_of, gpt_oss, mixtral, qwen3_moe
from brb_jax.models.families.attributes import INERT
from brb_jax.models.partitioning import partition_spec
from brb_jax.scoring.parameters import abstract_decoder

DENSE, SPARSE = LayerKind(None, 10_000.0), LayerKind(None, 10_000.0, experts=True)
YARN = RotaryScaling("yarn", 40.0, original_max_positions=4096)
GPT_OSS_YARN = RotaryScaling(
    "yarn", 32.0, original_max_positions=4096, truncate=False, attention_factor=0.1 * math.log(32) + 1
)

EXPECTED = {
    "MIXTRAL_8X7B": DecoderConfig(
        family="mixtral",
        vocab_size=32000,
        num_layers=32,
        d_model=4096,
        num_heads=32,
        num_kv_heads=8,
        head_dim=128,
        d_mlp=14336,
        max_positions=32768,
        layer_kinds=(LayerKind(None, 1e6, experts=True),),
        layer_pattern=(0,) * 32,
        activation="silu",
        norm_eps=1e-5,
        attention_scale=128**-0.5,
        experts=Experts(num_experts=8, per_token=2, d_expert=14336, normalize=True),
    ),
    "QWEN3_30B_A3B": DecoderConfig(
        family="qwen3_moe",
        vocab_size=151936,
        num_layers=48,
        d_model=2048,
        num_heads=32,
        num_kv_heads=4,
        head_dim=128,
        d_mlp=6144,
        max_positions=40960,
        layer_kinds=(LayerKind(None, 1e6, experts=True),),
        layer_pattern=(0,) * 48,
        activation="silu",
        norm_eps=1e-6,
        attention_scale=128**-0.5,
        qk_norm=True,
        experts=Experts(num_experts=128, per_token=8, d_expert=768, normalize=True),
    ),
    "DEEPSEEK_V2": DecoderConfig(
        family="deepseek_v2",
        vocab_size=102400,
        num_layers=60,
        d_model=5120,
        num_heads=128,
        num_kv_heads=128,
        head_dim=192,
        d_mlp=12288,
        max_positions=163840,
        layer_kinds=tuple(dataclasses.replace(kind, rotary_scaling=YARN) for kind in (DENSE, SPARSE)),
        layer_pattern=(0,) + (1,) * 59,
        activation="silu",
        norm_eps=1e-6,
        attention_scale=192**-0.5 * (0.1 * math.log(40) + 1) ** 2,
        rotary_dim=64,
        latent=Latent(query_rank=1536, key_value_rank=512, value_dim=128, norm_eps=1e-6, interleaved=True),
        experts=Experts(
            num_experts=160, per_token=6, d_expert=1536, scale=16.0, num_groups=8, groups_per_token=3, d_shared=3072
        ),
    ),
    "DEEPSEEK_V3": DecoderConfig(
        family="deepseek_v3",
        vocab_size=129280,
        num_layers=61,
        d_model=7168,
        num_heads=128,
        num_kv_heads=128,
        head_dim=192,
        d_mlp=18432,
        max_positions=163840,
        layer_kinds=tuple(dataclasses.replace(kind, rotary_scaling=YARN) for kind in (DENSE, SPARSE)),
        layer_pattern=(0,) * 3 + (1,) * 58,
        activation="silu",
        norm_eps=1e-6,
        attention_scale=192**-0.5 * (0.1 * math.log(40) + 1) ** 2,
        rotary_dim=64,
        latent=Latent(query_rank=1536, key_value_rank=512, value_dim=128, norm_eps=1e-6, interleaved=True),
        experts=Experts(
            num_experts=256,
            per_token=8,
            d_expert=2048,
            score="sigmoid",
            normalize=True,
            scale=2.5,
            num_groups=8,
            groups_per_token=4,
            best_per_group=2,
            choice_bias=True,
            d_shared=2048,
        ),
    ),
    "GPT_OSS_20B": DecoderConfig(
        family="gpt_oss",
        vocab_size=201088,
        num_layers=24,
        d_model=2880,
        num_heads=64,
        num_kv_heads=8,
        head_dim=64,
        d_mlp=2880,
        max_positions=131072,
        layer_kinds=tuple(LayerKind(window, 150_000.0, GPT_OSS_YARN, experts=True) for window in (128, None)),
        layer_pattern=(0, 1) * 12,
        activation="silu",
        norm_eps=1e-5,
        attention_scale=1 / 8,
        attention_bias=True,
        attention_sinks=True,
        experts=Experts(
            num_experts=32,
            per_token=4,
            d_expert=2880,
            score="softmax_of_chosen",
            router_bias=True,
            bias=True,
            clamped=ClampedGate(limit=7.0, sharpness=1.702),
        ),
    ),
}
CLASSES = {
    "mixtral": (MixtralConfig, mixtral._UNDERSTOOD),
    "qwen3_moe": (Qwen3MoeConfig, qwen3_moe._UNDERSTOOD),
    "deepseek_v2": (DeepseekV2Config, deepseek._V2),
    "deepseek_v3": (DeepseekV3Config, deepseek._V3),
    "gpt_oss": (GptOssConfig, gpt_oss._UNDERSTOOD),
}
# Parameters of the main model, as the authors count them: in billions, of models that they publish.
SIZES = {
    "MIXTRAL_8X7B": 46.7,
    "QWEN3_30B_A3B": 30.5,
    "QWEN3_235B_A22B": 235.1,
    "DEEPSEEK_V2_LITE": 15.7,
    "DEEPSEEK_V2": 235.7,
    "DEEPSEEK_V3": 671.0,
    "MOONLIGHT_16B_A3B": 16.0,
    "GPT_OSS_20B": 20.9,
}


def read(hf):
    return family_of(hf).config_from_hf(hf)


@pytest.mark.parametrize("name", EXPECTED)
def test_published(name):
    assert read(getattr(published_experts, name)) == EXPECTED[name]


@pytest.mark.parametrize("name", SIZES)
def test_as_transformers_5_writes_it(name):
    hf = getattr(published_experts, name)
    rewritten = CLASSES[hf["model_type"]][0].from_dict(hf)
    assert read(rewritten.to_dict() | {"architectures": hf["architectures"]}) == read(hf)


@pytest.mark.parametrize("name", SIZES)
def test_published_size_without_its_memory(name):
    """The decoder's tree is that of the family's table, and as many parameters as the authors say."""
    config = read(getattr(published_experts, name))
    _, state = abstract_decoder(config, jnp.bfloat16)
    leaves = flatten(nnx.to_pure_dict(state))
    assert {path: leaf.shape for path, leaf in leaves.items()} == parameter_shapes(config)
    assert sum(math.prod(leaf.shape) for leaf in leaves.values()) / 1e9 == pytest.approx(SIZES[name], abs=0.06)
    kept = {path for path, leaf in leaves.items() if leaf.dtype != jnp.bfloat16}
    assert all(path.endswith("choice_bias") for path in kept) and bool(kept) == config.experts.choice_bias


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(
    "mesh", [{"data": 2, "fsdp": 4, "expert": 8, "tensor": 2}, {"data": 1, "fsdp": 8, "expert": 1, "tensor": 4}]
)
def test_every_parameter_of_a_published_size_is_split_evenly(name, mesh):
    config = read(getattr(published_experts, name))
    _, state = abstract_decoder(config, jnp.bfloat16)
    for path, variable in nnx.to_flat_state(state):
        shape = variable.get_value().shape
        spec = partition_spec(shape, variable.get_metadata("out_sharding"), mesh)
        parts = [math.prod(mesh[axis] for axis in np.atleast_1d(entry)) if entry else 1 for entry in spec]
        assert all(size % part == 0 for size, part in zip(shape, parts, strict=True)), path
        if math.prod(shape) > 1e8:  # what is large is split by every axis that splits such a parameter
            by_width_alone = path[-2] in ("query_down", "key_value_down", "router")
            by_expert = mesh["expert"] if len(shape) == 4 and shape[1] == config.experts.num_experts else 1
            assert math.prod(parts) == mesh["fsdp"] * (1 if by_width_alone else mesh["tensor"] * by_expert), path


@pytest.mark.parametrize("name", ["MIXTRAL_8X7B", "QWEN3_30B_A3B", "DEEPSEEK_V2_LITE", "DEEPSEEK_V3", "GPT_OSS_20B"])
def test_every_other_attribute_of_the_class_is_refused_by_name(name):
    hf = getattr(published_experts, name)
    cls, understood = CLASSES[hf["model_type"]]
    others = cls().to_dict().keys() - understood - INERT
    assert "chunk_size_feed_forward" in others
    for key in others | {"surprise"}:
        with pytest.raises(ValueError, match=f"does not know: {key}='surprise'"):
            read({**hf, key: "surprise"})


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("MIXTRAL_8X7B", {"num_local_experts": None}, "lacks num_local_experts"),
        ("MIXTRAL_8X7B", {"num_local_experts": "8"}, "num_local_experts='8' is not a whole number of at least 1"),
        ("MIXTRAL_8X7B", {"num_experts_per_tok": 9}, "9 experts a token, chosen from 8"),
        ("QWEN3_30B_A3B", {"use_sliding_window": True}, "use_sliding_window=True is not supported, only False"),
        ("QWEN3_30B_A3B", {"num_local_experts": 64}, "num_experts and num_local_experts give 2 numbers, not one"),
        ("QWEN3_30B_A3B", {"num_experts": None}, "num_experts and num_local_experts give 0 numbers, not one"),
        ("QWEN3_30B_A3B", {"num_experts": 0}, "num_experts=0 is not a whole number of at least 1"),
        ("QWEN3_30B_A3B", {"decoder_sparse_step": 0}, "decoder_sparse_step=0 is not a whole number of at least 1"),
        ("QWEN3_30B_A3B", {"mlp_only_layers": 5}, "mlp_only_layers=5 is not a list"),
        ("DEEPSEEK_V2", {"norm_topk_prob": True}, "norm_topk_prob=True is not supported, only False"),
        ("DEEPSEEK_V2", {"topk_method": "noaux_tc"}, "topk_method='noaux_tc' is not supported, only 'greedy'"),
        ("DEEPSEEK_V2", {"topk_group": None}, "lacks topk_group"),
        ("DEEPSEEK_V2", {"mlp_bias": True}, "mlp_bias=True is not supported"),
        ("DEEPSEEK_V2", {"scoring_func": "sigmoid"}, "scoring_func='sigmoid' is not supported, only 'softmax'"),
        ("DEEPSEEK_V3", {"scoring_func": "softmax"}, "scoring_func='softmax' is not supported, only 'sigmoid'"),
        ("DEEPSEEK_V3", {"moe_layer_freq": 2}, "moe_layer_freq=2 is not supported, only 1"),
        ("DEEPSEEK_V3", {"num_key_value_heads": 8}, "num_key_value_heads=8 is not supported, only 128"),
        ("DEEPSEEK_V3", {"n_group": 7}, "256 experts cannot be put into 7 groups"),
        ("DEEPSEEK_V3", {"kv_lora_rank": None}, "lacks kv_lora_rank"),
        ("DEEPSEEK_V3", {"q_lora_rank": 0}, "q_lora_rank=0 is not a whole number of at least 1"),
        ("DEEPSEEK_V3", {"first_k_dense_replace": -1}, "first_k_dense_replace=-1 is not a whole number of at least 0"),
        ("DEEPSEEK_V3", {"routed_scaling_factor": "x"}, "routed_scaling_factor='x' is not a number above zero"),
        (
            "DEEPSEEK_V3",
            {"rope_scaling": published_experts.DEEPSEEK_V3["rope_scaling"] | {"mscale_all_dim": "1.0"}},
            "rope_scaling.mscale_all_dim='1.0' is not a number above zero",
        ),
        ("GPT_OSS_20B", {"swiglu_limit": 0}, "swiglu_limit=0 is not a number above zero"),
        ("DEEPSEEK_V3", {"n_shared_experts": 0}, "n_shared_experts=0 is not a whole number of at least 1"),
        ("DEEPSEEK_V3", {"quantization_config": {"quant_method": "fp8"}}, "quantised weights are not supported; deq"),
        ("GPT_OSS_20B", {"quantization_config": {"quant_method": "mxfp4"}}, "quantised weights are not supported; deq"),
        ("GPT_OSS_20B", {"rope_scaling": None}, "neither rope_scaling nor rope_parameters"),
        ("GPT_OSS_20B", {"experts_per_token": 2}, "experts_per_token=2 is not supported, only 4"),
        ("GPT_OSS_20B", {"initial_context_length": 8192}, "initial_context_length=8192 is not supported, only 4096"),
        ("GPT_OSS_20B", {"hidden_act": "gelu"}, "hidden_act='gelu' is not supported, only 'silu'"),
    ],
)
def test_refused(name, changes, message):
    with pytest.raises(ValueError, match=message):
        read({**getattr(published_experts, name), **changes})


# Attribute, another value, and what it changes in the decoder's config.
def experts_of(name, **changes):
    return {"experts": dataclasses.replace(EXPECTED[name].experts, **changes)}


def latent_of(name, **changes):
    return {"latent": dataclasses.replace(EXPECTED[name].latent, **changes)}


@pytest.mark.parametrize(
    ("name", "key", "value", "changes"),
    [
        ("MIXTRAL_8X7B", "num_local_experts", 4, experts_of("MIXTRAL_8X7B", num_experts=4)),
        ("MIXTRAL_8X7B", "num_experts_per_tok", 3, experts_of("MIXTRAL_8X7B", per_token=3)),
        ("MIXTRAL_8X7B", "intermediate_size", 8, {"d_mlp": 8, **experts_of("MIXTRAL_8X7B", d_expert=8)}),
        ("MIXTRAL_8X7B", "sliding_window", 7, {"layer_kinds": (LayerKind(7, 1e6, experts=True),)}),
        ("QWEN3_30B_A3B", "norm_topk_prob", False, experts_of("QWEN3_30B_A3B", normalize=False)),
        ("QWEN3_30B_A3B", "moe_intermediate_size", 8, experts_of("QWEN3_30B_A3B", d_expert=8)),
        (
            "QWEN3_30B_A3B",
            "decoder_sparse_step",
            2,
            {"layer_kinds": (LayerKind(None, 1e6), LayerKind(None, 1e6, experts=True)), "layer_pattern": (0, 1) * 24},
        ),
        (
            "QWEN3_30B_A3B",
            "mlp_only_layers",
            list(range(48)),
            {"layer_kinds": (LayerKind(None, 1e6),), "experts": None},
        ),
        ("DEEPSEEK_V2", "topk_method", "greedy", experts_of("DEEPSEEK_V2", num_groups=1, groups_per_token=1)),
        ("DEEPSEEK_V2", "n_shared_experts", 1, experts_of("DEEPSEEK_V2", d_shared=1536)),
        ("DEEPSEEK_V3", "routed_scaling_factor", 1, experts_of("DEEPSEEK_V3", scale=1.0)),
        ("DEEPSEEK_V3", "topk_group", 2, experts_of("DEEPSEEK_V3", groups_per_token=2)),
        ("DEEPSEEK_V3", "q_lora_rank", None, latent_of("DEEPSEEK_V3", query_rank=None)),
        ("DEEPSEEK_V3", "v_head_dim", 64, latent_of("DEEPSEEK_V3", value_dim=64)),
        ("DEEPSEEK_V3", "kv_lora_rank", 64, latent_of("DEEPSEEK_V3", key_value_rank=64)),
        ("DEEPSEEK_V3", "rope_interleave", False, latent_of("DEEPSEEK_V3", interleaved=False)),
        ("DEEPSEEK_V3", "first_k_dense_replace", 1, {"layer_pattern": (0,) + (1,) * 60}),
        (
            "DEEPSEEK_V3",
            "rope_scaling",
            None,
            {"layer_kinds": (DENSE, SPARSE), "attention_scale": 192**-0.5},
        ),
        ("GPT_OSS_20B", "swiglu_limit", 3.0, experts_of("GPT_OSS_20B", clamped=ClampedGate(3.0, 1.702))),
        ("GPT_OSS_20B", "swiglu_alpha", 1.0, experts_of("GPT_OSS_20B", clamped=ClampedGate(7.0, 1.0))),
        ("GPT_OSS_20B", "attention_bias", False, {"attention_bias": False}),
        ("GPT_OSS_20B", "layer_types", None, {"layer_pattern": (0, 1) * 12}),
    ],
)
def test_attributes(name, key, value, changes):
    hf = getattr(published_experts, name)
    assert read({**hf, key: value}) == dataclasses.replace(EXPECTED[name], **changes)


def test_the_layer_that_predicts_the_token_after_the_next_has_no_part():
    family = family_of(published_experts.DEEPSEEK_V3)
    assert family.canonical_name("model.layers.61.eh_proj.weight") is None
    assert family.canonical_name("model.layers.6.mlp.gate.weight") == "model.layers.6.mlp.gate.weight"


def test_values_of_experts_are_theirs():
    """Every tensor of a tiny DeepSeek lands at its own layer and expert, transposed; a table of names, by hand."""
    hf = published_experts.MOONLIGHT_16B_A3B | {"num_hidden_layers": 3, "n_routed_experts": 6, "hidden_size": 4}
    config = read(hf | {"moe_intermediate_size": 5})
    family = family_of(hf)
    gate = next(t for t in family.tensors(config) if t.path == "layers_1_to_2/mlp/gate/kernel")
    assert gate.shape(config) == (2, 6, 4, 5)
    assert gate.names(config)[7] == "model.layers.2.mlp.experts.1.gate_proj.weight"
    assert jax.tree.map(np.shape, gate.to_canonical(np.zeros((5, 4)), config)) == (4, 5)
