"""Where a case's right option stands among the others. Knows nothing of what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from brb_jax.data.case import TASKS, Option
from brb_jax.generator.draws import Draws


def balanced_labels(task: str, draws: Draws) -> Iterator[str]:
    """The labels of a file's right options: every run of as many cases as there are labels has each once."""
    labels = [chr(ord("A") + i) for i in range(len(TASKS[task].option_types))]
    while True:
        yield from draws.shuffled(labels)


def labelled(texts: Mapping[str, str], answer: str, draws: Draws) -> tuple[Option, ...]:
    """The options in random order, but for the right one.

    Args:
        texts: By option type, the right one first.
        answer: The label of the right one.
        draws: Orders the others.
    """
    (right, *wrong) = texts.items()
    placed = draws.shuffled(wrong)
    placed.insert(ord(answer) - ord("A"), right)
    return tuple(Option(chr(ord("A") + i), text, kind) for i, (kind, text) in enumerate(placed))
