"""Holds a converted checkpoint against transformers with torch: the same tokens, the log-probability of each.

The only module that imports torch, and only when it is asked to.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from brb_jax.checkpoints import CheckpointError, open_checkpoint
from brb_jax.data.prompt import render
from brb_jax.generator.file import generate_cases
from brb_jax.generator.spec import FileSpec
from brb_jax.run import load_model
from brb_jax.scoring.mesh import make_mesh
from brb_jax.tokens.packing import plan
from brb_jax.tokens.request import Request
from brb_jax.tokens.tokenizer import load_tokenizer

# Float32 sums in two orders differ by about 1e-4 nat in a model of 30 layers; a wrong layout, scale or rotary order by
# more than a hundredth.
BOUND = 1e-3

_MOST_TOKENS = 400


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Attributes:
    tokens: How many tokens were compared.
    largest: The largest difference of a token's log-probability, in nats; NaN if either side is.
    token: The token it is at, as the tokenizer spells it.
    ours, theirs: Its log-probabilities.
    """

    tokens: int
    largest: float
    token: str
    ours: float
    theirs: float

    @property
    def passes(self) -> bool:
        return self.largest <= BOUND

    def __str__(self) -> str:
        return (
            f"log-probabilities of {self.tokens} tokens differ from those of transformers and torch by at most "
            f"{self.largest:.1e} nat ({self.token!r}: {self.ours:.5f} here, {self.theirs:.5f} there); "
            f"{'within' if self.passes else 'beyond'} the bound of {BOUND:.0e}"
        )


def check_torch() -> None:
    """Whether torch can be asked.

    Raises:
        CheckpointError: It is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise CheckpointError("--verify: torch is not installed; pip install torch, or leave --verify out")


def compare_with_torch(source: Path, converted: str, dtype: DTypeLike) -> Comparison:
    """Scores a generated text with both.

    Args:
        source: The Hugging Face directory that was converted.
        converted: The converted directory.
        dtype: That of its parameters, to which torch's are rounded as well; both compute in float32.
    """
    checkpoint = open_checkpoint(converted)
    tokenizer = load_tokenizer(checkpoint.tokenizer_path)
    ids = _ids(tokenizer, checkpoint.config.max_positions)
    ours = _log_probabilities(checkpoint, ids)
    theirs = _torch_log_probabilities(source, ids, dtype)
    differences = np.abs(ours - theirs)
    worst = int(np.argmax(np.where(np.isnan(differences), np.inf, differences)))
    return Comparison(
        tokens=len(ours),
        largest=float(differences[worst]),
        token=str(tokenizer.backend.id_to_token(int(ids[worst + 1]))),
        ours=float(ours[worst]),
        theirs=float(theirs[worst]),
    )


def _ids(tokenizer, max_positions: int) -> np.ndarray:
    (case,) = generate_cases(FileSpec(domain="words", task="MemoryRet", cases=1))
    ids = tokenizer.encode(render(case).prompt).ids
    return np.concatenate([np.asarray(tokenizer.prefix_ids, np.int32), ids])[: min(_MOST_TOKENS, max_positions) + 1]


def _log_probabilities(checkpoint, ids: np.ndarray) -> np.ndarray:
    """Of every token but the first, by the converted checkpoint."""
    batches = plan([Request(0, 0, ids, 1)], batch_tokens=len(ids), row_multiple=1)
    batch = batches.batch(0)
    scores = load_model(checkpoint, "float32", make_mesh({"data": 1, "tensor": -1}))(batch)
    return np.asarray(scores.logprob_BS, np.float64)[batch.requests_BS == 0]


def _torch_log_probabilities(source: Path, ids: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_pretrained(
        source, dtype=torch.float32, attn_implementation="eager", use_safetensors=True
    ).eval()
    if jnp.dtype(dtype) == jnp.bfloat16:
        for parameter in model.parameters():
            parameter.data = parameter.data.bfloat16().float()
    inputs = torch.as_tensor(ids.astype(np.int64))
    with torch.inference_mode():
        logits = model(inputs[None, :-1]).logits[0]
    return torch.log_softmax(logits.double(), -1).gather(-1, inputs[1:, None])[:, 0].numpy()
