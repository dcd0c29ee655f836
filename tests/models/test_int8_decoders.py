"""Decoders with int8 matrices score as those whose matrices were rounded, whatever they are made of."""

from __future__ import annotations

import dataclasses
import math

import jax
import numpy as np
import pytest
from flax import nnx
from tiny_decoders import CONFIG, logprobs, random_requests, scorer

from brb_jax.models.config import ClampedGate, DecoderConfig, Experts, Latent, LayerKind
from brb_jax.models.decoder import Decoder
from brb_jax.models.int8 import with_int8_matrices
from brb_jax.scoring.parameters import abstract_decoder

EXPERTS = Experts(
    num_experts=4,
    per_token=2,
    d_expert=16,
    score="softmax_of_chosen",
    router_bias=True,
    bias=True,
    clamped=ClampedGate(limit=0.7, sharpness=1.7),
    d_shared=24,
)
SPARSE = {"layer_kinds": (LayerKind(None, 1e4, experts=True),), "layer_pattern": (0, 0), "experts": EXPERTS}
CONFIGS = {
    "tied, without gates": dataclasses.replace(
        CONFIG,
        tie_embeddings=True,
        gated_mlp=False,
        mlp_bias=True,
        attention_bias=True,
        learned_positions=True,
        layer_kinds=(LayerKind(None, None),),
        layer_pattern=(0, 0, 0),
    ),
    "latent attention": dataclasses.replace(
        CONFIG,
        tie_embeddings=False,
        rotary_dim=8,
        num_kv_heads=6,
        latent=Latent(query_rank=20, key_value_rank=12, value_dim=10, norm_eps=1e-6, interleaved=True),
    ),
    "experts": dataclasses.replace(CONFIG, num_layers=2, **SPARSE),
}


def rounded(config: DecoderConfig) -> tuple[dict, dict]:
    """Int8 values with scales, and the float32 parameters that these stand for."""
    int8 = nnx.to_pure_dict(nnx.state(with_int8_matrices(Decoder(config, rngs=nnx.Rngs(0)))))

    def multiplied(tree: dict) -> dict:
        found = {}
        for name, value in tree.items():
            if isinstance(value, dict):
                found[name] = multiplied(value)
            elif f"{name}_scale" in tree:
                found[name] = np.asarray(value, np.float32) * np.asarray(tree[f"{name}_scale"])
            elif not name.endswith("_scale"):
                found[name] = value
        return found

    return int8, multiplied(int8)


@pytest.mark.parametrize("name", CONFIGS)
def test_scores_are_those_of_the_rounded_matrices(name):
    config = CONFIGS[name]
    int8, floats = rounded(config)
    requests = random_requests(np.random.default_rng(0), contexts=6)
    expected = logprobs(scorer(floats, config), requests)
    mesh = {"data": 2, "expert" if config.experts else "fsdp": 2, "tensor": 2}
    found = logprobs(scorer(int8, config, mesh, "int8"), requests)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def contracted(names: list[str]) -> tuple[int, ...] | None:
    """The axes that a parameter is contracted over, counted from the end; None if it is no matrix, or the router's."""
    if names[-1] not in ("kernel", "table") or "router" in names or "position_embedder" in names:
        return None
    if "attention" in names and not names[-2].endswith("_down"):
        return (-3, -2) if "out" in names else (-3,)
    return (-1,) if names[-1] == "table" else (-2,)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_matrix_differs_by_at_most_half_a_step(name):
    """A step is the largest absolute value of a channel, divided by 127; what is no matrix differs by nothing."""
    exact = nnx.to_pure_dict(nnx.state(Decoder(CONFIGS[name], rngs=nnx.Rngs(0))))
    _, floats = rounded(CONFIGS[name])
    assert jax.tree.structure(exact) == jax.tree.structure(floats)
    leaves = zip(jax.tree_util.tree_leaves_with_path(exact), jax.tree.leaves(floats), strict=True)
    for (path, value), found in leaves:
        names = [key.key for key in path]
        difference = np.abs(np.asarray(value) - found)
        axes = contracted(names)
        if axes is None:
            assert difference.max() == 0, names
        else:
            step = np.abs(np.asarray(value)).max(axes, keepdims=True) / 127
            assert 0.4 < (difference / step).max() < 0.5001, names


def test_a_quarter_of_the_memory():
    config = dataclasses.replace(CONFIG, d_model=2048, d_mlp=8192, num_heads=32, num_kv_heads=8, head_dim=64)
    sizes = {}
    for dtype in ("float32", "int8"):
        _, state = abstract_decoder(config, dtype)
        sizes[dtype] = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    assert 0.25 < sizes["int8"] / sizes["float32"] < 0.252
