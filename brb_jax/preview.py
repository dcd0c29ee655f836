"""Shows what benchmark files hold and exactly what a model will read: python -m brb_jax.preview --data=…

Prints, for each file, its cases, option types and labels, lengths, what sharing saves, and how well guessers do that
read nothing; one case with the scored span marked; and every fault, with exit status 1 if there is any. Takes those
flags of brb_jax.main that say what to read and how. Touches no device.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from brb_jax import command_line, shared_flags
from brb_jax.config import RunError, length_limit

if TYPE_CHECKING:
    from brb_jax.overview.overview import Overview

FLAGS = flags.FLAGS


def define_flags() -> None:
    """Defines the flags; see `shared_flags` for when."""
    shared_flags.define_data_flags()
    shared_flags.define_text_flags()
    flags.DEFINE_string("model", None, "Checkpoint whose tokenizer and length limit are used; as for brb_jax.main.")
    flags.DEFINE_string(
        "tokenizer", None, "Tokenizer, where there is no checkpoint: directory or Hub id with one, or .gguf file."
    )
    flags.DEFINE_string("case", None, "The case to show, as words_MemoryRet_M70/17; default: the first.")
    flags.DEFINE_bool("whole", False, "Show the case's prompt whole, however long.")
    flags.DEFINE_bool("json", False, "Print JSON instead of tables.")


def overview_from_flags() -> Overview:
    """Reads what the flags say.

    Raises:
        BaselineError, CheckpointError, EncodingError, FilterError, NoSuchCaseError, OSError, RulesError, RunError,
            TokenizerError: A flag cannot be followed. Faults of files do not raise.
    """
    from brb_jax import baselines
    from brb_jax.checkpoints import open_checkpoint
    from brb_jax.data.reader import survey_files
    from brb_jax.models.own_model import names_own_model
    from brb_jax.overview.overview import survey_overview
    from brb_jax.tokens.encode import encode_cases
    from brb_jax.tokens.tokenizer import load_tokenizer

    data, text = shared_flags.data_settings(), shared_flags.text_settings()
    if FLAGS.model and FLAGS.tokenizer:
        raise RunError("--model and --tokenizer each name a tokenizer: leave one out")
    survey = survey_files(data.data, only=data.only, rules=data.rules)
    encode = tokenizer = model = None
    if FLAGS.model and baselines.named(FLAGS.model):
        raise RunError(
            f"--model={FLAGS.model}: a baseline reads text and has no tokenizer; leave --model out, or give --tokenizer"
        )
    if FLAGS.model and names_own_model(FLAGS.model):
        raise RunError(
            f"--model={FLAGS.model}: a model of your own is not run here; name its tokenizer with --tokenizer, and its "
            "limit with --max_length"
        )
    if FLAGS.model:
        checkpoint = open_checkpoint(FLAGS.model)
        tokenizer = load_tokenizer(checkpoint.tokenizer_path, text.bos)
        model = checkpoint.config
        limit = length_limit(text.max_length, text.allow_extrapolation, model.max_positions, model.learned_positions)
        vocab_size = model.vocab_size
    elif FLAGS.tokenizer:
        is_gguf = FLAGS.tokenizer.endswith(".gguf")
        path = open_checkpoint(FLAGS.tokenizer).tokenizer_path if is_gguf else Path(FLAGS.tokenizer).expanduser()
        tokenizer = load_tokenizer(path, text.bos)
        # Without a model there is no limit but the flag's, and no table that an id could lie outside of.
        limit, vocab_size = text.max_length or sys.maxsize, tokenizer.size
    if tokenizer is not None:
        encode = functools.partial(
            encode_cases,
            tokenizer=tokenizer,
            option_delimiter=text.option_delimiter,
            max_length=limit,
            vocab_size=vocab_size,
            boundary=text.boundary,
            overlong=text.overlong,
        )
    return survey_overview(
        survey,
        encode,
        tokenizer,
        source=FLAGS.model or FLAGS.tokenizer,
        option_delimiter=text.option_delimiter,
        length_class=(lambda length: 0) if model is None else model.length_class,
        limit=data.limit,
        case_id=FLAGS.case,
    )


def main() -> int:
    """Prints the overview.

    Returns:
        The exit status: 1 if there is a fault.
    """
    # Imported here, so that --help need not wait for transformers.
    from brb_jax.baselines import BaselineError
    from brb_jax.checkpoints import CheckpointError
    from brb_jax.data.files import FilterError
    from brb_jax.data.rules import RulesError
    from brb_jax.overview.overview import NoSuchCaseError
    from brb_jax.overview.terminal import print_overview
    from brb_jax.tokens.encode import EncodingError
    from brb_jax.tokens.tokenizer import TokenizerError

    try:
        overview = overview_from_flags()
    except (
        BaselineError,
        CheckpointError,
        EncodingError,
        FilterError,
        NoSuchCaseError,
        OSError,
        RulesError,
        RunError,
        TokenizerError,
    ) as error:
        sys.exit(f"preview: {error}")
    try:
        if FLAGS.json:
            print(json.dumps(overview.to_json(), allow_nan=False, indent=1))
        else:
            print_overview(overview, FLAGS.whole)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read it (`head`, say) has seen enough. Python would complain again when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1 if overview.faults else 0


if __name__ == "__main__":
    define_flags()
    command_line.run("preview", main)
