"""JSON as the standard has it: what Python's parser lets pass (NaN, doubled keys) is kept, to be refused.

The faults stay inside the parsed value, where they stand, so that whoever walks it can name the case.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, MutableMapping
from typing import Any

# Python refuses to read integers much longer than this.
_MOST_DIGITS = 4_000

# Shorter strings are not worth looking up.
_LONG = 1_000

# How many arrays and objects may lie in one another. What walks through a value later, printing it for one, calls
# itself once a level, and Python ends that at about a thousand.
_DEEPEST = 200
_TOO_DEEP = "not readable as JSON: nested too deeply"


class NotANumber:
    """Stands where the text had `NaN`, `Infinity`, or a number that Python cannot hold."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


class DoubledKeys(dict):
    """An object whose text had a key twice; `doubled` lists such keys."""

    doubled: tuple[str, ...] = ()


def decode(data: bytes) -> str:
    """The text of UTF-8 bytes, with or without a byte order mark.

    Raises:
        ValueError: Not UTF-8; the message says where.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}") from error


def loads(text: str | bytes, texts: MutableMapping[str, str] | None = None) -> Any:
    """Parses JSON.

    Args:
        text: One JSON value; bytes as `decode` takes them.
        texts: Long strings seen so far, each mapped to itself. One that comes again, in this text or in a later
            call's, becomes the same object, as contexts of megabytes do that many cases share.

    Raises:
        ValueError: As `parse`, or not UTF-8.
    """
    return parse(
        decode(text) if isinstance(text, bytes) else text,
        object_pairs_hook=lambda pairs: _object(pairs, {} if texts is None else texts),
        parse_constant=NotANumber,
        parse_float=_float,
        parse_int=_int,
    )


def parse(text: str, **hooks: Any) -> Any:
    """`json.loads`, with its hooks, for texts that anyone may have written.

    Raises:
        ValueError: Not JSON (the message says where), or nested more than 200 deep.
    """
    try:
        value = json.loads(text, **hooks)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(_DEEPEST):
        within = (item for outer in level for item in (outer.values() if isinstance(outer, dict) else outer))
        level = [item for item in within if isinstance(item, dict | list)]
    if level:
        raise ValueError(_TOO_DEEP)
    return value


def faults(value: Any) -> Iterator[str]:
    """What is not standard JSON in a value from `loads`, in the order it stands there."""
    if isinstance(value, NotANumber):
        yield f"{value.text} is no JSON number"
    elif isinstance(value, dict):
        if isinstance(value, DoubledKeys):
            for key in value.doubled:
                yield f"the key {key!r} stands twice in one object"
        for item in value.values():
            yield from faults(item)
    elif isinstance(value, list):
        for item in value:
            yield from faults(item)


def _object(pairs: list[tuple[str, Any]], texts: MutableMapping[str, str]) -> dict[str, Any]:
    result = {
        key: texts.setdefault(value, value) if isinstance(value, str) and len(value) >= _LONG else value
        for key, value in pairs
    }
    if len(result) == len(pairs):
        return result
    seen: set[str] = set()
    doubled: dict[str, None] = {}
    for key, _ in pairs:
        if key in seen:
            doubled[key] = None
        seen.add(key)
    marked = DoubledKeys(result)
    marked.doubled = tuple(doubled)
    return marked


def _int(text: str) -> int | NotANumber:
    return int(text) if len(text) <= _MOST_DIGITS else NotANumber(f"{text[:10]}… ({len(text)} digits)")


def _float(text: str) -> float | NotANumber:
    number = float(text)
    return number if math.isfinite(number) else NotANumber(text)
