"""JSON as the standard has it: what Python's parser lets pass (NaN, doubled keys) is kept, to be refused.

The faults stay inside the parsed value, where they stand, so that whoever walks it can name the case.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any


class NotANumber:
    """Stands where the text had `NaN`, `Infinity`, or a number too large for a float."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


class DoubledKeys(dict):
    """An object whose text had a key twice; `doubled` lists such keys."""

    doubled: tuple[str, ...] = ()


def loads(data: bytes) -> Any:
    """Parses UTF-8 JSON, with or without a byte order mark.

    Raises:
        ValueError: Not UTF-8, or not JSON; the message says where.
    """
    try:
        text = data.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_object, parse_constant=NotANumber, parse_float=_float)
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    except RecursionError as error:
        raise ValueError("not readable as JSON: nested too deeply") from error


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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
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


def _float(text: str) -> float | NotANumber:
    number = float(text)
    return number if math.isfinite(number) else NotANumber(text)
