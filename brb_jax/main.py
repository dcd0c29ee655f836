"""Evaluates a base model on BeyondRetrievalBench files: python -m brb_jax.main --model=… --data=… --out=…

Reads benchmark files, scores every option of every case, and writes a run directory: samples.jsonl, results.json,
run.json and report.html. Started again with the same flags, it goes on where it was stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from absl import flags

from brb_jax import command_line, shared_flags
from brb_jax.config import MOST_ROW_TOKENS, RunConfig, RunError

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Defines the flags; see `shared_flags` for when."""
    flags.DEFINE_string(
        "model",
        None,
        "Required. A converted directory, a Hugging Face directory or Hub id, a .gguf file, package.module:build, or "
        "baseline:solver, baseline:nearest, baseline:prerevision or baseline:random.",
        required=True,
    )
    shared_flags.define_data_flags()
    flags.DEFINE_string("out", None, "Required. Run directory to write, or to resume.", required=True)

    flags.DEFINE_enum(
        "selection",
        "logprob",
        ["logprob", "ppl", "bytes"],
        "Which score chooses the answer; the others stand beside it.",
    )
    shared_flags.define_text_flags()
    flags.DEFINE_integer("baseline_seed", 0, "Another seed, another baseline:random.")

    dtypes = ["float32", "bfloat16"]
    flags.DEFINE_enum("dtype", None, dtypes, "Of parameters and matrix operands alike; default: float32.")
    flags.DEFINE_enum(
        "param_dtype",
        None,
        [*dtypes, "int8"],
        "Of parameters in memory; int8 is that of matrices alone, quantised as they are loaded; default: --dtype.",
    )
    flags.DEFINE_enum("activation_dtype", None, dtypes, "Of the operands of matrix products; default: --dtype.")
    flags.DEFINE_enum(
        "matmul_precision",
        None,
        ["default", "high", "highest"],
        "Of products of float32 operands on accelerators; default: highest, which is float32.",
    )
    flags.DEFINE_enum(
        "sharing",
        None,
        ["tree", "case", "none"],
        "Compute common prefixes once: across cases (the default), within a case, or never.",
    )
    flags.DEFINE_list("buckets", [], "Row lengths in tokens; default: chosen to suit the data.")
    flags.DEFINE_integer("max_buckets", 4, "How many row lengths are chosen, so how many compilations.", 1)
    flags.DEFINE_integer(
        "batch_tokens",
        None,
        "Tokens of a batch on each device that holds rows; default: 2048 on CPU, 32768 elsewhere.",
        1,
        MOST_ROW_TOKENS,
    )
    flags.DEFINE_list("mesh", [], "Sizes of data, fsdp, expert, tensor, as data=-1,tensor=2; -1 takes what is left.")

    flags.DEFINE_bool("distributed", False, "One of several processes; on Cloud TPU no other flag is needed.")
    flags.DEFINE_string("coordinator_address", None, "host:port of process 0, where JAX cannot tell.")
    flags.DEFINE_integer("num_processes", None, "How many processes, where JAX cannot tell.", 1)
    flags.DEFINE_integer("process_id", None, "Which process this is, where JAX cannot tell.", 0)
    flags.DEFINE_string(
        "compilation_cache",
        "~/.cache/brb_jax/compiled",
        "Where compiled programs are kept between runs; empty: nowhere.",
    )


def config_from_flags() -> RunConfig:
    """Reads the parsed flags.

    Raises:
        RunError, FilterError, RulesError: A flag holds something that is not of its form.
    """
    data, text = shared_flags.data_settings(), shared_flags.text_settings()
    return RunConfig(
        model=FLAGS.model,
        data=data.data,
        out=FLAGS.out,
        selection=FLAGS.selection,
        option_delimiter=text.option_delimiter,
        bos=text.bos,
        boundary=text.boundary,
        max_length=text.max_length,
        allow_extrapolation=text.allow_extrapolation,
        overlong=text.overlong,
        on_bad_case=data.on_bad_case,
        limit=data.limit,
        only=data.only,
        rules=data.rules,
        baseline_seed=FLAGS.baseline_seed,
        dtype=FLAGS.dtype,
        param_dtype=FLAGS.param_dtype,
        activation_dtype=FLAGS.activation_dtype,
        matmul_precision=FLAGS.matmul_precision,
        sharing=FLAGS.sharing,
        buckets=tuple(_integer("buckets", "512,1024", item, 1, MOST_ROW_TOKENS) for item in FLAGS.buckets) or None,
        max_buckets=FLAGS.max_buckets,
        batch_tokens=FLAGS.batch_tokens,
        mesh=_mesh_request(),
    )


def _mesh_request() -> Mapping[str, int]:
    sizes: dict[str, int] = {}
    for item in FLAGS.mesh:
        axis, _, size = item.partition("=")
        if axis in sizes:
            raise RunError(f"--mesh: the axis {axis!r} is given twice")
        sizes[axis] = _integer("mesh", "data=-1,tensor=2", size, -1)
    return sizes


def _integer(flag: str, form: str, text: str, lowest: int, highest: int | None = None) -> int:
    try:
        value = int(text)
    except ValueError:
        raise RunError(f"--{flag}: {text!r} is not a whole number; write it as {form}") from None
    if value < lowest:
        raise RunError(f"--{flag}: {value} is below {lowest}")
    if highest is not None and value > highest:
        raise RunError(f"--{flag}: {value} is above {highest}, the most that can be planned for")
    return value


def main() -> None:
    # Imported here, so that --help and a mistyped flag need not wait for JAX.
    import jax

    from brb_jax import baselines
    from brb_jax.checkpoints import CheckpointError
    from brb_jax.data.fault import DataError
    from brb_jax.data.files import FilterError
    from brb_jax.data.rules import RulesError
    from brb_jax.models.own_model import OwnModelError
    from brb_jax.results.journal import JournalError
    from brb_jax.run import evaluate
    from brb_jax.scoring.mesh import MeshError, Processes, join_processes, leave_processes
    from brb_jax.tokens.encode import EncodingError
    from brb_jax.tokens.packing import PlanError
    from brb_jax.tokens.tokenizer import TokenizerError

    if FLAGS.compilation_cache:
        jax.config.update("jax_compilation_cache_dir", str(Path(FLAGS.compilation_cache).expanduser()))
    try:
        config = config_from_flags()
        coordinates = [f for f in ("coordinator_address", "num_processes", "process_id") if FLAGS[f].value is not None]
        if coordinates and not FLAGS.distributed:
            raise RunError(f"--{coordinates[0]} is for one of several processes; add --distributed, or leave it out")
        if FLAGS.distributed and baselines.named(config.model):
            raise RunError(f"--distributed: {config.model} runs in one process; leave the flag out")
        if FLAGS.distributed:
            join_processes(Processes(FLAGS.coordinator_address, FLAGS.num_processes, FLAGS.process_id))
        evaluate(config)
        if FLAGS.distributed:
            leave_processes()
    except (
        baselines.BaselineError,
        CheckpointError,
        DataError,
        EncodingError,
        FilterError,
        JournalError,
        MeshError,
        OSError,
        OwnModelError,
        PlanError,
        RulesError,
        RunError,
        TokenizerError,
    ) as error:
        sys.exit(f"brb_jax: {error}")


if __name__ == "__main__":
    define_flags()
    kept = "stopped; the batches that were scored are kept, and the same command goes on from there"
    command_line.run("brb_jax", main, stopped=kept)
