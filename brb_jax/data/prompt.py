"""Case ─► the text a model is conditioned on and those it is scored on (README, "How a case is scored")."""

from __future__ import annotations

import dataclasses

from brb_jax.data.case import Case


@dataclasses.dataclass(frozen=True)
class RenderedCase:
    """The prompt of a case and the continuation of each of its options, in option order."""

    prompt: str
    continuations: tuple[str, ...]


def render(case: Case, option_delimiter: str = " ") -> RenderedCase:
    """Joins context, query and options.

    The delimiter is left out where the prompt already ends, or the option begins, with white space.

    Args:
        case: The case.
        option_delimiter: What separates the prompt from an option; may be empty.

    >>> from brb_jax.data.case import Option
    >>> options = (Option("A", "d", "correct"),)
    >>> case = Case("f/1", "d", "MemoryRet", None, None, 1, "a -> b\\n", "c ->", options, "A")
    >>> render(case)
    RenderedCase(prompt='a -> b\\nc ->', continuations=(' d',))
    """
    prompt = case.context + case.query
    return RenderedCase(prompt, tuple(continuation(prompt, option.text, option_delimiter) for option in case.options))


def continuation(prompt: str, option_text: str, option_delimiter: str) -> str:
    """The text scored after `prompt`: the option, behind the delimiter unless white space separates them."""
    separated = prompt[-1:].isspace() or option_text[:1].isspace()
    return option_text if separated else option_delimiter + option_text
