"""Strings of eight digits: operators reckon with each digit, modulo ten, or move digits about."""

from __future__ import annotations

import itertools
import re

from brb_jax.generator.domain import Domain, Operator
from brb_jax.generator.draws import Draws

Digits = tuple[int, ...]

LENGTH = 8
_TEXT = re.compile(rf"[0-9]{{{LENGTH}}}")


def _sample(draws: Draws) -> Digits:
    return tuple(draws.below(10) for _ in range(LENGTH))


def _render(digits: Digits) -> str:
    return "".join(str(digit) for digit in digits)


def _parse(text: str) -> Digits:
    if _TEXT.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not {LENGTH} digits")
    return tuple(int(character) for character in text)


def _parts(digits: Digits) -> tuple[str, ...]:
    return tuple(str(digit) for digit in digits)


def _edit(digits: Digits, place: int, draws: Draws) -> Digits:
    digit = (digits[place] + 1 + draws.below(9)) % 10
    return (*digits[:place], digit, *digits[place + 1 :])


def _running_sums(digits: Digits) -> Digits:
    return tuple(total % 10 for total in itertools.accumulate(digits))


def _differences(digits: Digits) -> Digits:
    return (digits[0], *((after - before) % 10 for before, after in itertools.pairwise(digits)))


def _swap_neighbours(digits: Digits) -> Digits:
    return tuple(digits[i ^ 1] for i in range(LENGTH))


_OPERATORS = (
    Operator("add_one", "add one to every digit, nine becoming zero", lambda d: tuple((x + 1) % 10 for x in d)),
    Operator(
        "add_three",
        "add three to every digit and keep the last figure",
        lambda d: tuple((x + 3) % 10 for x in d),
    ),
    Operator("complement", "take every digit from nine", lambda d: tuple(9 - x for x in d)),
    Operator("double", "double every digit and keep the last figure", lambda d: tuple(x * 2 % 10 for x in d)),
    Operator(
        "triple",
        "multiply every digit by three and keep the last figure",
        lambda d: tuple(x * 3 % 10 for x in d),
    ),
    Operator(
        "square",
        "multiply every digit by itself and keep the last figure",
        lambda d: tuple(x * x % 10 for x in d),
    ),
    Operator(
        "add_place",
        "add to every digit its place, counted from one, and keep the last figure",
        lambda d: tuple((x + i) % 10 for i, x in enumerate(d, start=1)),
    ),
    Operator(
        "add_first",
        "add the first digit to every digit after it and keep the last figure",
        lambda d: (d[0], *((x + d[0]) % 10 for x in d[1:])),
    ),
    Operator("running_sums", "replace every digit by the last figure of the sum up to it", _running_sums),
    Operator(
        "differences",
        "replace every digit but the first by its difference from the one before, modulo ten",
        _differences,
    ),
    Operator(
        "running_max",
        "replace every digit by the largest one up to it",
        lambda d: tuple(itertools.accumulate(d, max)),
    ),
    Operator("reverse", "put the digits in reverse order", lambda d: d[::-1]),
    Operator("rotate_left", "move the first digit to the end", lambda d: (*d[1:], d[0])),
    Operator("swap_halves", "move the first four digits to the end", lambda d: (*d[4:], *d[:4])),
    Operator("swap_neighbours", "swap the digits in each pair of neighbours", _swap_neighbours),
    Operator("sort", "put the digits in ascending order", lambda d: tuple(sorted(d))),
    Operator(
        "even_first",
        "put the even digits before the odd ones, each in the order they stood",
        lambda d: tuple(sorted(d, key=lambda x: x % 2)),
    ),
)

DIGITS = Domain(
    name="digits",
    operators=_OPERATORS,
    sample=_sample,
    render=_render,
    parse=_parse,
    parts=_parts,
    edit=_edit,
)
