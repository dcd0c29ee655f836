"""Options asked of an LLM: what it is told, and what of its replies is taken. A reply is text to check, no more."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from brb_jax.data import strict_json
from brb_jax.data.questions import Question
from brb_jax.generator.options.mutation import material
from brb_jax.generator.options.shape import pattern

Ask = Callable[[str], str]
"""Prompt ─► reply. May raise ValueError where this prompt gets no reply; other errors end the work."""

ATTEMPTS = 3

_MISTAKES: Mapping[str, str] = {
    "wrong_rule": "knows every rule of the examples, but applies them in a wrong order",
    "old_rule": "knows the rules as they were first shown, and missed that one was revised later in the text",
}
_BAD_CHARACTER = re.compile("[\0-\x1f\x7f\ud800-\udfff]")
_FENCED = re.compile(r"```(?:json)?\s*(?P<inner>\{.*\})\s*```", re.DOTALL)


def proposed(question: Question, kind: str, taken: Sequence[str], ask: Ask) -> str:
    """An option of the LLM's making.

    A reply that is refused is followed by another prompt, which says why; the last is the `ATTEMPTS`-th.

    Args:
        question: The question.
        kind: A key of `_MISTAKES`: `wrong_rule` or `old_rule`.
        taken: Texts that the option must differ from, the right answer first.
        ask: The LLM.

    Raises:
        ValueError: No reply, or none that could be taken; says why, reply by reply.
    """
    refused: list[str] = []
    for _ in range(ATTEMPTS):
        reply = ask(prompt(question, kind, taken, refused))
        try:
            return checked(reply, question, taken)
        except ValueError as error:
            refused.append(str(error))
    raise ValueError(f"{ATTEMPTS} replies of the LLM were refused: {'; '.join(refused)}")


def prompt(question: Question, kind: str, taken: Sequence[str], refused: Sequence[str]) -> str:
    """What the LLM is told. Equal questions and refusals make equal prompts."""
    lines = [
        "Below is a text that shows rules by examples, and a question about it.",
        f"The right answer is: {taken[0]}",
        f"Write the answer of someone who {_MISTAKES[kind]}.",
        "It must have the form of the right answer and differ from it"
        + "".join(f", and from: {other}" for other in taken[1:])
        + ".",
        'Reply with one JSON object and nothing else: {"answer": "…"}',
        *(f"An earlier reply was refused: {reason}." for reason in refused),
    ]
    return "\n".join(lines) + f"\n\nText:\n{question.context}\nQuestion:\n{question.query}\n"


def checked(reply: str, question: Question, taken: Sequence[str]) -> str:
    """The option in a reply.

    It must be the text of `answer` in one JSON object, on one line of printable characters, not much longer than the
    outputs shown; differ from every text taken; and have the pattern (see `shape.pattern`) of the right answer or of an
    output shown.

    Raises:
        ValueError: Says which of these it lacks.
    """
    text = _answer(reply)
    if bad := _BAD_CHARACTER.search(text):
        raise ValueError(f"it holds the character U+{ord(bad[0]):04X}")
    if not text:
        raise ValueError("it is empty")
    outputs = material(question.context).outputs
    longest = 2 * max(map(len, (question.answer, *outputs)))
    if len(text) > longest:
        raise ValueError(f"it has {len(text)} characters, and no more than {longest} would do")
    if text in taken:
        raise ValueError(f"it repeats the option {text!r}")
    if pattern(text) not in {pattern(question.answer.strip()), *map(pattern, outputs)}:
        raise ValueError(f"{_shown(text)} has not the form of the right answer")
    return text


def _answer(reply: str) -> str:
    fenced = _FENCED.fullmatch(reply.strip())
    try:
        # Lone surrogates are let through here and refused as characters of the answer.
        document = strict_json.loads((fenced["inner"] if fenced else reply).encode("utf-8", "surrogatepass"))
    except ValueError:
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("answer"), str):
        raise ValueError("it is not one JSON object with a text as its answer")
    return document["answer"].strip()


def _shown(text: str, length: int = 60) -> str:
    return repr(text if len(text) <= length else text[:length] + "…")
