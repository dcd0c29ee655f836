"""Checkpoints that transformers writes, and the logits its models give from them."""

import numpy as np
import pytest
import tiny_models
from decoder_logits import logits

from brb_jax.checkpoints import open_checkpoint
from brb_jax.checkpoints.streaming import flatten

pytestmark = pytest.mark.reference

NUM_TOKENS = 60

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 100.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
GEMMA_ROTARY = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
}
MODELS = {
    "llama": tiny_models.llama(),
    "llama3_rotary": tiny_models.llama(rope_parameters=LLAMA3),
    "linear_rotary": tiny_models.llama(rope_parameters={"rope_type": "linear", "rope_theta": 100.0, "factor": 4.0}),
    "biases": tiny_models.llama(attention_bias=True, mlp_bias=True, tie_word_embeddings=True, hidden_act="gelu"),
    "gemma3": tiny_models.gemma3(
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        final_logit_softcapping=3.0,
        rope_parameters=GEMMA_ROTARY,
    ),
    "gemma3_untied": tiny_models.gemma3(tie_word_embeddings=False, attention_bias=True, query_pre_attn_scalar=16),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


@pytest.fixture
def reference(model, tmp_path):
    """transformers' model of the same values."""
    import torch
    from transformers import AutoModelForCausalLM

    model.save(tmp_path / "ours")
    return AutoModelForCausalLM.from_pretrained(
        tmp_path / "ours", dtype=torch.float32, attn_implementation="eager"
    ).eval()


@pytest.mark.parametrize("max_shard_size", ["5GB", "20KB"])
def test_saved_by_transformers(model, reference, max_shard_size, tmp_path):
    reference.save_pretrained(tmp_path / "theirs", max_shard_size=max_shard_size)
    checkpoint = open_checkpoint(tmp_path / "theirs")
    assert checkpoint.config == open_checkpoint(tmp_path / "ours").config
    params = flatten(checkpoint.load(tiny_models.abstract_params(checkpoint.config)))
    expected = tiny_models.canonical(model)
    assert params.keys() == expected.keys()
    for path, value in expected.items():
        np.testing.assert_array_equal(params[path], value, err_msg=path)


def test_logits(reference, tmp_path):
    import torch

    tokens = np.random.default_rng(0).integers(0, tiny_models.V, NUM_TOKENS)
    with torch.no_grad():
        expected = reference(torch.tensor(tokens)[None]).logits[0].numpy()
    np.testing.assert_allclose(logits(open_checkpoint(tmp_path / "ours"), tokens), expected, rtol=0, atol=1e-5)
