"""Tiny random decoders, ready to score, and requests for them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import numpy as np
from flax import nnx
from jax.typing import DTypeLike

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.decoder import Decoder
from brb_jax.scoring.batches import score_batches
from brb_jax.scoring.loglikelihood import LogLikelihood
from brb_jax.scoring.mesh import make_mesh, row_multiple
from brb_jax.scoring.parameters import abstract_decoder, abstract_parameters, with_values
from brb_jax.tokens.packing import plan
from brb_jax.tokens.request import Request

CONFIG = DecoderConfig(
    family="llama",
    vocab_size=128,
    num_layers=3,
    d_model=48,
    num_heads=6,
    num_kv_heads=2,
    head_dim=16,
    d_mlp=96,
    max_positions=1024,
    layer_kinds=(LayerKind(None, 1e4), LayerKind(9, 1e3)),
    layer_pattern=(1, 0, 1),
    activation="silu",
    norm_eps=1e-5,
    attention_scale=0.25,
)


def random_values(config: DecoderConfig = CONFIG, seed: int = 0) -> dict:
    """Canonical parameters drawn by the decoder's own initialisers."""
    return nnx.to_pure_dict(nnx.state(Decoder(config, rngs=nnx.Rngs(seed))))


def scorer(
    values: dict, config: DecoderConfig = CONFIG, mesh: dict[str, int] | None = None, dtype: DTypeLike = np.float32
) -> LogLikelihood:
    """The decoder on a mesh over all devices (eight virtual ones in the tests), or on that of `mesh`."""
    device_mesh = make_mesh(mesh or {})
    graph, state = abstract_decoder(config, dtype)
    abstract = abstract_parameters(state, device_mesh)
    placed = jax.tree.map(lambda value, target: jax.device_put(value, target.sharding), values, abstract)
    return LogLikelihood(
        functools.partial(nnx.merge, graph), with_values(state, placed), config.vocab_size, device_mesh
    )


def logprobs(log_likelihood: LogLikelihood, requests: Sequence[Request], **settings) -> np.ndarray:
    """Log-probability of every request, in order; `settings` go to `plan`."""
    settings = {"batch_tokens": 1024, "row_multiple": row_multiple(log_likelihood.mesh)} | settings
    batches = plan(requests, **settings)
    scores = np.full(len(requests), np.nan)
    for scored in score_batches(log_likelihood, batches, range(batches.num_batches)):
        scores[scored.requests_R] = scored.logprobs_R
    return scores


def random_requests(
    rng: np.random.Generator, contexts: int, options: int = 4, length: tuple[int, int] = (1, 120), vocab: int = 128
) -> list[Request]:
    """`options` random continuations of 1 to 6 tokens behind each of `contexts` random contexts."""
    requests = []
    for case in range(contexts):
        context = rng.integers(0, vocab, rng.integers(*length))
        for option in range(options):
            ids = np.concatenate([context, rng.integers(0, vocab, rng.integers(1, 7))]).astype(np.int32)
            requests.append(Request(case, option, ids, len(context)))
    return requests
