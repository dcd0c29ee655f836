"""Lists of five numbers of two figures: operators reckon with each number, compare them, or move them about."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from brb_jax.generator.domain import Domain, Operator
from brb_jax.generator.draws import Draws

Numbers = tuple[int, ...]

LENGTH = 5
_LEAST, _MOST = 10, 99
_TEXT = re.compile(rf"\[[1-9][0-9](?:, [1-9][0-9]){{{LENGTH - 1}}}\]")


def _sample(draws: Draws) -> Numbers:
    return tuple(_LEAST + draws.below(_MOST - _LEAST + 1) for _ in range(LENGTH))


def _render(numbers: Numbers) -> str:
    return f"[{', '.join(str(number) for number in numbers)}]"


def _parse(text: str) -> Numbers:
    if _TEXT.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a list of {LENGTH} numbers from {_LEAST} to {_MOST}")
    return tuple(int(number) for number in text[1:-1].split(", "))


def _parts(numbers: Numbers) -> tuple[str, ...]:
    return tuple(str(number) for number in numbers)


def _edit(numbers: Numbers, place: int, draws: Draws) -> Numbers:
    number = _counted_on(numbers[place], 1 + draws.below(_MOST - _LEAST))
    return (*numbers[:place], number, *numbers[place + 1 :])


def _counted_on(number: int, by: int) -> int:
    return _LEAST + (number - _LEAST + by) % (_MOST - _LEAST + 1)


def _each(reckon: Callable[[int], int]) -> Callable[[Numbers], Numbers]:
    return lambda numbers: tuple(reckon(number) for number in numbers)


def _largest_first(numbers: Numbers) -> Numbers:
    place = numbers.index(max(numbers))
    return (numbers[place], *numbers[:place], *numbers[place + 1 :])


def _smallest_last(numbers: Numbers) -> Numbers:
    place = numbers.index(min(numbers))
    return (*numbers[:place], *numbers[place + 1 :], numbers[place])


def _turn_figures(number: int) -> int:
    tens, ones = divmod(number, 10)
    return number if ones == 0 else ones * 10 + tens


_OPERATORS = (
    Operator("add_one", "add one to every number, 10 following 99", _each(lambda number: _counted_on(number, 1))),
    Operator("add_seven", "add seven to every number, 10 following 99", _each(lambda number: _counted_on(number, 7))),
    Operator("mirror", "take every number from 109", _each(lambda number: _LEAST + _MOST - number)),
    Operator(
        "turn_figures",
        "swap the two figures of every number that does not end in zero",
        _each(_turn_figures),
    ),
    Operator("round_down", "round every number down to a multiple of ten", _each(lambda number: number // 10 * 10)),
    Operator(
        "halve_even",
        "halve every even number that is at least 20",
        _each(lambda number: number // 2 if number % 2 == 0 and number >= 20 else number),
    ),
    Operator("at_most_sixty", "put 60 in place of every number above 60", _each(lambda number: min(number, 60))),
    Operator("at_least_forty", "put 40 in place of every number below 40", _each(lambda number: max(number, 40))),
    Operator("sort", "put the numbers in ascending order", lambda n: tuple(sorted(n))),
    Operator("sort_down", "put the numbers in descending order", lambda n: tuple(sorted(n, reverse=True))),
    Operator(
        "sort_by_last_figure",
        "order the numbers by their last figures, numbers with the same last figure as they stood",
        lambda n: tuple(sorted(n, key=lambda number: number % 10)),
    ),
    Operator(
        "odd_first",
        "put the odd numbers before the even ones, each in the order they stood",
        lambda n: tuple(sorted(n, key=lambda number: number % 2 == 0)),
    ),
    Operator("reverse", "put the numbers in reverse order", lambda n: n[::-1]),
    Operator("rotate_left", "move the first number to the end", lambda n: (*n[1:], n[0])),
    Operator("largest_first", "move the largest number to the front", _largest_first),
    Operator("smallest_last", "move the smallest number to the end", _smallest_last),
    Operator(
        "larger_neighbour",
        "replace every number but the last by the larger of it and the one after it",
        lambda n: (*(max(pair) for pair in itertools.pairwise(n)), n[-1]),
    ),
)

NUMBERS = Domain(
    name="numbers",
    operators=_OPERATORS,
    sample=_sample,
    render=_render,
    parse=_parse,
    parts=_parts,
    edit=_edit,
)
