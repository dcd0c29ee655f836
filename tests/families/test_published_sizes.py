"""Published models at full size, as shapes alone: their known numbers of parameters, and how a mesh holds them."""

import json
import math

import jax.numpy as jnp
import numpy as np
import published
import published_experts
import pytest
from flax import nnx

from brb_jax.checkpoints.streaming import flatten, parameter_shapes
from brb_jax.models.config import from_json, to_json
from brb_jax.models.families import FAMILIES, family_of
from brb_jax.models.partitioning import partition_spec
from brb_jax.scoring.parameters import abstract_decoder

# Parameters as the Hub counts them, and a mesh.
MODELS = {
    "SMOLLM2_135M": (134_515_008, {"fsdp": 4, "tensor": 3}),
    "LLAMA_2_7B": (6_738_415_616, {"fsdp": 4, "tensor": 4}),
    "LLAMA_3_1_8B": (8_030_261_248, {"fsdp": 4, "tensor": 4}),
    "GEMMA_3_270M": (268_098_176, {"fsdp": 4, "tensor": 4}),
    "QWEN_2_5_3B": (3_085_938_688, {"fsdp": 4, "tensor": 4}),
    "QWEN_3_8B": (8_190_735_360, {"fsdp": 4, "tensor": 4}),
    "MISTRAL_7B_V0_1": (7_241_732_096, {"fsdp": 4, "tensor": 4}),
    "GEMMA_2B": (2_506_172_416, {"fsdp": 4, "tensor": 4}),
    "GEMMA_2_27B": (27_227_128_320, {"fsdp": 4, "tensor": 4}),
    "OLMO_2_1B": (1_484_916_736, {"fsdp": 4, "tensor": 4}),
    "OLMO_3_7B": (7_298_011_136, {"fsdp": 4, "tensor": 2}),
    "SMOLLM_3_3B": (3_075_098_624, {"fsdp": 4, "tensor": 4}),
    "PHI_3_MINI_4K": (3_821_079_552, {"fsdp": 4, "tensor": 4}),
    "PHI_4_MINI": (3_836_021_760, {"fsdp": 4, "tensor": 4}),
    "GRANITE_3_3_8B": (8_170_864_640, {"fsdp": 4, "tensor": 4}),
    "GPT2_MEDIUM": (354_823_168, {"fsdp": 4, "tensor": 4}),
    "PYTHIA_1B": (1_011_781_632, {"fsdp": 4, "tensor": 4}),
}

# What `tensor` cannot split: fewer key/value heads than devices, a vocabulary of an odd size, a table of positions.
NOT_BY_TENSOR = {
    "GEMMA_3_270M": {"key", "value"},
    "QWEN_2_5_3B": {"key", "value"},
    "GEMMA_2B": {"key", "value"},
    "GRANITE_3_3_8B": {"embedder"},
    "GPT2_MEDIUM": {"embedder", "position_embedder"},
}


@pytest.mark.parametrize("name", MODELS)
def test_full_size(name):
    count, mesh = MODELS[name]
    hf = getattr(published, name)
    config = family_of(hf).config_from_hf(hf)
    assert from_json(json.loads(json.dumps(to_json(config)))) == config
    _, state = abstract_decoder(config, jnp.bfloat16)
    shapes = {path: tuple(leaf.shape) for path, leaf in flatten(nnx.to_pure_dict(state)).items()}
    assert shapes == parameter_shapes(config)
    assert sum(math.prod(shape) for shape in shapes.values()) == count
    for path, variable in nnx.to_flat_state(state):
        shape, axes = variable.get_value().shape, variable.get_metadata("out_sharding")
        spec = partition_spec(shape, axes, {"data": 1, **mesh})
        split_by = {axis for entry in spec if entry for axis in np.atleast_1d(entry)}
        if "kernel" in path or "table" in path:
            whole = NOT_BY_TENSOR.get(name, set()) & set(path)
            assert split_by == ({"fsdp"} if whole else {"fsdp", "tensor"}), path


def test_every_family_is_here_or_among_those_with_experts():
    """`test_expert_configs` builds the latter."""
    experts = [hf for hf in vars(published_experts).values() if isinstance(hf, dict) and "architectures" in hf]
    configs = [getattr(published, name) for name in MODELS] + experts
    assert {family_of(hf).name for hf in configs} == {family.name for family in FAMILIES}
