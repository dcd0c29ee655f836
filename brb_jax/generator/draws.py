"""Random draws that are the same on every machine and Python version."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """A stream of draws named by its seed.

    Of Python's `random` only `random()` under an integer seed is promised never to change, so all is built on
    that alone; and the seed is hashed by sha256, not by `hash`, which differs from process to process.
    """

    def __init__(self, *seed: object):
        text = "\x1f".join(str(part) for part in seed)
        self._random = random.Random(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))

    def below(self, n: int) -> int:
        """A number in `range(n)`."""
        return int(self._random.random() * n)

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], n: int) -> list[T]:
        """`n` of the items at different places, in random order."""
        pool = list(items)
        for i in range(n):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:n]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """All items in random order."""
        return self.sample(items, len(items))
