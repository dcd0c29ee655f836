"""Tiny random models of both families with their features on: every option within 2e-4 nat of torch."""

import numpy as np
import pytest
import torch
from tiny_decoders import logprobs, random_requests
from torch_reference import logprob
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, LlamaConfig, LlamaForCausalLM

from brb_jax.checkpoints import open_checkpoint
from brb_jax.run import load_model
from brb_jax.scoring.mesh import make_mesh

pytestmark = pytest.mark.reference

SIZES = {"vocab_size": 128, "intermediate_size": 72, "num_hidden_layers": 4, "max_position_embeddings": 512}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
LLAMAS = {
    "plain": {"hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 2},
    "scaled_untied_biased": {
        "hidden_size": 40,
        "num_attention_heads": 5,
        "num_key_value_heads": 5,
        "head_dim": 12,
        "rope_parameters": LLAMA3,
        "tie_word_embeddings": False,
        "attention_bias": True,
        "mlp_bias": True,
    },
    "linear_tied_multi_query": {
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "rope_parameters": {"rope_type": "linear", "rope_theta": 5_000.0, "factor": 2.0},
        "tie_word_embeddings": True,
    },
}
GEMMAS = {
    "short_window": {"hidden_size": 48, "num_attention_heads": 4, "num_key_value_heads": 1, "sliding_window": 4},
    "scaled_global_layers": {
        "hidden_size": 40,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "sliding_window": 33,
        "final_logit_softcapping": 6.0,
        "query_pre_attn_scalar": 24,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 1_000.0},
            "full_attention": {"rope_type": "linear", "rope_theta": 50_000.0, "factor": 8.0},
        },
    },
}


def model_of(family: str, name: str):
    torch.manual_seed(0)
    if family == "llama":
        model = LlamaForCausalLM(LlamaConfig(**SIZES, **LLAMAS[name], initializer_range=0.2))
    else:
        head_dim = {"head_dim": 16}
        model = Gemma3ForCausalLM(Gemma3TextConfig(**SIZES, **head_dim, **GEMMAS[name], initializer_range=0.2))
    with torch.no_grad():  # norms and biases start at one and zero, where a mistake would not show
        for parameter_name, parameter in model.named_parameters():
            if "norm" in parameter_name or "bias" in parameter_name:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    model.set_attn_implementation("eager")
    return model.to(torch.float32).eval()


@pytest.mark.parametrize(
    ("family", "name"), [("llama", name) for name in LLAMAS] + [("gemma3", name) for name in GEMMAS]
)
def test_every_option_within_2e_4_nat(family, name, tmp_path):
    model = model_of(family, name)
    model.save_pretrained(tmp_path)
    requests = random_requests(np.random.default_rng(0), contexts=12, length=(1, 200))
    expected = np.array([logprob(model, request.ids, request.scored_from) for request in requests])
    checkpoint = open_checkpoint(tmp_path)
    for mesh in ({"data": 8}, {"fsdp": 2, "tensor": 2}):
        scorer = load_model(checkpoint, "float32", make_mesh(mesh))
        for sharing in ("tree", "none"):
            scores = logprobs(scorer, requests, sharing=sharing)
            assert np.abs(scores - expected).max() < 2e-4, (mesh, sharing)
