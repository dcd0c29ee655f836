"""The story of one evaluation, top to bottom: files in, a run directory out."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import pathlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from flax import nnx
from jax.sharding import Mesh

from brb_jax import baselines, provenance
from brb_jax.checkpoints import Checkpoint, open_checkpoint
from brb_jax.checkpoints.own_parameters import OwnCheckpoint, OwnConfig, open_own_model
from brb_jax.config import BATCH_TOKENS, RunConfig, RunError, length_limit
from brb_jax.data.case import Case
from brb_jax.data.filename import SUFFIXES
from brb_jax.data.reader import Dataset, read_cases
from brb_jax.models.config import DecoderConfig
from brb_jax.models.own_model import names_own_model
from brb_jax.models.products import DEFAULT_PRODUCTS, Products
from brb_jax.results import atomic, selection, table, writers
from brb_jax.results.journal import Journal, ScoreKey
from brb_jax.results.metrics import reference, summarise
from brb_jax.results.report import prompt_tail, write_report
from brb_jax.results.sample import OptionScore, Sample
from brb_jax.scoring import mesh as meshes
from brb_jax.scoring.batches import ScoredBatch, score_batches
from brb_jax.scoring.loglikelihood import LogLikelihood
from brb_jax.scoring.parameters import abstract_decoder, abstract_parameters, with_values
from brb_jax.scoring.progress import Progress, say
from brb_jax.scoring.self_check import check_dependence, check_returns
from brb_jax.tokens.encode import encode_cases
from brb_jax.tokens.packing import Plan, plan
from brb_jax.tokens.request import Request, TokenizedCase
from brb_jax.tokens.tokenizer import load_tokenizer


def evaluate(config: RunConfig) -> dict[str, Any] | None:
    """Evaluates a model on benchmark files and writes the run directory.

    Every process of a run calls this with the same config; process 0 alone writes.

    Returns:
        What `results.json` holds, on process 0; None on the others.

    Raises:
        DataError, BaselineError, CheckpointError, TokenizerError, EncodingError, PlanError, JournalError, MeshError,
            RunError, OSError: The input is at fault. Raised before a parameter is loaded.
        OwnModelError: A model of the user's own is not found, or does not do what it must; before anything is scored.
    """
    if (baseline := baselines.named(config.model)) is not None:
        return evaluate_baseline(config, baseline)
    with meshes.together():
        check_directory(config)
        dataset = read_dataset(config)
        mesh = meshes.make_mesh(config.mesh)
        checkpoint: Checkpoint | OwnCheckpoint
        if names_own_model(config.model):
            checkpoint = open_own_model(config.model, mesh)
        else:
            checkpoint = open_checkpoint(config.model)
        config = settled(config, checkpoint.config)
        decoder = None if isinstance(checkpoint.config, OwnConfig) else checkpoint.config
        limit = length_limit(
            config.max_length,
            config.allow_extrapolation,
            checkpoint.config.max_positions,
            has_table=decoder is not None and decoder.learned_positions,
        )
        tokenizer = load_tokenizer(checkpoint.tokenizer_path, bos=config.bos)
        tokenized = encode_cases(
            dataset.cases,
            tokenizer,
            option_delimiter=config.option_delimiter,
            boundary=config.boundary,
            max_length=limit,
            overlong=config.overlong,
            vocab_size=checkpoint.config.vocab_size,
        )
        requests = [request for case in tokenized for request in case.requests]
        plain = isinstance(checkpoint.config, OwnConfig) and checkpoint.config.signature == "plain"
        batches = plan(
            requests,
            sharing=config.sharing or "tree",
            buckets=config.buckets,
            max_buckets=config.max_buckets,
            batch_tokens=config.batch_tokens or BATCH_TOKENS[jax.default_backend()],
            row_multiple=meshes.row_multiple(mesh),
            alone=plain,
            longest_row=limit if plain else None,
            length_class=decoder.length_class if decoder is not None else lambda length: 0,
            name=functools.partial(_named, dataset.cases),
        )
        fingerprint = provenance.scoring_fingerprint(config, dataset, checkpoint, tokenizer)
    with meshes.together():
        meshes.agree(f"{fingerprint} {batches.buckets}", "what to score")
    say(f"{len(dataset.cases)} cases, {len(requests)} options: {told_work(batches)}")
    if dataset.cases and not requests:
        cut = "" if config.overlong == "truncate_left" else ", or cut contexts with --overlong=truncate_left"
        say(f"no case fits the limit of {limit} tokens: raise it with --max_length{cut}")

    scores = score(config, dataset.cases, requests, batches, checkpoint, mesh, fingerprint)
    if scores is None:
        return None

    samples = [
        selection.sample(case, tokens, _option_scores(case, tokens, scores), config.selection)
        for case, tokens in zip(dataset.cases, tokenized, strict=True)
    ]
    run = provenance.record(config, dataset, checkpoint, tokenizer, tokenized, batches, mesh, fingerprint)
    return publish(config, dataset, samples, summarise(samples, config.selection, dataset.skipped_cases), run)


def told_work(batches: Plan) -> str:
    """What a plan computes, and what it spares where it spares any."""
    if not batches.num_batches:
        return "nothing to compute"
    slots, tokens = batches.work.slots, batches.work.option_tokens
    spared = f", instead of {tokens:,} tokens with one pass per option" if slots < tokens else ""
    return f"{slots:,} slots to compute in rows of {', '.join(str(bucket.T) for bucket in batches.buckets)}{spared}"


def check_directory(config: RunConfig) -> None:
    """Tells a mistaken `--out` before anything is read; makes nothing that stays.

    Of several processes, process 0 alone writes there, and which that is is not known yet: they do not try to. Nor is
    anything tried in a bucket.

    Raises:
        RunError: The directory cannot be made or written in, or holds the data.
    """
    if not atomic.is_local(config.out):
        return
    out = pathlib.Path(config.out).expanduser()
    data = [pathlib.Path(place).expanduser().resolve() for place in config.data if atomic.is_local(place)]
    if out.resolve() in data or any(file.name.endswith(SUFFIXES) for file in out.glob("*")):
        raise RunError(f"--out={config.out} holds benchmark files, which results must not be mixed with; name another")
    if jax.distributed.is_initialized():
        return
    try:
        there = next(place for place in (out, *out.parents) if place.exists())
        with tempfile.TemporaryDirectory(dir=there):
            pass
    except OSError as error:
        raise RunError(f"--out={config.out} cannot be written in ({error.strerror}); name another") from None


def read_dataset(config: RunConfig) -> Dataset:
    """The cases that the settings name."""
    return read_cases(
        config.data,
        on_bad_case=config.on_bad_case,
        limit=config.limit,
        only=config.only,
        rules=config.rules,
    )


def evaluate_baseline(config: RunConfig, name: str) -> dict[str, Any]:
    """The same of a baseline, which needs neither tokenizer nor device, and is quick enough to begin anew each time."""
    check_directory(config)
    dataset = read_dataset(config)
    choices = baselines.choices(name, dataset.cases, config.baseline_seed)
    fingerprint = provenance.baseline_fingerprint(config, dataset)
    # Nothing is written to the journal: it is opened to keep other evaluations out of the directory.
    with Journal.open(config.directory / "journal", fingerprint):
        samples = [selection.chosen(case, choices[case.case_id]) for case in dataset.cases]
        results = summarise(samples, None, dataset.skipped_cases)
        return publish(config, dataset, samples, results, provenance.baseline_record(config, dataset, fingerprint))


def publish(
    config: RunConfig, dataset: Dataset, samples: Sequence[Sample], results: dict[str, Any], run: Mapping[str, Any]
) -> dict[str, Any]:
    """Writes the run's files and prints its tables, the baselines' accuracies beside the run's own."""
    results["baselines"] = {
        name: reference(samples, labels, dataset.skipped_cases)
        for name, labels in baselines.references(dataset.cases, config.baseline_seed).items()
        if labels
    }
    out = config.directory
    writers.write_json(out / "run.json", run)
    writers.write_samples(out / "samples.jsonl", samples)
    writers.write_json(out / "results.json", results)
    write_report(
        out / "report.html",
        results,
        samples,
        run,
        {case.case_id: prompt_tail(case) for case in dataset.cases},
        {f"{baselines.PREFIX}{name}": row for name, row in results["baselines"].items()},
    )
    table.print_tables(results)
    # Not `say`, which asks JAX which process this is: a baseline leaves the devices alone.
    print(f"written: {out / 'report.html'}, and results.json, samples.jsonl and run.json beside it", file=sys.stderr)
    return results


