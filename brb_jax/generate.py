"""Writes benchmark files: python -m brb_jax.generate --out=DIR.

One file for each domain and task, in the canonical form, named by the benchmark's convention. Every answer
is computed by a program, and every question has one answer that follows from its context. The same flags give
the same bytes on every machine.
"""

from __future__ import annotations

import dataclasses
import sys

from absl import flags

from brb_jax import command_line
from brb_jax.data.case import TASKS
from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.file import write_file
from brb_jax.generator.spec import REVISIONS, FileSpec, SpecError

_OUT = flags.DEFINE_string(
    "out", None, "Required. Directory to write into; created if missing. May be gs://bucket/dir.", required=True
)
_DOMAINS = flags.DEFINE_list("domains", list(DOMAINS), f"Any of {', '.join(DOMAINS)}, separated by commas.")
_TASKS = flags.DEFINE_list("tasks", list(TASKS), f"Any of {', '.join(TASKS)}, separated by commas.")
_CASES = flags.DEFINE_integer("cases", 50, "Cases in each file.", lower_bound=0)
_QUESTIONS_PER_CONTEXT = flags.DEFINE_integer(
    "questions_per_context", 1, "How many neighbouring cases of a file share one context.", lower_bound=1
)
_M = flags.DEFINE_integer("m", 70, "Examples in each context.", lower_bound=1)
_K = flags.DEFINE_integer("k", 2, "Operators composed by a question of MemoryCom.", lower_bound=2)
_EDIT_K = flags.DEFINE_integer("edit_k", 1, "Operators revised in a context of MemoryRev.", lower_bound=1)
_REVISION = flags.DEFINE_enum(
    "revision",
    "both",
    REVISIONS,
    "How MemoryRev tells the new rule: examples of it, a statement of it, or both.",
)
_OPERATORS = flags.DEFINE_integer("operators", 5, "Named operators in each context.", lower_bound=1)
_SEED = flags.DEFINE_integer("seed", 0, "Another seed gives other files, the same seed the same bytes.")


@dataclasses.dataclass(frozen=True)
class GenerateConfig:
    """The files to write, and where."""

    out: str
    files: tuple[FileSpec, ...]


def config_from_flags() -> GenerateConfig:
    """Reads the parsed flags.

    Raises:
        SpecError: The flags contradict each other.
    """
    if not (_DOMAINS.value and _TASKS.value):
        raise SpecError("no files to write: --domains and --tasks must each name at least one")
    return GenerateConfig(
        out=_OUT.value,
        files=tuple(
            FileSpec(
                domain=domain,
                task=task,
                k=_K.value if task == "MemoryCom" else None,
                edit_k=_EDIT_K.value if task == "MemoryRev" else None,
                m=_M.value,
                cases=_CASES.value,
                questions_per_context=_QUESTIONS_PER_CONTEXT.value,
                operators=_OPERATORS.value,
                revision=_REVISION.value,
                seed=_SEED.value,
            )
            for domain in _DOMAINS.value
            for task in _TASKS.value
        ),
    )


def generate(config: GenerateConfig) -> None:
    """Writes the files and prints a line for each.

    Raises:
        SpecError: A file has too little room for its questions; those before it are written.
    """
    for spec in config.files:
        path = write_file(config.out, spec)
        print(f"{path}: {spec.cases} cases", flush=True)


def main() -> None:
    try:
        generate(config_from_flags())
    except (SpecError, OSError) as error:
        sys.exit(f"generate: {error}")


if __name__ == "__main__":
    command_line.run("generate", main)
