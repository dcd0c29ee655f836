"""The story of one evaluation, top to bottom: files in, a run directory out."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from absl import logging
from etils import epath
from jax.sharding import Mesh

from brb_jax import provenance
from brb_jax.checkpoints import Checkpoint, open_checkpoint
from brb_jax.data.case import Case
from brb_jax.data.reader import Dataset, read_cases
from brb_jax.models.config import DecoderConfig
from brb_jax.results import selection, table, writers
from brb_jax.results.journal import Journal, ScoreKey
from brb_jax.results.metrics import summarise
from brb_jax.results.report import prompt_tail, write_report
from brb_jax.results.sample import OptionScore, Selection
from brb_jax.scoring import mesh as meshes
from brb_jax.scoring.batches import ScoredBatch, score_batches
from brb_jax.scoring.loglikelihood import LogLikelihood
from brb_jax.scoring.parameters import abstract_decoder, abstract_parameters, with_values
from brb_jax.scoring.progress import Progress
from brb_jax.tokens.encode import encode_cases
from brb_jax.tokens.packing import Plan, plan
from brb_jax.tokens.request import Request, TokenizedCase
from brb_jax.tokens.tokenizer import Tokenizer, load_tokenizer

# Slots of a batch on each device, unless --batch_tokens says otherwise. A CPU gains nothing from several rows at once.
BATCH_TOKENS = {"cpu": 2_048, "gpu": 32_768, "tpu": 32_768}


class RunError(ValueError):
    """Settings that contradict each other or the model."""


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Everything one evaluation depends on. Field by field the flags of `brb_jax.main`, which documents them."""

    model: str
    data: tuple[str, ...]
    out: str
    selection: Selection = "logprob"
    option_delimiter: str = " "
    bos: Literal["auto", "always", "never"] = "auto"
    boundary: Literal["cover", "lm_eval"] = "cover"
    max_length: int | None = None
    allow_extrapolation: bool = False
    overlong: Literal["skip", "truncate_left"] = "skip"
    on_bad_case: Literal["fail", "skip"] = "fail"
    limit: int | None = None
    dtype: Literal["float32", "bfloat16"] = "float32"
    sharing: Literal["tree", "case", "none"] = "tree"
    buckets: tuple[int, ...] | None = None
    max_buckets: int = 4
    batch_tokens: int | None = None
    mesh: Mapping[str, int] = dataclasses.field(default_factory=dict)


def evaluate(config: RunConfig) -> dict[str, Any] | None:
    """Evaluates a model on benchmark files and writes the run directory.

    Every process of a run calls this with the same config; process 0 alone writes.

    Returns:
        What `results.json` holds, on process 0; None on the others.

    Raises:
        DataError, CheckpointError, TokenizerError, EncodingError, JournalError, MeshError, RunError: The input is
            at fault. Raised before a parameter is loaded.
    """
    dataset = read_cases(config.data, on_bad_case=config.on_bad_case, limit=config.limit)
    checkpoint = open_checkpoint(config.model)
    tokenizer = load_tokenizer(checkpoint.tokenizer_path, bos=config.bos)
    tokenized = encode_cases(
        dataset.cases,
        tokenizer,
        option_delimiter=config.option_delimiter,
        boundary=config.boundary,
        max_length=length_limit(config, checkpoint.config),
        overlong=config.overlong,
        vocab_size=checkpoint.config.vocab_size,
    )
    requests = [request for case in tokenized for request in case.requests]

    mesh = meshes.make_mesh(config.mesh)
    batches = plan(
        requests,
        sharing=config.sharing,
        buckets=config.buckets,
        max_buckets=config.max_buckets,
        batch_tokens=(config.batch_tokens or BATCH_TOKENS[jax.default_backend()]) * mesh.shape["data"],
        row_multiple=meshes.row_multiple(mesh),
    )
    fingerprint = scoring_fingerprint(config, dataset, checkpoint, tokenizer)
    meshes.agree(_digest({"fingerprint": fingerprint, "plan": repr(batches.buckets)}), "what to score")

    scores = score(config, dataset.cases, requests, batches, checkpoint, mesh, fingerprint)
    if scores is None:
        return None

    samples = [
        selection.sample(case, tokens, _option_scores(case, tokens, scores), config.selection)
        for case, tokens in zip(dataset.cases, tokenized, strict=True)
    ]
    results = summarise(samples, config.selection, skipped=dataset.skipped_cases)
    run = provenance.record(config, dataset, checkpoint, tokenizer, tokenized, batches, mesh, fingerprint)
    out = run_directory(config)
    writers.write_json(out / "run.json", run)
    writers.write_samples(out / "samples.jsonl", samples)
    writers.write_json(out / "results.json", results)
    write_report(
        out / "report.html", results, samples, run, {case.case_id: prompt_tail(case) for case in dataset.cases}
    )
    table.print_tables(results)
    return results


