"""What can be wrong with benchmark files, and the one error that lists it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

_MAX_LISTED = 20


@dataclasses.dataclass(frozen=True)
class Fault:
    """One thing wrong with a file or a case.

    Attributes:
        file: The file as it was named.
        place: The case's 0-based place in its file; None for a fault of the whole file.
        case: The case's own id; None where it has no usable one.
        problem: What is wrong.
        remedy: What to do about it.
    """

    file: str
    place: int | None
    case: str | None
    problem: str
    remedy: str

    def __str__(self) -> str:
        place = "" if self.place is None else f", case #{self.place}"
        case = "" if self.case is None else f" (id {self.case})"
        return f"{self.file}{place}{case}: {self.problem}; {self.remedy}"


class DataError(ValueError):
    """Benchmark files cannot be used as they are.

    Attributes:
        faults: Every fault found, in file order. The message lists the first 20 and the count.
    """

    def __init__(self, faults: Sequence[Fault]):
        self.faults = tuple(faults)
        noun = "fault" if len(self.faults) == 1 else "faults"
        super().__init__(f"{len(self.faults)} {noun} in the data:{listed(self.faults)}")


def listed(things: Iterable[object]) -> str:
    """The first 20 of them, each on an indented line of its own, and how many more there are."""
    lines = [f"\n  {thing}" for thing in things]
    left_out = len(lines) - _MAX_LISTED
    return "".join(lines[:_MAX_LISTED]) + (f"\n  … and {left_out} more" if left_out > 0 else "")
