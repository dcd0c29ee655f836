"""Adds wrong options to question/answer files: python -m brb_jax.make_options --data=… --out=DIR.

Takes benchmark files whose cases have the text of the right answer and no options, in any form that the evaluation
reads, and writes complete ones. Similar options are searched in the context, random ones are mutations, those of a
wrong or an old rule follow from the program in a case's metadata, or are asked of an LLM. What cannot be made is
listed, and then nothing is written.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from absl import flags
from etils import epath

from brb_jax import command_line, shared_flags
from brb_jax.data.fault import DataError, listed
from brb_jax.data.files import FileFilter, FilterError
from brb_jax.data.questions import Question, QuestionFile, read_questions
from brb_jax.data.rules import Rules, RulesError
from brb_jax.data.writer import write_cases
from brb_jax.generator.options.making import MadeOptions, assembled, make_options
from brb_jax.generator.options.proposals import Ask

FLAGS = flags.FLAGS
SECONDS_BETWEEN_LINES = 15.0


class OptionsError(ValueError):
    """The flags contradict each other, or options could not be made; the message lists them."""


def define_flags() -> None:
    """Defines the flags; see `shared_flags` for when."""
    shared_flags.define_data_flags()
    flags.DEFINE_string("out", None, "Required. Directory to write into; created if missing.", required=True)
    flags.DEFINE_bool("overwrite", False, "Replace files that are there and hold something else.")
    flags.DEFINE_integer("seed", 0, "Another seed gives other options and labels, the same seed the same bytes.")
    flags.DEFINE_enum(
        "on_unmade", "fail", ["fail", "skip"], "Options that cannot be made: write nothing, or leave their cases out."
    )
    flags.DEFINE_string(
        "llm_endpoint",
        None,
        "OpenAI-compatible address, as https://host/v1, for rules without a program. The key, if "
        "it wants one, is read from OPENAI_API_KEY.",
    )
    flags.DEFINE_string("llm_model", None, "The model to ask there.")
    flags.DEFINE_integer("llm_concurrency", 8, "How many requests may be under way at once.", 1)
    flags.DEFINE_float("llm_timeout", 120.0, "Seconds that one request may take.", 0.001)
    flags.DEFINE_string("llm_cache", "~/.cache/brb_jax/llm", "Directory where replies are kept and looked up first.")


@dataclasses.dataclass(frozen=True)
class OptionsConfig:
    """What to read, write and ask. Field by field the flags, which document them; `only` is what the filters keep."""

    data: tuple[str, ...]
    out: str
    on_bad_case: Literal["fail", "skip"] = "fail"
    limit: int | None = None
    only: FileFilter = dataclasses.field(default_factory=FileFilter)
    rules: Rules = dataclasses.field(default_factory=Rules)
    overwrite: bool = False
    seed: int = 0
    on_unmade: Literal["fail", "skip"] = "fail"
    llm_endpoint: str | None = None
    llm_model: str | None = None
    llm_concurrency: int = 8
    llm_timeout: float = 120.0
    llm_cache: str = "~/.cache/brb_jax/llm"


def config_from_flags() -> OptionsConfig:
    """Reads the parsed flags.

    Raises:
        FilterError, RulesError: A flag is not of its form.
    """
    data = shared_flags.data_settings()
    return OptionsConfig(
        data=data.data,
        out=FLAGS.out,
        on_bad_case=data.on_bad_case,
        limit=data.limit,
        only=data.only,
        rules=data.rules,
        overwrite=FLAGS.overwrite,
        seed=FLAGS.seed,
        on_unmade=FLAGS.on_unmade,
        llm_endpoint=FLAGS.llm_endpoint,
        llm_model=FLAGS.llm_model,
        llm_concurrency=FLAGS.llm_concurrency,
        llm_timeout=FLAGS.llm_timeout,
        llm_cache=FLAGS.llm_cache,
    )


def write_options(config: OptionsConfig) -> list[str]:
    """Reads the files, makes their options, and writes those that are complete.

    Args:
        config: The settings. The key of the LLM's endpoint is read from the environment.

    Returns:
        A line for each file, which is written unless none of its cases is complete.

    Raises:
        DataError, OptionsError, OSError: Nothing was written; the LLM's replies are kept for another try.
        OtherContentsError: A file is there and not to be replaced; those before it are written.
    """
    read = read_questions(
        config.data, on_bad_case=config.on_bad_case, limit=config.limit, only=config.only, rules=config.rules
    )
    files = read.files
    _check_out(config, files)
    if read.skipped:
        print(f"make_options: cases left out for {DataError(read.skipped)}", file=sys.stderr)
    if not files:
        raise OptionsError("no case is left to make options for; nothing was written")
    with _llm(config) as ask:
        questions = [question for file in files for question in file.questions]
        made = _make_all(questions, lambda question: make_options(question, config.seed, ask), config.llm_concurrency)
    by_file = [[next(made) for _ in file.questions] for file in files]
    unmade = [
        f"{question.case_id}: {kind}: {reason}"
        for file, file_made in zip(files, by_file, strict=True)
        for question, options in zip(file.questions, file_made, strict=True)
        for kind, reason in options.missing.items()
    ]
    if unmade and config.on_unmade == "fail":
        raise OptionsError(f"{_told(unmade)}\nnothing was written; --on_unmade=skip writes the complete cases")
    if unmade:
        print(f"make_options: {_told(unmade)}", file=sys.stderr)
    return [_write(file, file_made, config) for file, file_made in zip(files, by_file, strict=True)]


def _check_out(config: OptionsConfig, files: Sequence[QuestionFile]) -> None:
    """
    Raises:
        OptionsError: A file with options would replace the one without, or lie beside it.
    """
    out = epath.Path(config.out).expanduser()
    for file in files:
        written, read = (out / file.name.format()).resolve(), file.source.path.resolve()
        if written.parent == read.parent:
            does = "replace" if written == read else "hold a file of the same name as"
            raise OptionsError(f"--out={config.out} would {does} {file.source.shown}; name another directory")


@contextlib.contextmanager
def _llm(config: OptionsConfig) -> Iterator[Ask | None]:
    if not config.llm_endpoint and not config.llm_model:
        yield None
        return
    if not config.llm_endpoint or not config.llm_model:
        raise OptionsError("--llm_endpoint and --llm_model belong together; give both or neither")
    try:
        from brb_jax.integrations.llm import KEY_VARIABLE, Endpoint, EndpointError
    except ModuleNotFoundError as error:
        raise OptionsError(f"--llm_endpoint needs {error.name}: pip install '.[llm]' in brb_jax's checkout") from None
    from brb_jax.integrations.reply_cache import ReplyCache

    cache, key = ReplyCache(config.llm_cache), os.environ.get(KEY_VARIABLE, "")
    try:
        with Endpoint(config.llm_endpoint, config.llm_model, key, config.llm_timeout, cache) as endpoint:
            yield endpoint.ask
    except EndpointError as error:
        raise OptionsError(f"{error}\nnothing was written; replies so far are kept in {config.llm_cache}") from None


def _make_all(
    questions: Sequence[Question], make: Callable[[Question], MadeOptions], concurrency: int
) -> Iterator[MadeOptions]:
    """In the order of the questions, at most `concurrency` at a time. The first error ends the work."""
    with concurrent.futures.ThreadPoolExecutor(concurrency) as pool:
        futures = [pool.submit(make, question) for question in questions]
        left = set(futures)
        try:
            while left:
                done, left = concurrent.futures.wait(
                    left, SECONDS_BETWEEN_LINES, return_when=concurrent.futures.FIRST_EXCEPTION
                )
                for future in done:
                    future.result()
                if left:
                    print(f"{len(futures) - len(left)} of {len(futures)} questions", file=sys.stderr, flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return iter([future.result() for future in futures])


def _told(unmade: Sequence[str]) -> str:
    noun = "option" if len(unmade) == 1 else "options"
    return f"{len(unmade)} {noun} could not be made:{listed(unmade)}"


def _write(file: QuestionFile, made: Sequence[MadeOptions], config: OptionsConfig) -> str:
    cases = assembled(file, made, config.seed)
    if made and not cases:
        return f"{file.source.shown}: none of {len(made)} cases is complete, not written"
    ways = Counter((kind, way) for options in made if not options.missing for kind, way in options.made_by.items())
    settings = {"seed": config.seed, "llm_model": config.llm_model}
    metadata = {**file.metadata, "make_options": settings}
    path = write_cases(config.out, file.name, cases, metadata, overwrite=config.overwrite)
    told = ", ".join(f"{count} {kind} by {way}" for (kind, way), count in ways.items())
    return f"{path}: {len(cases)} of {len(made)} cases" + (f"; {told}" if told else "")


def main() -> None:
    try:
        for line in write_options(config_from_flags()):
            print(line)
    except (DataError, FilterError, OptionsError, OSError, RulesError) as error:
        sys.exit(f"make_options: {error}")


if __name__ == "__main__":
    define_flags()
    command_line.run("make_options", main)
