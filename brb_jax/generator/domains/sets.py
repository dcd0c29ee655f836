"""Sets of six squares of a chessboard: operators move every square, or exchange one that is in for one that is not.

Every operator keeps the number of squares: those that move squares are permutations of the board.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from brb_jax.generator.domain import Domain, Operator
from brb_jax.generator.draws import Draws

Square = tuple[int, int]
"""Column and row, from zero; `(0, 0)` is a1."""
Squares = frozenset[Square]

SIZE = 6
_SIDE = 8
_COLUMNS = "abcdefgh"
_TEXT = re.compile(rf"\{{[a-h][1-8](?:, [a-h][1-8]){{{SIZE - 1}}}\}}")
_BOARD = tuple((column, row) for column in range(_SIDE) for row in range(_SIDE))


def _sample(draws: Draws) -> Squares:
    # No two in a column, so that a square can move within its column and keep its place in the order.
    return frozenset((column, draws.below(_SIDE)) for column in draws.sample(range(_SIDE), SIZE))


def _name(square: Square) -> str:
    return f"{_COLUMNS[square[0]]}{square[1] + 1}"


def _parts(squares: Squares) -> tuple[str, ...]:
    return tuple(_name(square) for square in sorted(squares))


def _render(squares: Squares) -> str:
    return f"{{{', '.join(_parts(squares))}}}"


def _parse(text: str) -> Squares:
    if _TEXT.fullmatch(text) is not None:
        squares = frozenset((_COLUMNS.index(name[0]), int(name[1]) - 1) for name in text[1:-1].split(", "))
        if _render(squares) == text:
            return squares
    raise ValueError(f"{text!r} is not a set of {SIZE} squares, a1 to h8, in order")


def _edit(squares: Squares, place: int, draws: Draws) -> Squares:
    column, row = sorted(squares)[place]
    return squares - {(column, row)} | {(column, (row + 1 + draws.below(_SIDE - 1)) % _SIDE)}


def _move(to: Callable[[int, int], Square]) -> Callable[[Squares], Squares]:
    moved = {square: to(*square) for square in _BOARD}
    return lambda squares: frozenset(moved[square] for square in squares)


def _free_first(squares: Squares) -> Squares:
    return squares - {min(squares)} | {next(square for square in _BOARD if square not in squares)}


def _free_last(squares: Squares) -> Squares:
    return squares - {max(squares)} | {next(square for square in reversed(_BOARD) if square not in squares)}


_LAST = _SIDE - 1
_OPERATORS = (
    Operator("up", "move every square one row up, row 1 following row 8", _move(lambda c, r: (c, (r + 1) % _SIDE))),
    Operator(
        "right",
        "move every square one column to the right, column a following column h",
        _move(lambda c, r: ((c + 1) % _SIDE, r)),
    ),
    Operator(
        "up_by_column",
        "move the squares of column a one row up, of column b two and so on, row 1 following row 8",
        _move(lambda c, r: (c, (r + c + 1) % _SIDE)),
    ),
    Operator(
        "right_by_row",
        "move the squares of row 1 one column to the right, of row 2 two and so on, column a following column h",
        _move(lambda c, r: ((c + r + 1) % _SIDE, r)),
    ),
    Operator("mirror_columns", "turn column a into h, b into g and so on", _move(lambda c, r: (_LAST - c, r))),
    Operator("mirror_rows", "turn row 1 into 8, 2 into 7 and so on", _move(lambda c, r: (c, _LAST - r))),
    Operator(
        "half_turn", "turn the board by half a turn, so that a1 becomes h8", _move(lambda c, r: (_LAST - c, _LAST - r))
    ),
    Operator(
        "quarter_turn",
        "turn the board clockwise by a quarter, so that a1 becomes a8 and a8 becomes h8",
        _move(lambda c, r: (r, _LAST - c)),
    ),
    Operator("transpose", "swap column and row, so that a2 becomes b1", _move(lambda c, r: (r, c))),
    Operator(
        "swap_row_halves",
        "swap row 1 with row 5, 2 with 6, 3 with 7 and 4 with 8",
        _move(lambda c, r: (c, r ^ 4)),
    ),
    Operator(
        "swap_columns",
        "swap column a with column b, c with d, e with f and g with h",
        _move(lambda c, r: (c ^ 1, r)),
    ),
    Operator(
        "lift_even",
        "move the squares of columns b, d, f and h one row up, row 1 following row 8",
        _move(lambda c, r: (c, (r + c % 2) % _SIDE)),
    ),
    Operator(
        "swap_middle_rows",
        "swap row 4 with row 5 and row 3 with row 6",
        _move(lambda c, r: (c, _LAST - r if 2 <= r <= 5 else r)),
    ),
    Operator(
        "free_first",
        "take the first square out and put the first free square of the board in",
        _free_first,
    ),
    Operator("free_last", "take the last square out and put the last free square of the board in", _free_last),
)

SETS = Domain(
    name="sets",
    operators=_OPERATORS,
    sample=_sample,
    render=_render,
    parse=_parse,
    parts=_parts,
    edit=_edit,
)