def score(
    config: RunConfig,
    cases: Sequence[Case],
    requests: Sequence[Request],
    batches: Plan,
    checkpoint: Checkpoint | OwnCheckpoint,
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
        with meshes.together():
            if jax.process_index() == 0:
                journal = stack.enter_context(Journal.open(config.directory / "journal", fingerprint))
        done = journal.scores if journal else {}
        unscored = [any(keys[r] not in done for r in batches.request_indices(i)) for i in range(batches.num_batches)]
        todo = np.flatnonzero(meshes.from_process_zero(np.asarray(unscored, bool))).tolist()
        if len(todo) < batches.num_batches:
            say(f"{len(unscored) - len(todo)} of {len(unscored)} batches are in the journal already")
        if todo:
            with meshes.together():
                products = Products(config.activation_dtype, config.matmul_precision or "highest")
                if isinstance(checkpoint, OwnCheckpoint):
                    log_likelihood = load_own_model(checkpoint, batches, mesh)
                else:
                    log_likelihood = load_model(checkpoint, config.param_dtype or "float32", mesh, products)
            progress = stack.enter_context(Progress([keys[r] for i in todo for r in batches.request_indices(i)]))
            for scored in score_batches(log_likelihood, batches, todo):
                new = _by_key(scored, keys)
                if journal is not None:
                    journal.append(scored.index, new)
                progress.advance(new, batches.num_tokens(scored.index))
        return dict(journal.scores) if journal is not None else None


def load_model(checkpoint: Checkpoint, dtype: str, mesh: Mesh, products: Products = DEFAULT_PRODUCTS) -> LogLikelihood:
    """The checkpoint's decoder on the mesh, its parameters in `dtype`, ready to score."""
    graph, state = abstract_decoder(checkpoint.config, dtype, products)
    parameters = checkpoint.load(abstract_parameters(state, mesh))
    return LogLikelihood(
        functools.partial(nnx.merge, graph), with_values(state, dict(parameters)), checkpoint.config.vocab_size, mesh
    )


def load_own_model(checkpoint: OwnCheckpoint, batches: Plan, mesh: Mesh) -> LogLikelihood:
    """The user's own model on the mesh, once it has shown on one small batch that it keeps its word."""
    own, name, vocab_size = checkpoint.own, checkpoint.config.name, checkpoint.config.vocab_size
    bucket = min(batches.buckets, key=lambda bucket: bucket.B * bucket.T)
    check_returns(name, own, checkpoint.abstract_parameters(mesh), bucket, mesh)
    log_likelihood = LogLikelihood(own.bind, checkpoint.load(mesh), vocab_size, mesh, own.signature)
    check_dependence(name, log_likelihood, bucket, batches.some_ids(), own.max_length)
    say(f"{name}: {own.signature}() does as it must, on {bucket.B} × {bucket.T} slots")
    return log_likelihood


def settled(config: RunConfig, model: DecoderConfig | OwnConfig) -> RunConfig:
    """The config with what it leaves to the model filled in: what is shared, and in what precision is computed.

    Raises:
        RunError: It asks for what a model of the user's own cannot do, or settles itself.
    """
    if isinstance(model, DecoderConfig):
        dtype = config.dtype or "float32"
        return dataclasses.replace(
            config,
            sharing=config.sharing or "tree",
            param_dtype=config.param_dtype or dtype,
            activation_dtype=config.activation_dtype or dtype,
            matmul_precision=config.matmul_precision or "highest",
        )
    for name in ("dtype", "param_dtype", "activation_dtype", "matmul_precision"):
        if getattr(config, name) is not None:
            raise RunError(f"--{name}: {model.name} settles its precision itself; leave the flag out")
    if model.signature == "tree":
        return dataclasses.replace(config, sharing=config.sharing or "tree")
    if config.sharing in ("tree", "case"):
        raise RunError(
            f"--sharing={config.sharing}: {model.name} is a {model.signature} model, which cannot share a prefix; "
            "leave the flag out, or give the model a `tree` function"
        )
    return dataclasses.replace(config, sharing="none")


def _named(cases: Sequence[Case], request: Request) -> str:
    case = cases[request.case_index]
    return f"case {case.case_id}, option {case.options[request.option_index].label}"


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