def score(
    config: RunConfig,
    cases: Sequence[Case],
    requests: Sequence[Request],
    batches: Plan,
    checkpoint: Checkpoint,
    mesh: Mesh,
    fingerprint: Mapping[str, Any],
) -> dict[ScoreKey, OptionScore] | None:
    """Scores every request that the run's journal does not hold yet, and journals it batch by batch.

    Returns:
        The scores of all requests on process 0, which keeps the journal; None on the others.
    """
    keys = [(cases[request.case_index].case_id, request.option_index) for request in requests]
    with contextlib.ExitStack() as stack:
        journal = None
        if jax.process_index() == 0:
            journal = stack.enter_context(Journal.open(run_directory(config) / "journal", fingerprint))
        done = journal.scores if journal else {}
        unscored = [any(keys[r] not in done for r in batches.request_indices(i)) for i in range(batches.num_batches)]
        todo = np.flatnonzero(meshes.from_process_zero(np.asarray(unscored, bool))).tolist()
        if len(todo) < batches.num_batches:
            logging.info("%d of %d batches are in the journal already", batches.num_batches - len(todo), len(unscored))
        if todo:
            log_likelihood = load_model(checkpoint, config.dtype, mesh)
            progress = stack.enter_context(Progress([keys[r] for i in todo for r in batches.request_indices(i)]))
            for scored in score_batches(log_likelihood, batches, todo):
                new = _by_key(scored, keys)
                if journal is not None:
                    journal.append(scored.index, new)
                progress.advance(new, batches.num_tokens(scored.index))
        return dict(journal.scores) if journal is not None else None


def load_model(checkpoint: Checkpoint, dtype: str, mesh: Mesh) -> LogLikelihood:
    """The checkpoint's decoder on the mesh, ready to score."""
    graph, state = abstract_decoder(checkpoint.config, jnp.dtype(dtype))
    parameters = checkpoint.load(abstract_parameters(state, mesh))
    return LogLikelihood(graph, with_values(state, parameters), checkpoint.config.vocab_size, mesh)


def length_limit(config: RunConfig, model: DecoderConfig) -> int:
    """The longest input, in tokens: the model's own limit, or the flag's where that may differ.

    Raises:
        RunError: The flag asks for more than the model was made for, without `allow_extrapolation`.
    """
    if config.max_length is None:
        return model.max_positions
    if config.max_length > model.max_positions and not config.allow_extrapolation:
        raise RunError(
            f"--max_length={config.max_length} is more than the model was made for ({model.max_positions} tokens): "
            "lower it, or add --allow_extrapolation"
        )
    return config.max_length


def scoring_fingerprint(
    config: RunConfig, dataset: Dataset, checkpoint: Checkpoint, tokenizer: Tokenizer
) -> dict[str, Any]:
    """What the scores of a run depend on. Not in it: what may only change their rounding (mesh, batches, sharing)."""
    return {
        "model": checkpoint.fingerprint,
        "tokenizer": tokenizer.fingerprint,
        "dataset": dataset.fingerprint,
        **{
            name: getattr(config, name)
            for name in (
                "option_delimiter",
                "boundary",
                "max_length",
                "overlong",
                "on_bad_case",
                "limit",
                "dtype",
            )
        },
    }


def run_directory(config: RunConfig) -> epath.Path:
    """Where the run is written; `~` is the home directory."""
    return epath.Path(config.out).expanduser()


def _digest(value: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()


def _by_key(scored: ScoredBatch, keys: Sequence[ScoreKey]) -> dict[ScoreKey, OptionScore]:
    columns = (scored.requests_R, scored.logprobs_R, scored.tokens_R, scored.greedy_R)
    return {
        keys[request]: OptionScore(logprob, tokens, greedy)
        for request, logprob, tokens, greedy in zip(*(column.tolist() for column in columns), strict=True)
    }


def _option_scores(
    case: Case, tokenized: TokenizedCase, scores: Mapping[ScoreKey, OptionScore]
) -> list[OptionScore] | None:
    if tokenized.status != "ok":
        return None
    return [scores[case.case_id, request.option_index] for request in tokenized.requests]

