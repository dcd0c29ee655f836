"""Evaluates a base model on BeyondRetrievalBench files: python -m brb_jax.main --model=… --data=… --out=…

Reads benchmark files, scores every option of every case, and writes a run directory: samples.jsonl, results.json,
run.json and report.html. Started again with the same flags, it goes on where it was stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from absl import flags

from brb_jax import command_line
from brb_jax.config import RunConfig, RunError

_MODEL = flags.DEFINE_string(
    "model",
    None,
    "Required. A converted directory, a Hugging Face directory or Hub id, a .gguf file, or baseline:solver, "
    "baseline:nearest, baseline:prerevision or baseline:random.",
    required=True,
)
_DATA = flags.DEFINE_list(
    "data", None, "Required. Benchmark files or directories of them, separated by commas.", required=True
)
_OUT = flags.DEFINE_string("out", None, "Required. Run directory to write, or to resume.", required=True)

_SELECTION: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "selection", "logprob", ["logprob", "ppl", "bytes"], "Which score chooses the answer; the others stand beside it."
)
_OPTION_DELIMITER = flags.DEFINE_string(
    "option_delimiter", " ", "Between prompt and option, unless white space separates them already."
)
_BOS: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "bos", "auto", ["auto", "always", "never"], "Whether BOS is fed; auto: as the tokenizer does."
)
_BOUNDARY: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "boundary", "cover", ["cover", "lm_eval"], "Which tokens are scored: all that cover the option, or lm-eval's split."
)
_MAX_LENGTH = flags.DEFINE_integer("max_length", None, "Longest input in tokens; default: the model's own limit.", 1)
_ALLOW_EXTRAPOLATION = flags.DEFINE_bool("allow_extrapolation", False, "Let --max_length exceed the model's limit.")
_OVERLONG: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "overlong", "skip", ["skip", "truncate_left"], "Cases that do not fit: leave out and count, or cut their context."
)
_ON_BAD_CASE: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "on_bad_case", "fail", ["fail", "skip"], "Faulty cases: stop, or leave out and count."
)
_LIMIT = flags.DEFINE_integer("limit", None, "Evaluate the first so many cases only.", 0)
_BASELINE_SEED = flags.DEFINE_integer("baseline_seed", 0, "Another seed, another baseline:random.")

_DTYPE: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "dtype", "float32", ["float32", "bfloat16"], "Of parameters and matrix operands."
)
_SHARING: flags.FlagHolder[Any] = flags.DEFINE_enum(
    "sharing", "tree", ["tree", "case", "none"], "Compute common prefixes once: across cases, within a case, or never."
)
_BUCKETS = flags.DEFINE_list("buckets", [], "Row lengths in tokens; default: chosen to suit the data.")
_MAX_BUCKETS = flags.DEFINE_integer("max_buckets", 4, "How many row lengths are chosen, so how many compilations.", 1)
_BATCH_TOKENS = flags.DEFINE_integer(
    "batch_tokens", None, "Tokens of a batch on each device that holds rows; default: 2048 on CPU, 32768 elsewhere.", 1
)
_MESH = flags.DEFINE_list("mesh", [], "Sizes of mesh axes, as data=-1,fsdp=4,tensor=2; -1 takes what is left.")

_DISTRIBUTED = flags.DEFINE_bool(
    "distributed", False, "One of several processes; on Cloud TPU no other flag is needed."
)
_COORDINATOR = flags.DEFINE_string("coordinator_address", None, "host:port of process 0, where JAX cannot tell.")
_NUM_PROCESSES = flags.DEFINE_integer("num_processes", None, "How many processes, where JAX cannot tell.", 1)
_PROCESS_ID = flags.DEFINE_integer("process_id", None, "Which process this is, where JAX cannot tell.", 0)
_COMPILATION_CACHE = flags.DEFINE_string(
    "compilation_cache", "~/.cache/brb_jax/compiled", "Where compiled programs are kept between runs; empty: nowhere."
)


def config_from_flags() -> RunConfig:
    """Reads the parsed flags.

    Raises:
        RunError: A list holds something that is not of its form.
    """
    return RunConfig(
        model=_MODEL.value,
        data=tuple(_DATA.value),
        out=_OUT.value,
        selection=_SELECTION.value,
        option_delimiter=_OPTION_DELIMITER.value,
        bos=_BOS.value,
        boundary=_BOUNDARY.value,
        max_length=_MAX_LENGTH.value,
        allow_extrapolation=_ALLOW_EXTRAPOLATION.value,
        overlong=_OVERLONG.value,
        on_bad_case=_ON_BAD_CASE.value,
        limit=_LIMIT.value,
        baseline_seed=_BASELINE_SEED.value,
        dtype=_DTYPE.value,
        sharing=_SHARING.value,
        buckets=tuple(_integer("buckets", "512,1024", item, 1) for item in _BUCKETS.value) or None,
        max_buckets=_MAX_BUCKETS.value,
        batch_tokens=_BATCH_TOKENS.value,
        mesh=_mesh_request(),
    )


def _mesh_request() -> Mapping[str, int]:
    sizes: dict[str, int] = {}
    for item in _MESH.value:
        axis, _, size = item.partition("=")
        if axis in sizes:
            raise RunError(f"--mesh: the axis {axis!r} is given twice")
        sizes[axis] = _integer("mesh", "data=-1,tensor=2", size, -1)
    return sizes


def _integer(flag: str, form: str, text: str, lowest: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise RunError(f"--{flag}: {text!r} is not a whole number; write it as {form}") from None
    if value < lowest:
        raise RunError(f"--{flag}: {value} is below {lowest}")
    return value


def main() -> None:
    # Imported here, so that --help and a mistyped flag need not wait for JAX.
    import jax

    from brb_jax import baselines
    from brb_jax.checkpoints import CheckpointError
    from brb_jax.data.fault import DataError
    from brb_jax.results.journal import JournalError
    from brb_jax.run import evaluate
    from brb_jax.scoring.mesh import MeshError, Processes, join_processes, leave_processes
    from brb_jax.tokens.encode import EncodingError
    from brb_jax.tokens.packing import PlanError
    from brb_jax.tokens.tokenizer import TokenizerError

    if _COMPILATION_CACHE.value:
        jax.config.update("jax_compilation_cache_dir", str(Path(_COMPILATION_CACHE.value).expanduser()))
    try:
        config = config_from_flags()
        if _DISTRIBUTED.value and baselines.named(config.model):
            raise RunError(f"--distributed: {config.model} runs in one process; leave the flag out")
        if _DISTRIBUTED.value:
            join_processes(Processes(_COORDINATOR.value, _NUM_PROCESSES.value, _PROCESS_ID.value))
        evaluate(config)
        if _DISTRIBUTED.value:
            leave_processes()
    except (
        baselines.BaselineError,
        CheckpointError,
        DataError,
        EncodingError,
        JournalError,
        MeshError,
        OSError,
        PlanError,
        RunError,
        TokenizerError,
    ) as error:
        sys.exit(f"brb_jax: {error}")


if __name__ == "__main__":
    command_line.run("brb_jax", main)
