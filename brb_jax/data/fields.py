"""Under which key a file keeps what: the names of fields, their aliases, and the search for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

Problem = tuple[str, str]
"""What is wrong, and what to do about it."""

CASES = "cases"
CASE_ALIASES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "case_id", "question_id", "qid", "uid", "idx", "index"),
    "context": ("context", "prompt", "examples", "memory", "passage", "demonstrations"),
    "query": ("query", "question", "que", "input"),
    "options": ("options", "choices", "candidates"),
    "types": ("types", "option_types", "options_types", "option_type"),
    "answer": ("answer", "ans", "gold", "label", "correct_option", "correct_answer", "target"),
}
# Of a case that has no options yet.
QUESTION_ALIASES = {name: CASE_ALIASES[name] for name in ("id", "context", "query", "answer")}
OPTION_ALIASES: Mapping[str, tuple[str, ...]] = {
    "label": ("label", "letter", "key", "id"),
    "text": ("text", "content", "option", "value", "answer"),
    "type": ("type", "option_type", "kind"),
}
EXAMPLE_ALIASES: Mapping[str, tuple[str, ...]] = {
    "input": ("input", "in", "x", "question", "query"),
    "output": ("output", "out", "y", "answer", "target"),
}
NAMES = (CASES, *CASE_ALIASES, *OPTION_ALIASES, *EXAMPLE_ALIASES)
"""Every name that `--field_map` takes; none of them means two things."""

# An object with all names but these is in canonical form, whatever else it holds.
_NOT_NEEDED = ("id", "types")


@dataclasses.dataclass(frozen=True)
class Unclear:
    """Stands where a field could not be made out, with the reasons. The checker reports them."""

    problems: tuple[Problem, ...]


def unclear(problem: str, remedy: str) -> Unclear:
    return Unclear(((problem, remedy),))


def find(
    raw: Mapping[str, Any],
    aliases: Mapping[str, tuple[str, ...]],
    field_map: Mapping[str, str],
    whose: str = "its",
) -> dict[str, str | Unclear | None]:
    """The key of each field.

    A name in `field_map` has the key given there and no other. Otherwise any alias will do, in any case and with
    spaces or hyphens for underscores, provided that there is one alone: of two, neither is taken.

    Args:
        raw: An object of the file.
        aliases: The names to look for, and what else they are called.
        field_map: As in `Rules`.
        whose: How a problem calls the object.

    Returns:
        For each name its key; None where there is none; and `Unclear` where it cannot be told.
    """
    needed = [name for name in aliases if name not in _NOT_NEEDED]
    canonical = [*needed, "id"] if all(name in raw and field_map.get(name, name) == name for name in needed) else []
    named = {field_map[name] for name in aliases if name in field_map}
    found: dict[str, str | Unclear | None] = {}
    for name, other in aliases.items():
        if name in field_map:
            key = field_map[name]
            absent = unclear(
                f"lacks {key!r}, which --field_map takes for {whose} {name}; its keys are {keys(raw)}",
                f"name another key: --field_map={name}=KEY",
            )
            found[name] = key if key in raw else absent if key else None
            continue
        keys_of_name = [key for key in raw if _plain(key) in other and key not in named]
        if name in canonical and name in raw:
            keys_of_name = [name]
        if len(keys_of_name) > 1:
            found[name] = unclear(
                f"{' or '.join(map(repr, keys_of_name))} could be {whose} {name}; its keys are {keys(raw)}",
                f"say which: --field_map={name}={keys_of_name[0]}",
            )
        else:
            found[name] = keys_of_name[0] if keys_of_name else None
    return found


def has(raw: Mapping[str, Any], name: str, field_map: Mapping[str, str]) -> bool:
    """Whether an object has something that could be this field of a case."""
    if name in field_map:
        return field_map[name] in raw
    named = {field_map[other] for other in CASE_ALIASES if other in field_map}
    return any(_plain(key) in CASE_ALIASES[name] and key not in named for key in raw)


def looks_like_case(raw: Any, field_map: Mapping[str, str], marks: Collection[str]) -> bool:
    """Whether an object has something that could be one of `marks`, and something that could be a query or a context.

    Args:
        raw: A value of the file.
        field_map: As in `Rules`.
        marks: Fields that nothing but a case has: the options, say.
    """
    if not isinstance(raw, dict):
        return False
    return any(has(raw, mark, field_map) for mark in marks) and any(
        has(raw, name, field_map) for name in ("query", "context")
    )


def keys(raw: Iterable[str], most: int = 20) -> str:
    """Keys for a message, not more than will do."""
    listed = list(raw)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return f"{listed[:most]}{more}"


def _plain(key: str) -> str:
    return key.strip().casefold().replace(" ", "_").replace("-", "_")
