"""How far a run is: a bar in a terminal, a log line now and then elsewhere (a pod's logs, a file)."""

from __future__ import annotations

import collections
import sys
import time
from collections.abc import Iterable
from types import TracebackType

import jax
from rich import progress as rich_progress
from rich.console import Console

SECONDS_BETWEEN_LOG_LINES = 15.0


def say(line: str) -> None:
    """Prints a line to standard error, on process 0."""
    if jax.process_index() == 0:
        print(line, file=sys.stderr, flush=True)


class Progress:
    """Counts cases whose options are all scored, and the tokens computed for them. Process 0 alone shows it."""

    def __init__(self, options: Iterable[tuple[str, int]]):
        """
        Args:
            options: (case id, option index) of everything that will be scored.
        """
        self._left = collections.Counter(case_id for case_id, _ in options)
        self._cases = len(self._left)
        self._done = self._tokens = 0
        self._started = self._logged = time.monotonic()
        self._shown = jax.process_index() == 0
        self._bar: rich_progress.Progress | None = None
        if self._shown and sys.stderr.isatty():
            self._bar = rich_progress.Progress(
                rich_progress.TextColumn("scoring"),
                rich_progress.BarColumn(),
                rich_progress.MofNCompleteColumn(),
                rich_progress.TextColumn("cases · {task.fields[rates]} · left"),
                rich_progress.TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task("scoring", total=self._cases, rates="compiling")

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._shown and kind is None:
            say(f"scored {self._summary()}")

    def advance(self, options: Iterable[tuple[str, int]], tokens: int) -> None:
        """Counts one batch.

        Args:
            options: (case id, option index) of what it scored.
            tokens: Inputs it computed, without padding.
        """
        for case_id, _ in options:
            self._left[case_id] -= 1
            self._done += self._left[case_id] == 0
        self._tokens += tokens
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, rates=self._rates())
        elif self._shown and time.monotonic() - self._logged >= SECONDS_BETWEEN_LOG_LINES:
            self._logged = time.monotonic()
            say(f"scoring: {self._summary()}, {self._time_left()} left")

    def _rates(self) -> str:
        seconds = max(time.monotonic() - self._started, 1e-9)
        return f"{self._done / seconds:.2f} cases/s · {self._tokens / seconds:,.0f} tokens/s"

    def _summary(self) -> str:
        seconds = time.monotonic() - self._started
        return f"{self._done} of {self._cases} cases in {seconds:.1f} s · {self._rates()}"

    def _time_left(self) -> str:
        if not self._done:
            return "unknown time"
        seconds = (time.monotonic() - self._started) / self._done * (self._cases - self._done)
        return f"{seconds:.0f} s"
