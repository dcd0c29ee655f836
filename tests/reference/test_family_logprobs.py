"""Tiny random models of every family: each token's log-probability is torch's within 1e-4 nat, however computed."""

import numpy as np
import pytest
import torch
from tiny_families import TINY
from torch_reference import token_logprobs
from transformers import AutoModelForCausalLM

from brb_jax.checkpoints import open_checkpoint
from brb_jax.models.families import FAMILIES
from brb_jax.run import load_model
from brb_jax.scoring.mesh import make_mesh, row_multiple
from brb_jax.tokens.packing import plan
from brb_jax.tokens.request import Request

pytestmark = pytest.mark.reference

LENGTH = 40  # of a case's context, at most


def model_of(config):
    """Random weights; norms and biases too, which start at ones and zeros, where a mix-up would not show."""
    torch.manual_seed(0)
    config.initializer_range = 0.2
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1 or "norm" in name or "bias" in name:
                parameter.add_(torch.randn_like(parameter) * 0.2)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):  # a parameter in all but name
                buffer.add_(torch.randn_like(buffer) * 0.2)
    return model


def requests_of(config) -> list[Request]:
    """Options of 1 to 6 tokens behind contexts of up to 40, two of which begin alike; every token is scored."""
    random = np.random.default_rng(0)
    first = random.integers(0, config.vocab_size, LENGTH)
    contexts = [first, np.append(first[:23], random.integers(0, config.vocab_size, 4)), first[:3]]
    contexts += [random.integers(0, config.vocab_size, length) for length in (9, 1)]
    return [
        Request(case, option, np.append(context, option_ids).astype(np.int32), scored_from=1)
        for case, context in enumerate(contexts)
        for option, option_ids in enumerate(random.integers(0, config.vocab_size, size) for size in (1, 4, 6))
    ]


def scored(scorer, requests, sharing, length_class) -> list[np.ndarray]:
    """The log-probability of every scored token of every request, in order."""
    batches = plan(
        requests,
        sharing=sharing,
        buckets=[128],
        batch_tokens=512,
        row_multiple=row_multiple(scorer.mesh),
        length_class=length_class,
    )
    logprobs = [np.full(request.num_scored, np.nan) for request in requests]
    for batch in map(batches.batch, range(batches.num_batches)):
        values = np.asarray(scorer(batch).logprob_BS)
        for row, column in np.argwhere(batch.requests_BS >= 0):
            position = batch.positions_BT[row, batch.slots_BS[row, column]]
            logprobs[batch.requests_BS[row, column]][position] = values[row, column]
    return logprobs


@pytest.mark.parametrize("name", TINY)
def test_every_token_within_1e_4_nat(name, tmp_path):
    model = model_of(TINY[name])
    model.save_pretrained(tmp_path)
    requests = requests_of(TINY[name])
    expected = np.concatenate([token_logprobs(model, request.ids) for request in requests])
    checkpoint = open_checkpoint(tmp_path)
    # Each is a program to compile, which is most of what this takes; two show that neither sharing nor a mesh matters.
    for mesh, sharing in (({"data": 2, "fsdp": 2, "tensor": 2}, "tree"), ({"data": 8}, "none")):
        scorer = load_model(checkpoint, "float32", make_mesh(mesh))
        scores = np.concatenate(scored(scorer, requests, sharing, checkpoint.config.length_class))
        assert np.abs(scores - expected).max() < 1e-4, (mesh, sharing)


def test_every_family_has_two_configs_here():
    counts = {family.name: sum(name.startswith(f"{family.name}_") for name in TINY) for family in FAMILIES}
    assert min(counts.values()) >= 2, counts
