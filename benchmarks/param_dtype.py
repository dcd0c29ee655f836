"""What parameters in bfloat16 or int8 change: log-probabilities, choices and accuracy against float32, and memory.

    python benchmarks/param_dtype.py --model=quickstart/smollm2-135m --data=quickstart/data

Products are float32 throughout, so the differences are those of the parameters alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np
from absl import app, flags, logging

from brb_jax.checkpoints import Checkpoint, open_checkpoint
from brb_jax.config import BATCH_TOKENS
from brb_jax.data.reader import read_cases
from brb_jax.models.products import Products
from brb_jax.run import load_model
from brb_jax.scoring.batches import score_batches
from brb_jax.scoring.mesh import make_mesh, row_multiple
from brb_jax.tokens.encode import encode_cases
from brb_jax.tokens.packing import Plan, plan
from brb_jax.tokens.request import Request
from brb_jax.tokens.tokenizer import load_tokenizer

_MODEL = flags.DEFINE_string("model", "quickstart/smollm2-135m", "As for brb_jax.main.")
_DATA = flags.DEFINE_list("data", ["quickstart/data"], "As for brb_jax.main.")
_LIMIT = flags.DEFINE_integer("limit", None, "Only the first so many cases.", 1)


@dataclasses.dataclass(frozen=True, eq=False)
class Scored:
    """The log-probability of every request, in nats, and the bytes of the parameters."""

    logprobs_R: np.ndarray
    parameter_bytes: int


def score(checkpoint: Checkpoint, batches: Plan, num_requests: int, param_dtype: str) -> Scored:
    mesh = make_mesh({})
    model = load_model(checkpoint, param_dtype, mesh, Products("float32"))
    logprobs_R = np.full(num_requests, np.nan)
    for scored in score_batches(model, batches, range(batches.num_batches)):
        logprobs_R[scored.requests_R] = scored.logprobs_R
    return Scored(logprobs_R, sum(leaf.nbytes for leaf in jax.tree.leaves(model.parameters)))


def choices(requests: Sequence[Request], logprobs_R: np.ndarray) -> dict[int, int]:
    """The option of the highest log-probability, by case."""
    best: dict[int, tuple[float, int]] = {}
    for request, logprob in zip(requests, logprobs_R.tolist(), strict=True):
        candidate = (logprob, -request.option_index)
        best[request.case_index] = max(best.get(request.case_index, candidate), candidate)
    return {case: -option for case, (_, option) in best.items()}


def main(argv: Sequence[str]) -> None:
    del argv
    logging.set_verbosity(logging.WARNING)
    cases = read_cases(_DATA.value, limit=_LIMIT.value).cases
    checkpoint = open_checkpoint(_MODEL.value)
    tokenized = encode_cases(
        cases,
        load_tokenizer(checkpoint.tokenizer_path),
        option_delimiter=" ",
        max_length=checkpoint.config.max_positions,
        vocab_size=checkpoint.config.vocab_size,
    )
    requests = [request for case in tokenized for request in case.requests]
    batches = plan(requests, batch_tokens=BATCH_TOKENS[jax.default_backend()], row_multiple=row_multiple(make_mesh({})))
    correct = {i: [option.type for option in case.options].index("correct") for i, case in enumerate(cases)}
    reference = score(checkpoint, batches, len(requests), "float32")
    chosen = choices(requests, reference.logprobs_R)
    print(f"{len(chosen)} cases, {len(requests)} options; differences are of options' log-probabilities, in nat")
    print(f"{'param_dtype':12}{'MiB':>8}{'mean':>10}{'median':>10}{'largest':>10}{'other choices':>16}{'accuracy':>11}")
    for dtype in ("float32", "bfloat16", "int8"):
        scored = reference if dtype == "float32" else score(checkpoint, batches, len(requests), dtype)
        differences = np.abs(scored.logprobs_R - reference.logprobs_R)
        now = choices(requests, scored.logprobs_R)
        changed = sum(now[case] != chosen[case] for case in chosen)
        accuracy = sum(now[case] == correct[case] for case in now) / len(now)
        print(f"{dtype:12}{scored.parameter_bytes / 2**20:8.0f}{differences.mean():10.4f}", end="")
        print(f"{np.median(differences):10.4f}{differences.max():10.4f}{changed:16}{accuracy:11.1%}", flush=True)


if __name__ == "__main__":
    app.run(main)
