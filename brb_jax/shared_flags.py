"""Flags that several commands take.

absl's flags are global: two modules that define one name cannot be imported together. So a command's module defines
nothing when it is imported. It has a `define_flags()`, which it calls when it is run as a command, and a
`config_from_flags()`, which reads them. What several commands take is defined and read here, once.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

from absl import flags

from brb_jax.data.files import FileFilter, parse_numbers
from brb_jax.data.rules import Rules, parse_field_map

FLAGS = flags.FLAGS

# So that --help lists them among the flags of the command that asked for them.
flags.disclaim_key_flags()


@dataclasses.dataclass(frozen=True)
class DataSettings:
    """What to read, and how. For the fields see `brb_jax.data.reader.read_cases`."""

    data: tuple[str, ...]
    on_bad_case: Literal["fail", "skip"]
    limit: int | None
    only: FileFilter
    rules: Rules


@dataclasses.dataclass(frozen=True)
class TextSettings:
    """How a case becomes what a model is fed. For the fields see `brb_jax.config.RunConfig`."""

    option_delimiter: str
    bos: Literal["auto", "always", "never"]
    boundary: Literal["cover", "lm_eval"]
    max_length: int | None
    allow_extrapolation: bool
    overlong: Literal["skip", "truncate_left"]


def define_data_flags() -> None:
    """Defines the flags that say what to read, and how."""
    flags.DEFINE_list(
        "data",
        None,
        "Required. Benchmark files, directories, globs, or Hub repositories (hf://datasets/owner/name), separated by "
        "commas.",
        required=True,
    )
    flags.DEFINE_enum("on_bad_case", "fail", ["fail", "skip"], "Faulty cases: stop, or leave out and count.")
    flags.DEFINE_integer("limit", None, "Take the first so many cases only.", 0)
    flags.DEFINE_list("tasks", [], "Read files of these tasks only.")
    flags.DEFINE_list("domains", [], "Read files of these domains only.")
    flags.DEFINE_list("k", [], "Read files with these numbers of composed operators only; none: without one.")
    flags.DEFINE_list("edit_k", [], "Read files with these numbers of revised operators only; none: without one.")
    flags.DEFINE_list("m", [], "Read files with these numbers of examples only.")
    flags.DEFINE_list("field_map", [], "Which key holds a field, as context=passage,query=q; see docs/data.md.")
    flags.DEFINE_string("example_template", None, "Jinja template of one example, where the context is a list of them.")
    flags.DEFINE_string("prompt_template", None, "Jinja template of context and query together.")


def data_settings() -> DataSettings:
    """Reads the flags of `define_data_flags`.

    Raises:
        FilterError, RulesError: A flag is not of its form.
    """
    return DataSettings(
        data=tuple(FLAGS.data),
        on_bad_case=FLAGS.on_bad_case,
        limit=FLAGS.limit,
        only=FileFilter(
            tasks=tuple(FLAGS.tasks),
            domains=tuple(FLAGS.domains),
            k=parse_numbers("k", FLAGS.k),
            edit_k=parse_numbers("edit_k", FLAGS.edit_k),
            m=parse_numbers("m", FLAGS.m),
        ),
        rules=Rules(parse_field_map(FLAGS.field_map), FLAGS.example_template, FLAGS.prompt_template),
    )


def define_text_flags() -> None:
    """Defines the flags that say how a case becomes what a model is fed."""
    flags.DEFINE_string(
        "option_delimiter", " ", "Between prompt and option, unless white space separates them already."
    )
    flags.DEFINE_enum("bos", "auto", ["auto", "always", "never"], "Whether BOS is fed; auto: as the tokenizer does.")
    flags.DEFINE_enum(
        "boundary",
        "cover",
        ["cover", "lm_eval"],
        "Which tokens are scored: all that cover the option, or lm-eval's split.",
    )
    flags.DEFINE_integer("max_length", None, "Longest input in tokens; default: the model's own limit.", 1)
    flags.DEFINE_bool("allow_extrapolation", False, "Let --max_length exceed the model's limit.")
    flags.DEFINE_enum(
        "overlong",
        "skip",
        ["skip", "truncate_left"],
        "Cases that do not fit: leave out and count, or cut their context.",
    )


def text_settings() -> TextSettings:
    """Reads the flags of `define_text_flags`."""
    return TextSettings(**{field.name: _value(field.name) for field in dataclasses.fields(TextSettings)})


def _value(name: str) -> Any:
    return FLAGS[name].value
