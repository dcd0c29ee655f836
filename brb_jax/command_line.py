"""What the commands share: flags are read strictly, and a mistake in them is told in a line or two."""

from __future__ import annotations

import importlib.util
import io
import itertools
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence

from absl import app, flags, logging

# Flags that name files, directories, or lists of them.
_PLACES = ("data", "model", "out", "source", "tokenizer")
# How absl words that a required flag is missing.
_MISSING = re.compile(r"flag --(\w+)=None: Flag --\w+ must have a value other than None\.")


def run(name: str, command: Callable[[], int | None], stopped: str = "stopped") -> None:
    """Parses the flags of `sys.argv` and calls `command`, which may return an exit status.

    What is printed about a mistake in the flags begins with `name`; so does `stopped`, which is printed at Ctrl-C.
    """
    sys.unraisablehook = _unraisable
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What a locale has no character for is printed as an escape: no reason to fail when all is computed.
        sys.stdout.reconfigure(errors="backslashreplace")
    # Else transformers remarks in every process that torch is not there; nothing here needs it.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    try:
        app.run(lambda _: command(), flags_parser=lambda argv: _parse(name, argv))
    except KeyboardInterrupt:
        print(f"{name}: {stopped}", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Ctrl-C during a destructor, or JAX's callback at a garbage collection, comes again: Python would drop it."""
    if unraisable.exc_type is KeyboardInterrupt:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(unraisable)


def _parse(name: str, argv: list[str]) -> list[str]:
    if {"--help", "-h"} & set(argv[1:]):
        app.usage(shorthelp=True, writeto_stdout=True, exitcode=0)
    try:
        for line in flags.FLAGS.read_flags_from_files(argv[1:]):
            problem = _problem(line)
            if line not in argv and problem is not None:
                raise flags.Error(f"the flagfile's line {line!r}: {problem}")
        flags.FLAGS.set_gnu_getopt(True)  # Flags behind an unexpected argument are read all the same.
        # Before the user's flags, so that these win: absl would log from INFO on, a dozen lines a run from Orbax.
        program, *rest = flags.FLAGS([argv[0], f"--verbosity={logging.WARNING}", *argv[1:]])
    except flags.Error as error:
        told = [_MISSING.sub(r"--\1 is missing", line) for line in str(error).splitlines()]
        if rest := _left_over(argv):
            told.append(f"{_unexpected(rest)} (a value without its flag?)")
        sys.exit(f"{name}: {'; '.join(told)}\n--help lists the flags")
    for flag in _PLACES:
        value = flags.FLAGS[flag].value if flag in flags.FLAGS else None
        for place in [value] if isinstance(value, str) else value or ():
            if (mistake := _misplaced(flag, place)) is not None:
                sys.exit(f"{name}: --{flag}={place}: {mistake}")
    if rest:
        sys.exit(f"{name}: {_unexpected(rest)}; every setting is a flag (--help lists them)")
    return [program]


def _left_over(argv: Sequence[str]) -> list[str]:
    """The arguments that are neither flags nor their values."""
    takes_value = {f"{dash}{flag}" for dash in ("-", "--") for flag in flags.FLAGS if not flags.FLAGS[flag].boolean}
    return [
        argument
        for before, argument in itertools.pairwise(argv)
        if not argument.startswith("-") and before not in takes_value
    ]


def _unexpected(arguments: Sequence[str]) -> str:
    return f"unexpected argument{'s' * (len(arguments) > 1)} {', '.join(map(repr, arguments))}"


def _misplaced(flag: str, place: str) -> str | None:
    """Why a file or directory cannot be there, before anything is computed for it."""
    scheme, separator, _ = place.partition("://")
    if not place.strip():
        return "is empty (an unset variable?); name a place"
    if not separator:
        return None
    if scheme == "hf":
        return None if flag == "data" else "hf:// is for --data; a model on the Hub is named owner/name"
    if scheme != "gs":
        return f"{scheme}:// is neither read nor written; give a local path or gs://…"
    if importlib.util.find_spec("gcsfs") is None:
        return "buckets need the package gcsfs: pip install '.[gcs]' in brb_jax's checkout"
    return None


def _problem(line: str) -> str | None:
    """What absl would take otherwise than it was meant in a line of a flagfile, and what to write instead."""
    flag, _, value = line.partition("=")
    if line.startswith(("#", "//")):
        return "a comment must begin in the first column"
    if re.match("--?flagfile", line):
        return "--flagfile=… must begin in the first column"
    if not line.startswith("-"):
        return "a line is a flag, --name=value, or a comment that begins with #"
    if re.search(r"\s", flag):
        return "write --name=value, without white space before the value"
    if re.search(r"\s(#|//)", value):
        return "a comment needs a line of its own"
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return "the quotes would be part of the value; leave them out"
    return None
