"""What a file to be generated shall hold."""

from __future__ import annotations

import dataclasses
from typing import Any

from brb_jax.data.case import TASKS
from brb_jax.data.filename import FileName
from brb_jax.generator.domains import DOMAINS

REVISIONS = ("examples", "statement", "both")

MAX_K = 5  # A certificate tries every order of K operators.


class SpecError(ValueError):
    """No file can be generated as asked; the message says which knob to turn."""


@dataclasses.dataclass(frozen=True)
class FileSpec:
    """The knobs of one file.

    Attributes:
        domain: A key of `DOMAINS`.
        task: A key of `TASKS`.
        k: Number of composed operators, for MemoryCom only.
        edit_k: Number of revised operators, for MemoryRev only.
        m: Number of examples in a context; statements of a revision are not counted.
        cases: Number of cases in the file.
        questions_per_context: How many neighbouring cases share one context.
        operators: Number of named operators in a context.
        revision: One of `REVISIONS`: the new rule is told by examples, by a statement, or by both.
        seed: Names the stream of draws. The same spec gives the same bytes; more cases continue fewer.

    Raises:
        SpecError: The knobs contradict each other.
    """

    domain: str
    task: str
    k: int | None = None
    edit_k: int | None = None
    m: int = 70
    cases: int = 50
    questions_per_context: int = 1
    operators: int = 5
    revision: str = "both"
    seed: int = 0

    def __post_init__(self):
        if self.domain not in DOMAINS:
            raise SpecError(f"unknown domain {self.domain!r}; domains are {', '.join(DOMAINS)}")
        if self.task not in TASKS:
            raise SpecError(f"unknown task {self.task!r}; tasks are {', '.join(TASKS)}")
        if self.revision not in REVISIONS:
            raise SpecError(f"unknown revision {self.revision!r}; it is one of {', '.join(REVISIONS)}")
        for task, knob, value in (("MemoryCom", "k", self.k), ("MemoryRev", "edit_k", self.edit_k)):
            if (value is not None) != (task == self.task):
                raise SpecError(f"{knob} is for {task}, and {task} needs it; got {self.task} with {knob}={value}")
        self._check_range("cases", self.cases, 0, None)
        self._check_range("questions_per_context", self.questions_per_context, 1, None)
        # A revised operator takes a rule that no name of the context has.
        library = len(DOMAINS[self.domain].operators)
        self._check_range("operators", self.operators, 1, library - (self.edit_k or 0))
        if self.k is not None:
            self._check_range("k", self.k, 2, min(MAX_K, self.operators))
        if self.edit_k is not None:
            self._check_range("edit_k", self.edit_k, 1, self.operators - 1)
        # One example of every operator; and as many composed, or after the revision.
        self._check_range("m", self.m, self.operators * (1 if self.task == "MemoryRet" else 2), None)

    def _check_range(self, knob: str, value: int, least: int, most: int | None):
        if value < least or (most is not None and value > most):
            bound = f"at least {least}" if most is None else f"between {least} and {most}"
            raise SpecError(f"{self.task} with operators={self.operators}: {knob} must be {bound}, got {value}")

    @property
    def file_name(self) -> FileName:
        return FileName(self.domain, self.task, self.k, self.edit_k, self.m)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the file says of itself: every knob, and the version of the generator's format."""
        return {"generator": "brb_jax.generate", "format": 1, **dataclasses.asdict(self)}
