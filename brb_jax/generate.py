"""Writes benchmark files: python -m brb_jax.generate --out=DIR.

One file for each domain, task, and number of examples, composed or revised operators, in the canonical form, named
by the benchmark's convention. Every answer is computed by a program, and every question has one answer that follows
from its context. The same flags give the same bytes on every machine.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from absl import flags
from etils import epath

from brb_jax import command_line
from brb_jax.data.case import TASKS
from brb_jax.data.writer import OtherContentsError
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.file import write_file
from brb_jax.generator.length import Target
from brb_jax.generator.spec import DEFINITIONS, MAX_M, MAX_QUESTIONS, RELEVANT, REVISIONS, FileSpec, SpecError, least_m

_M, _K, _EDIT_K, _REVISION = 70, 2, 1, "both"


def define_flags() -> None:
    """Defines the flags; see `shared_flags` for when."""
    flags.DEFINE_string(
        "out", None, "Required. Directory to write into; created if missing. May be gs://bucket/dir.", required=True
    )
    flags.DEFINE_list("domains", list(DOMAINS), f"Any of {', '.join(DOMAINS)}, separated by commas.")
    flags.DEFINE_list("tasks", list(TASKS), f"Any of {', '.join(TASKS)}, separated by commas.")
    flags.DEFINE_integer("cases", 50, "Cases in each file.", lower_bound=0)
    flags.DEFINE_integer(
        "questions_per_context",
        1,
        f"How many neighbouring cases of a file share one context, at most {MAX_QUESTIONS}.",
        lower_bound=1,
    )
    flags.DEFINE_list(
        "m",
        None,
        f"Examples in each context, at most {MAX_M}; default {_M}. Several, separated by commas, make a file each.",
    )
    flags.DEFINE_list(
        "context_tokens",
        None,
        "Instead of --m: contexts hold as many examples as keep every case (context, query and option) within so many "
        "tokens of --tokenizer. Several, separated by commas, make a file each.",
    )
    flags.DEFINE_string(
        "tokenizer",
        None,
        "Counts --context_tokens: a converted or Hugging Face directory, a Hub id, or a .gguf file.",
    )
    flags.DEFINE_integer("operators", 5, "Named operators in each context.", lower_bound=1)
    flags.DEFINE_list(
        "k",
        None,
        f"Operators composed by a question of MemoryCom; default {_K}. Several, separated by commas, make a file each. "
        "1 is the control: one operator, in contexts that compose two.",
    )
    flags.DEFINE_list(
        "edit_k",
        None,
        f"Operators revised in a context of MemoryRev; default {_EDIT_K}. Several, with commas, make a file each.",
    )
    flags.DEFINE_enum(
        "definitions",
        "examples",
        DEFINITIONS,
        "How rules are told: by examples, as text (of the operators asked about no example by itself), or both.",
    )
    flags.DEFINE_enum(
        "revision",
        None,
        REVISIONS,
        f"How MemoryRev tells the new rule: examples of it, a statement of it, or both; default {_REVISION}.",
    )
    flags.DEFINE_enum(
        "relevant", "spread", RELEVANT, "Where the examples of the operators asked about lie: all over, first, or last."
    )
    flags.DEFINE_integer(
        "distance",
        0,
        "How many examples of other operators follow after all else, of those in a context.",
        lower_bound=0,
    )
    flags.DEFINE_integer("seed", 0, "Another seed gives other files, the same seed the same bytes.")
    flags.DEFINE_bool("overwrite", False, "Replace files that are there and hold something else.")


@dataclasses.dataclass(frozen=True)
class GenerateConfig:
    """The files to write, and where.

    Attributes:
        out: The directory.
        files: What each file holds, and the tokens its cases may have; None where `m` says how long they are.
        tokenizer: What counts the tokens; None where nothing does.
        overwrite: Whether to replace files that are there and hold something else.
    """

    out: str
    files: tuple[tuple[FileSpec, int | None], ...]
    tokenizer: str | None
    overwrite: bool = False


def config_from_flags() -> GenerateConfig:
    """Reads the parsed flags.

    Raises:
        SpecError: The flags contradict each other.
    """
    given = flags.FLAGS
    for knob, task in (("k", "MemoryCom"), ("edit_k", "MemoryRev"), ("revision", "MemoryRev")):
        if given[knob].value is not None and task not in given.tasks:
            raise SpecError(f"--{knob} is for {task}, which --tasks={','.join(given.tasks)} leaves out")
    if given.m is not None and given.context_tokens is not None:
        raise SpecError("--m and --context_tokens both say how long contexts are; give one")
    if (given.context_tokens is None) != (given.tokenizer is None):
        raise SpecError("--context_tokens and --tokenizer, which counts them, go together; give both or neither")
    lengths: list[tuple[int | None, int | None]] = [(m, None) for m in _numbers("m", _M)]
    if given.context_tokens is not None:
        lengths = [(None, tokens) for tokens in _numbers("context_tokens")]
    files = [
        (
            FileSpec(
                domain=domain,
                task=task,
                k=k,
                edit_k=edit_k,
                m=least_m(task, given.operators, given.distance) if m is None else m,
                cases=given.cases,
                questions_per_context=given.questions_per_context,
                operators=given.operators,
                definitions=given.definitions,
                revision=given.revision or _REVISION,
                relevant=given.relevant,
                distance=given.distance,
                seed=given.seed,
            ),
            tokens,
        )
        for domain in _each("domains", given.domains)
        for task in _each("tasks", given.tasks)
        for k in (_numbers("k", _K) if task == "MemoryCom" else [None])
        for edit_k in (_numbers("edit_k", _EDIT_K) if task == "MemoryRev" else [None])
        for m, tokens in lengths
    ]
    return GenerateConfig(given.out, tuple(files), given.tokenizer, given.overwrite)


def _each(flag: str, values: Sequence[Any]) -> Sequence[Any]:
    """The values of a list flag, at least one and all different."""
    if not values:
        raise SpecError(f"no files to write: --{flag} must name at least one")
    for i, value in enumerate(values):
        if value in values[:i]:
            raise SpecError(f"--{flag} names {value} twice, which would be the same file")
    return values


def _numbers(flag: str, *default: int) -> Sequence[int]:
    """The numbers of a list flag."""
    values = flags.FLAGS[flag].value
    if values is None:
        return default
    for value in values:
        if not (value.isascii() and value.isdecimal() and int(value) > 0):
            raise SpecError(f"--{flag}={','.join(values)}: {value!r} is not a number above zero")
    return _each(flag, [int(value) for value in values])


def generate(config: GenerateConfig) -> None:
    """Writes the files and prints a line for each.

    Raises:
        SpecError, OtherContentsError: A file has too little room for its questions, or is there; those before it are
            written.
        CheckpointError, TokenizerError: There is no such tokenizer.
    """
    count = None if config.tokenizer is None else _load_counter(config.tokenizer)
    written: set[epath.Path] = set()
    for spec, tokens in config.files:
        target = None
        if count is not None and tokens is not None:
            target = Target(tokens, Path(config.tokenizer or "").name, count)
        try:
            path = write_file(config.out, spec, target, overwrite=config.overwrite)
        except OtherContentsError as error:
            if error.path not in written:
                raise
            path = error.path
        if path in written:
            raise SpecError(f"{path} is asked for twice: {tokens} tokens hold no more examples than fewer tokens do")
        print(f"{path}: {spec.cases} cases", flush=True)
        written.add(path)


def _load_counter(path: str) -> Callable[[str], int]:
    # Here, because transformers takes seconds to import and most files need no tokenizer.
    from brb_jax.checkpoints.opening import open_checkpoint
    from brb_jax.tokens.tokenizer import load_tokenizer

    tokenizer = load_tokenizer(open_checkpoint(path).tokenizer_path if path.endswith(".gguf") else path)
    return lambda text: len(tokenizer.prefix_ids) + len(tokenizer.encode(text).ids)


def main() -> None:
    try:
        generate(config_from_flags())
    except (ValueError, OSError) as error:
        sys.exit(f"generate: {error}")


if __name__ == "__main__":
    define_flags()
    command_line.run("generate", main)
