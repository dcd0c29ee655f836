"""Templates of prompts and examples: Jinja in its sandbox, so that neither data nor template can run code."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment


class TemplateError(ValueError):
    """A template that cannot be parsed, or not be filled in."""


def _printed(value: Any) -> Any:
    """What a template prints, if it is the same in every process: others print as their address in memory."""
    if not isinstance(value, str | int | float | list | tuple | dict | None | jinja2.Undefined):
        raise TemplateError(f"it prints a {type(value).__name__}, which is no text (is `| join` missing?)")
    return value


def _environment() -> jinja2.Environment:
    # A variable that a case lacks is an error, not an empty text; nothing is escaped, and no line break is dropped.
    environment = ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True, finalize=_printed
    )
    # What draws at random: a case has to read the same in every process and every run.
    del environment.filters["random"], environment.globals["lipsum"]
    return environment


_ENVIRONMENT = _environment()


def check(template: str) -> None:
    """Raises `TemplateError` if the text is no template."""
    _compiled(template)


def render(template: str, variables: Mapping[str, Any]) -> str:
    """The template, filled in.

    Raises:
        TemplateError: It uses a variable that there is not, does what the sandbox forbids, or fails.
    """
    try:
        return _compiled(template).render(variables)
    except TemplateError:
        raise
    except Exception as error:  # A template is a program of the user's: it can fail in any way.
        raise TemplateError(" ".join(str(error).split()) or type(error).__name__) from error


@functools.cache
def _compiled(template: str) -> jinja2.Template:
    try:
        return _ENVIRONMENT.from_string(template)
    except jinja2.TemplateSyntaxError as error:
        raise TemplateError(f"{template!r} is no template: {error.message} (line {error.lineno})") from error
