"""What a file to be generated shall hold."""

from __future__ import annotations

import dataclasses
from typing import Any

from brb_jax.data.case import TASKS
from brb_jax.data.filename import FileName
from brb_jax.generator.domains import DOMAINS

DEFINITIONS = ("examples", "text", "both")
RELEVANT = ("spread", "early", "late")
REVISIONS = ("examples", "statement", "both")

MAX_K = 5  # A certificate tries every order of K operators.
MAX_M = 100_000  # A context of some five million tokens.
MAX_QUESTIONS = 1_000  # About one context, each by itself drawn and certified.


class SpecError(ValueError):
    """No file can be generated as asked; the message says which knob to turn."""


def least_m(task: str, operators: int, distance: int) -> int:
    """One example of every operator; as many composed, or after the revision; and those in between."""
    return operators * (1 if task == "MemoryRet" else 2) + distance


@dataclasses.dataclass(frozen=True)
class FileSpec:
    """The knobs of one file.

    Attributes:
        domain: A key of `DOMAINS`.
        task: A key of `TASKS`.
        k: Number of composed operators, for MemoryCom only. 1 is the control: the question is about one
            operator, in a context that composes two.
        edit_k: Number of revised operators, for MemoryRev only.
        m: Number of examples in a context; definitions and statements are not counted.
        cases: Number of cases in the file.
        questions_per_context: How many neighbouring cases share one context.
        operators: Number of named operators in a context.
        definitions: One of `DEFINITIONS`: the rules are shown by examples, told in words, or both. With
            `text`, no example shows an operator alone that is asked about.
        revision: One of `REVISIONS`, for MemoryRev: the new rule is told by examples, by a statement, or by both.
        relevant: One of `RELEVANT`: where the lines lie that speak of the operators asked about.
        distance: How many examples of other operators follow after all else.
        seed: Names the stream of draws. The same spec gives the same bytes; more cases continue fewer. Files
            that differ in `m` or `distance` only are about the same operators by the same names.

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
    definitions: str = "examples"
    revision: str = "both"
    relevant: str = "spread"
    distance: int = 0
    seed: int = 0

    def __post_init__(self):
        for knob, plural, known in (
            ("domain", "domains", DOMAINS),
            ("task", "tasks", TASKS),
            ("definitions", "definitions", DEFINITIONS),
            ("revision", "revisions", REVISIONS),
            ("relevant", "places of relevant examples", RELEVANT),
        ):
            if getattr(self, knob) not in known:
                raise SpecError(f"unknown {knob} {getattr(self, knob)!r}; {plural} are {', '.join(known)}")
        for task, knob, value in (("MemoryCom", "k", self.k), ("MemoryRev", "edit_k", self.edit_k)):
            if (value is not None) != (task == self.task):
                raise SpecError(f"{knob} is for {task}, and {task} needs it; got {self.task} with {knob}={value}")
        self._check_range("cases", self.cases, 0, None)
        self._check_range("questions_per_context", self.questions_per_context, 1, MAX_QUESTIONS)
        self._check_range("distance", self.distance, 0, None)
        # A revised operator takes a rule that no name of the context has.
        library = len(DOMAINS[self.domain].operators)
        self._check_range("operators", self.operators, 1, library - (self.edit_k or 0))
        if self.k is not None:
            self._check_range("operators", self.operators, 2, library)
            self._check_range("k", self.k, 1, min(MAX_K, self.operators))
        if self.edit_k is not None:
            self._check_range("edit_k", self.edit_k, 1, self.operators - 1)
        if self.operators == (self.k or self.edit_k or 1):
            for arrangement, plain in (
                (f"relevant={self.relevant}", "relevant=spread"),
                (f"distance={self.distance}", "distance=0"),
            ):
                if arrangement != plain:
                    raise SpecError(
                        f"{self.task}: {arrangement} needs operators that are not asked about; raise operators"
                    )
            if self.definitions == "text" and self.task == "MemoryRet":
                raise SpecError(f"{self.task}: definitions=text leaves no operator to show; raise operators")
        self._check_range("m", self.m, self.least_m, MAX_M)

    def _check_range(self, knob: str, value: int, least: int, most: int | None):
        if value < least or (most is not None and value > most):
            bound = f"at least {least}" if most is None else f"between {least} and {most}"
            raise SpecError(f"{self.task} with operators={self.operators}: {knob} must be {bound}, got {value}")

    @property
    def least_m(self) -> int:
        return least_m(self.task, self.operators, self.distance)

    @property
    def focused(self) -> bool:
        """Whether all questions about a context are about the same operators, which its lines are arranged for."""
        return self.relevant != "spread" or self.distance > 0 or self.definitions == "text"

    @property
    def stream(self) -> tuple[object, ...]:
        """Names the file's draws: every knob but `cases`, `m` and `distance`."""
        knobs = dataclasses.asdict(self)
        return tuple(knobs[knob] for knob in knobs if knob not in ("cases", "m", "distance"))

    @property
    def file_name(self) -> FileName:
        return FileName(self.domain, self.task, self.k, self.edit_k, self.m)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the file says of itself: every knob, and the version of the generator's format."""
        return {"generator": "brb_jax.generate", "format": 2, **dataclasses.asdict(self)}
