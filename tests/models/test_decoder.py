"""The decoder: what it declares, and what a token of it depends on."""

import dataclasses
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.sharding import PartitionSpec
from tiny_decoders import CONFIG

from brb_jax.models.config import LayerKind, RotaryScaling, from_json, to_json
from brb_jax.models.decoder import Decoder
from brb_jax.models.partitioning import partition_spec
from brb_jax.scoring.parameters import abstract_decoder, with_values

LLAMA_3_8B = dataclasses.replace(
    CONFIG,
    vocab_size=128_256,
    num_layers=32,
    d_model=4096,
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
    d_mlp=14_336,
    layer_kinds=(LayerKind(None, 5e5),),
    layer_pattern=(0,) * 32,
)


def test_published_size_without_its_memory():
    """Llama 3 8B has 8,030,261,248 parameters; only shapes are made."""
    _, state = abstract_decoder(LLAMA_3_8B, jnp.bfloat16)
    leaves = jax.tree.leaves(nnx.to_pure_dict(state))
    assert sum(math.prod(leaf.shape) for leaf in leaves) == 8_030_261_248
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype("bfloat16")}


@pytest.mark.parametrize("mesh", [{"data": 2, "fsdp": 8, "tensor": 4}, {"data": 1, "fsdp": 1, "tensor": 8}])
def test_every_parameter_of_a_published_size_is_split_evenly(mesh):
    _, state = abstract_decoder(LLAMA_3_8B, jnp.bfloat16)
    for path, variable in nnx.to_flat_state(state):
        shape = variable.get_value().shape
        spec = partition_spec(shape, variable.get_metadata("out_sharding"), mesh)
        parts = [math.prod(mesh[axis] for axis in np.atleast_1d(entry)) if entry else 1 for entry in spec]
        assert all(size % part == 0 for size, part in zip(shape, parts, strict=True)), path
        if len(shape) >= 3:  # a layer's kernels: split by every axis of the mesh that splits parameters
            assert math.prod(parts) == mesh["fsdp"] * mesh["tensor"], path


def test_a_dimension_that_does_not_divide_is_replicated():
    mesh = {"data": 1, "fsdp": 2, "tensor": 4}
    assert partition_spec((576, 3, 64), ("embed", "kv_heads", "head_dim"), mesh) == PartitionSpec("fsdp", None, None)
    with pytest.raises(ValueError, match="headz"):
        partition_spec((4,), ("headz",), mesh)
    with pytest.raises(ValueError, match="shape"):
        partition_spec((4, 4), ("embed",), mesh)


@pytest.mark.parametrize(("window", "jit"), [(None, True), (4, True), (4, False)])
def test_hidden_states_depend_on_the_visible_past_alone(window, jit):
    """By derivatives along each token's embedding, through two layers: exactly zero for the future and for siblings."""
    kinds = (LayerKind(window, 1e4),)
    config = dataclasses.replace(CONFIG, num_layers=2, layer_kinds=kinds, layer_pattern=(0, 0))
    graph, state = nnx.split(Decoder(config, rngs=nnx.Rngs(0)))
    values = nnx.to_pure_dict(state)
    tokens = jnp.arange(11)[None]  # distinct, so that a row of the table stands for a slot
    positions = jnp.asarray([[0, 1, 2, 3, 4, 5, 6, 5, 6, 7, 0]])
    ends = jnp.asarray([[10, 10, 10, 10, 10, 7, 7, 10, 10, 10, 11]])
    directions = jax.random.normal(jax.random.key(1), (11, config.d_model))

    def out(steps):
        table = values["embedder"]["table"].at[:11].add(steps[:, None] * directions)
        abstract = abstract_decoder(config, jnp.float32)[1]
        moved = with_values(abstract, values | {"embedder": {"table": table}})
        return nnx.merge(graph, moved).hidden_states(tokens, positions, ends)[0].sum(-1)

    depends = np.asarray(jax.jacfwd(jax.jit(out) if jit else out)(jnp.zeros(11))) != 0  # [slot, token]
    paths = [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 6]]
    paths += [[0, 1, 2, 3, 4, 7], [0, 1, 2, 3, 4, 7, 8], [0, 1, 2, 3, 4, 7, 8, 9], [10]]
    reach = 2 * ((window or 100) - 1) + 1  # two layers hand on what lies a window back, twice
    for slot, path in enumerate(paths):
        assert np.flatnonzero(depends[slot]).tolist() == path[-reach:]


def test_config_survives_json():
    assert from_json(to_json(LLAMA_3_8B)) == LLAMA_3_8B
    with pytest.raises(ValueError, match="surprise"):
        from_json(to_json(CONFIG) | {"surprise": 1})
    with pytest.raises(ValueError, match="layer_kinds"):
        from_json({})


def test_length_classes():
    """Alike without scaling by length; two with LongRoPE; one a length beyond the original one with dynamic scaling."""
    longrope = RotaryScaling(
        "longrope", 2.0, original_max_positions=8, short_factors=(1.0,) * 8, long_factors=(2.0,) * 8
    )
    dynamic = RotaryScaling("dynamic", 2.0, original_max_positions=8)
    for scaling, classes in (
        (None, [0, 0, 0]),
        (RotaryScaling("yarn", 2.0, original_max_positions=8), [0, 0, 0]),
        (longrope, [0, 1, 1]),
        (dynamic, [0, 9, 10]),
    ):
        kinds = (LayerKind(None, 1e4), LayerKind(None, 1e4, scaling))
        config = dataclasses.replace(CONFIG, layer_kinds=kinds)
        assert [config.length_class(length) for length in (8, 9, 10)] == classes
        assert from_json(json.loads(json.dumps(to_json(config)))) == config


def test_contradictory_configs_are_refused():
    rotary = ({"head_dim": 15}, {"rotary_dim": 5}, {"rotary_dim": 18}, {"rotary_dim": 0})
    for changes in ({"num_heads": 5}, {"layer_pattern": (0,)}, {"layer_pattern": (0, 1, 2)}, *rotary):
        with pytest.raises(ValueError):
            dataclasses.replace(CONFIG, **changes)
