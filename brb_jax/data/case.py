"""The canonical case: a context, a query, and options of which one is correct."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

CORRECT = "correct"


@dataclasses.dataclass(frozen=True)
class TaskSpec:
    """What the benchmark fixes for one task.

    Attributes:
        name: The task's name as it stands in file names.
        option_types: The type of every option a case offers, `correct` first. Each occurs once in a case.
    """

    name: str
    option_types: tuple[str, ...]

    @property
    def wrong_types(self) -> tuple[str, ...]:
        return tuple(t for t in self.option_types if t != CORRECT)

    @property
    def chance(self) -> float:
        """The accuracy of a uniformly random choice."""
        return 1.0 / len(self.option_types)


TASKS: Mapping[str, TaskSpec] = {
    spec.name: spec
    for spec in (
        TaskSpec("MemoryRet", (CORRECT, "retrieval_similar", "random_wrong")),
        TaskSpec("MemoryCom", (CORRECT, "surface_similar", "wrong_rule", "random_wrong")),
        TaskSpec("MemoryRev", (CORRECT, "retrieval_similar", "old_rule", "random_wrong")),
    )
}


@dataclasses.dataclass(frozen=True)
class Option:
    """One answer offered: its label (`A`, `B`, …), its text, and what choosing it reveals."""

    label: str
    text: str
    type: str


@dataclasses.dataclass(frozen=True)
class Case:
    """One multiple-choice case.

    Attributes:
        case_id: `<file name without _que_ans.json>/<the case's own id>`; unique in a run.
        domain, task, k, edit_k, m: From the file's name; `k` and `edit_k` are None where the name has none.
        context: Everything before the question. Equal strings are shared between cases.
        query: The question; ends right before the answer.
        options: In label order.
        answer: The label of the correct option.
        metadata: Whatever the file carries besides (the generator's program, definitions, seeds).
    """

    case_id: str
    domain: str
    task: str
    k: int | None
    edit_k: int | None
    m: int
    context: str
    query: str
    options: tuple[Option, ...]
    answer: str
    metadata: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def correct_index(self) -> int:
        """Position of the correct option in `options`."""
        return next(i for i, option in enumerate(self.options) if option.label == self.answer)
