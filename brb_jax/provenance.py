"""How a run's numbers came about: what they depend on, and the record that lets them be made again (`run.json`)."""

from __future__ import annotations

import dataclasses
import datetime
import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax.sharding import Mesh

from brb_jax.checkpoints import Checkpoint
from brb_jax.checkpoints.own_parameters import OwnCheckpoint
from brb_jax.config import RunConfig
from brb_jax.data.reader import Dataset
from brb_jax.tokens.packing import Plan
from brb_jax.tokens.request import TokenizedCase
from brb_jax.tokens.tokenizer import Tokenizer

_PACKAGES = ("brb-jax", "jax", "jaxlib", "flax", "orbax-checkpoint", "transformers", "tokenizers", "numpy", "qwix")
_FIRST_IDS = 8


def scoring_fingerprint(
    config: RunConfig, dataset: Dataset, checkpoint: Checkpoint | OwnCheckpoint, tokenizer: Tokenizer
) -> dict[str, Any]:
    """What the scores of a run depend on. Not in it: what may only change their rounding (mesh, batches, sharing)."""
    return {
        "model": checkpoint.fingerprint,
        "tokenizer": tokenizer.fingerprint,
        # In the tokenizer's fingerprint too; by itself, so that a run that is not gone on with can name the flag.
        "bos": [tokenizer.backend.id_to_token(i) for i in tokenizer.prefix_ids],
        "dataset": dataset.fingerprint,
        "rules": dataclasses.asdict(config.rules),
        **{
            name: getattr(config, name)
            for name in (
                "option_delimiter",
                "boundary",
                "max_length",
                "overlong",
                "on_bad_case",
                "limit",
                "param_dtype",
                "activation_dtype",
                "matmul_precision",
            )
        },
    }


def baseline_fingerprint(config: RunConfig, dataset: Dataset) -> dict[str, Any]:
    """What a baseline's choices depend on."""
    return {
        "model": config.model,
        "dataset": dataset.fingerprint,
        "rules": dataclasses.asdict(config.rules),
        "on_bad_case": config.on_bad_case,
        "limit": config.limit,
        "baseline_seed": config.baseline_seed,
    }


def record(
    config: RunConfig,
    dataset: Dataset,
    checkpoint: Checkpoint | OwnCheckpoint,
    tokenizer: Tokenizer,
    tokenized: Sequence[TokenizedCase],
    plan: Plan,
    mesh: Mesh,
    fingerprint: Mapping[str, Any],
) -> dict[str, Any]:
    """The record of a run as strict JSON values."""
    scored = [case for case in tokenized if case.requests]
    devices = list(mesh.devices.flat)
    return {
        **_head(config, fingerprint),
        "model": {"source": checkpoint.source, "config": dataclasses.asdict(checkpoint.config)},
        "tokenizer": tokenizer.describe(),
        "first_ids_fed": scored[0].requests[0].ids[:_FIRST_IDS].tolist() if scored else [],
        "dataset": {
            **_dataset(dataset),
            "boundary_rules_differ": sum(case.boundary_differs for case in tokenized),
            "special_token_text": sum(case.special_text for case in tokenized),
        },
        "plan": {
            "buckets": [dataclasses.asdict(bucket) for bucket in plan.buckets],
            **dataclasses.asdict(plan.work),
        },
        "devices": {
            "mesh": dict(mesh.shape),
            "kind": devices[0].device_kind,
            "platform": devices[0].platform,
            "count": len(devices),
            "processes": jax.process_count(),
        },
        "versions": _versions(),
    }


def baseline_record(config: RunConfig, dataset: Dataset, fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a baseline's run, with the keys of `record`: None stands for what a baseline has not."""
    return {
        **_head(config, fingerprint),
        "model": {"source": config.model, "config": None},
        "tokenizer": None,
        "first_ids_fed": None,
        "dataset": {**_dataset(dataset), "boundary_rules_differ": None, "special_token_text": None},
        "plan": None,
        "devices": None,
        "versions": _versions(),
    }


def _head(config: RunConfig, fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "settings": dataclasses.asdict(config),
        "fingerprint": dict(fingerprint),
    }


def _dataset(dataset: Dataset) -> dict[str, Any]:
    return {
        "files": list(dataset.files),
        "cases": len(dataset.cases),
        "skipped": [str(fault) for fault in dataset.skipped],
    }


def _versions() -> dict[str, str]:
    packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"python": platform.python_version(), **packages}
