"""Rotary parameters as Hugging Face writes them, against numbers that were published or worked out by hand."""

import math

import published
import pytest

from brb_jax.models.families import family_of
from brb_jax.models.families.rotary import read_rotary

LENGTHS = {"original_max_position_embeddings": 4096}


def read(hf):
    return family_of(hf).config_from_hf(hf)


def scaling(parameters, max_positions=131_072):
    return read_rotary(parameters, "rope_scaling", 10_000.0, max_positions)[1]


def test_yarn_s_attention_factor():
    """0.1 · ln(factor) + 1, which OLMo 3's file states for a factor of 8; a ratio where two scales are given."""
    assert scaling({"type": "yarn", "factor": 8.0}).attention_factor == pytest.approx(1.2079441541679836, rel=1e-12)
    assert scaling({"type": "yarn", "factor": 8.0, "attention_factor": 1.5}).attention_factor == 1.5
    assert scaling({"type": "yarn", "factor": 0.5}).attention_factor == 1.0
    scales = {"mscale": 0.707, "mscale_all_dim": 1.0}
    both = scaling({"type": "yarn", "factor": 40.0, **scales}).attention_factor
    assert both == pytest.approx((0.0707 * math.log(40) + 1) / (0.1 * math.log(40) + 1), rel=1e-12)


def test_yarn_s_defaults():
    yarn = scaling({"rope_type": "yarn", "factor": 4.0}, max_positions=32_768)
    assert (yarn.beta_fast, yarn.beta_slow, yarn.truncate, yarn.original_max_positions) == (32, 1, True, 32_768)
    assert scaling({"rope_type": "yarn", **LENGTHS}).factor == 32.0


def test_longrope_s_attention_factor():
    """√(1 + ln 32 / ln 4096) for 131,072 positions made of 4,096: 1.1902, as Phi's own code has it."""
    (kind,) = family_of(published.PHI_4_MINI).config_from_hf(published.PHI_4_MINI).layer_kinds
    assert kind.rotary_scaling.attention_factor == pytest.approx(1.1902380714238083, rel=1e-12)
    assert kind.rotary_scaling.original_max_positions == 4096
    assert (kind.rotary_scaling.long_factors[1], kind.rotary_scaling.short_factors[1]) == (1.118320672, 1.0)


@pytest.mark.parametrize("name", ["su", "yarn"])
def test_phi_3_s_older_names_of_longrope(name):
    hf = {**published.PHI_4_MINI, "rope_scaling": {**published.PHI_4_MINI["rope_scaling"], "type": name}}
    assert family_of(hf).config_from_hf(hf) == family_of(hf).config_from_hf(published.PHI_4_MINI)


def test_factors_for_another_number_of_pairs_are_refused():
    hf = {**published.PHI_4_MINI, "partial_rotary_factor": 0.5}
    with pytest.raises(ValueError, match=r"short_factor and long_factor have lengths \(48, 48\), 32 pairs are rotated"):
        family_of(hf).config_from_hf(hf)


def test_olmo_3_scales_the_layers_without_a_window():
    kinds = family_of(published.OLMO_3_7B).config_from_hf(published.OLMO_3_7B).layer_kinds
    assert [(kind.window, kind.rotary_scaling and kind.rotary_scaling.kind) for kind in kinds] == [
        (4096, None),
        (None, "yarn"),
    ]


BASES = [
    ("LLAMA_2_7B", "rope_theta"),
    ("GEMMA_3_270M", "rope_theta"),
    ("GEMMA_3_270M", "rope_local_base_freq"),
    ("OLMO_3_7B", "rope_theta"),
    ("PHI_3_MINI_4K", "rope_theta"),
    ("PYTHIA_1B", "rotary_emb_base"),
]


@pytest.mark.parametrize(("name", "key"), BASES, ids=str)
@pytest.mark.parametrize("value", [0, -1.0, "10000", True, 10**400], ids=lambda value: str(value)[:5])
def test_a_base_that_is_none_is_refused_by_name(name, key, value):
    """Zero too, which no default may stand in for."""
    hf = {**getattr(published, name), key: value}
    with pytest.raises(ValueError, match=f"config.json: {key}={value!r} is not a number above zero"):
        family_of(hf).config_from_hf(hf)


@pytest.mark.parametrize("key", ["rope_theta", "factor", "low_freq_factor", "original_max_position_embeddings"])
def test_rotary_parameters_that_are_no_numbers_above_zero(key):
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, **LENGTHS}
    for value in (0, "8"):
        with pytest.raises(ValueError, match=f"config.json: rope_scaling.{key}={value!r} is not a number above zero"):
            scaling({**llama3, key: value})


def test_a_base_that_transformers_versions_read_in_two_ways_is_refused():
    """transformers 5 takes OLMo 3's `rope_theta` for layers with full attention alone, version 4 for all."""
    with pytest.raises(ValueError, match=r"rope_theta=44.0 is that of all layers to transformers 4, and to transf"):
        read({**published.OLMO_3_7B, "rope_theta": 44.0})
    nested = {kind: {"rope_type": "default", "rope_theta": 44.0} for kind in ("full_attention", "sliding_attention")}
    kinds = read(
        {**published.OLMO_3_7B, "rope_theta": None, "rope_scaling": None, "rope_parameters": nested}
    ).layer_kinds
    assert {kind.rotary_base for kind in kinds} == {44.0}


def test_factors_for_another_number_of_pairs_are_refused_in_every_family():
    factors = {"rope_type": "longrope", "short_factor": [1.0, 2.0], "long_factor": [1.0, 2.0], **LENGTHS}
    with pytest.raises(ValueError, match=r"short_factor and long_factor have lengths \(2, 2\), 64 pairs are rotated"):
        read({**published.QWEN_3_8B, "rope_scaling": factors})
