"""Which option a file's `answer` means. Only forms with one meaning are taken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

FORMS = 'a label ("C"), a 0-based index (2), or one option\'s exact text'

_LABEL = re.compile(r"\s*([A-Za-z])\.?\s*")


class Position(int):
    """An option's place that the form of the case has settled, where a file has no way to write it."""


def answer_index(answer: Any, texts: Sequence[str]) -> int:
    """The position of the option that `answer` names.

    A label may be lower case, padded, or followed by a full stop. A string of digits could be an index or a
    text, so it is taken only where it is an option's exact text.

    Args:
        answer: The value as it stood in the file, or a `Position`.
        texts: The options' texts in label order; the labels are `A`, `B`, ….

    Raises:
        ValueError: The value names no option, or could name two.

    >>> answer_index(" c. ", ["lark", "kite", "jade"]), answer_index(0, ["lark", "kite"])
    (2, 0)
    """
    if isinstance(answer, Position):
        return int(answer)
    if isinstance(answer, int) and not isinstance(answer, bool):
        readings = {answer} if 0 <= answer < len(texts) else set()
    elif isinstance(answer, str):
        label = _LABEL.fullmatch(answer)
        position = ord(label[1].upper()) - ord("A") if label else len(texts)
        readings = {position} if position < len(texts) else set()
    else:
        raise ValueError(f"the answer {answer!r} is neither text nor an index")
    readings |= {i for i, text in enumerate(texts) if text == str(answer)}
    if not readings:
        raise ValueError(f"the answer {answer!r} names none of the {len(texts)} options")
    if len(readings) > 1:
        named = " or ".join(chr(ord("A") + i) for i in sorted(readings))
        raise ValueError(f"the answer {answer!r} could mean option {named}")
    return readings.pop()
