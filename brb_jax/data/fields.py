"""Under which key a file keeps what: the names of fields, their aliases, and the search for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
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

# An object with all of these under their own names is in canonical form, whatever else it holds; an id goes with it.
_CANONICAL = (("context", "query", "options", "answer"), tuple(OPTION_ALIASES), tuple(EXAMPLE_ALIASES))


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
    canonical = {
        name
        for names in _CANONICAL
        if set(names) <= aliases.keys() and all(name in raw and field_map.get(name, name) == name for name in names)
        for name in (*names, "id")
    }
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


def looks_like_case(raw: Any, field_map: Mapping[str, str]) -> bool:
    """Whether an object has something that could be options, and something that could be a question or a context."""
    if not isinstance(raw, dict):
        return False
    plain = {_plain(key) for key in raw}

    def has(name: str) -> bool:
        return field_map[name] in raw if name in field_map else not plain.isdisjoint(CASE_ALIASES[name])

    return has("options") and (has("query") or has("context"))


def keys(raw: Iterable[str], most: int = 20) -> str:
    """Keys for a message, not more than will do."""
    listed = list(raw)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return f"{listed[:most]}{more}"


def _plain(key: str) -> str:
    return key.strip().casefold().replace(" ", "_").replace("-", "_")
