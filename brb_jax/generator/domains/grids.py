"""Grids of four rows and four columns in five colours: operators turn, move, paint or order the cells."""

from __future__ import annotations

import re
from collections.abc import Callable

from brb_jax.generator.domain import Domain, Operator
from brb_jax.generator.draws import Draws

Grid = tuple[str, ...]
"""Rows from the top, each a string of one letter a cell."""

SIDE = 4
_COLOURS = "bgrwy"
_TEXT = re.compile(rf"[{_COLOURS}]{{{SIDE}}}(?:/[{_COLOURS}]{{{SIDE}}}){{{SIDE - 1}}}")


def _sample(draws: Draws) -> Grid:
    return tuple("".join(draws.choice(_COLOURS) for _ in range(SIDE)) for _ in range(SIDE))


def _parse(text: str) -> Grid:
    if _TEXT.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not {SIDE} rows of {SIDE} letters of {_COLOURS}, with slashes between")
    return tuple(text.split("/"))


def _edit(grid: Grid, place: int, draws: Draws) -> Grid:
    y, x = divmod(place, SIDE)
    colour = draws.choice([colour for colour in _COLOURS if colour != grid[y][x]])
    return _paint(grid, lambda row, column, old: colour if (row, column) == (y, x) else old)


def _paint(grid: Grid, colour: Callable[[int, int, str], str]) -> Grid:
    """The grid whose cells are what `colour` says of row, column, and the colour that was there."""
    return tuple("".join(colour(y, x, old) for x, old in enumerate(row)) for y, row in enumerate(grid))


def _recolour(old: str, new: str) -> Callable[[Grid], Grid]:
    table = str.maketrans(old, new)
    return lambda grid: tuple(row.translate(table) for row in grid)


def _rows(change: Callable[[str], str]) -> Callable[[Grid], Grid]:
    return lambda grid: tuple(change(row) for row in grid)


def _transpose(grid: Grid) -> Grid:
    return tuple("".join(column) for column in zip(*grid, strict=True))


def _swap_quarters(grid: Grid) -> Grid:
    top, bottom = grid[:2], grid[2:]
    return (
        *(down[2:] + up[2:] for up, down in zip(top, bottom, strict=True)),
        *(down[:2] + up[:2] for up, down in zip(top, bottom, strict=True)),
    )


_OPERATORS = (
    Operator("transpose", "make the first row the first column, the second row the second and so on", _transpose),
    Operator("mirror", "mirror every row, left to right", _rows(lambda row: row[::-1])),
    Operator("flip", "put the rows in reverse order", lambda g: g[::-1]),
    Operator("quarter_turn", "turn the grid clockwise by a quarter", lambda g: _transpose(g[::-1])),
    Operator("half_turn", "turn the grid by half a turn", lambda g: tuple(row[::-1] for row in g[::-1])),
    Operator("rows_down", "move the bottom row to the top", lambda g: (g[-1], *g[:-1])),
    Operator("columns_right", "move the last cell of every row to its front", _rows(lambda row: row[-1] + row[:-1])),
    Operator(
        "shift_by_row",
        "move the first cell of the second row to its end, the first two of the third, the first three of the fourth",
        lambda g: tuple(row[y:] + row[:y] for y, row in enumerate(g)),
    ),
    Operator("swap_quarters", "swap the upper left quarter with the lower right one", _swap_quarters),
    Operator("next_colour", "replace every b by g, g by r, r by w, w by y, and y by b", _recolour("bgrwy", "grwyb")),
    Operator("swap_blue_red", "replace every b by r and every r by b", _recolour("br", "rb")),
    Operator("swap_green_white", "replace every g by w and every w by g", _recolour("gw", "wg")),
    Operator("paint_yellow", "replace every y by r", _recolour("y", "r")),
    Operator("sort_rows", "put the cells of every row in alphabetical order", _rows(lambda row: "".join(sorted(row)))),
    Operator("order_rows", "put the rows in alphabetical order", lambda g: tuple(sorted(g))),
    Operator("copy_top", "put a copy of the top row in place of the bottom row", lambda g: (*g[:-1], g[0])),
    Operator(
        "mirror_half",
        "replace the right half of every row by the mirror image of its left half",
        _rows(lambda row: row[:2] + row[1::-1]),
    ),
    Operator(
        "white_diagonal",
        "make the first cell of the first row w, the second of the second and so on",
        lambda g: _paint(g, lambda y, x, old: "w" if x == y else old),
    ),
)

GRIDS = Domain(
    name="grids",
    operators=_OPERATORS,
    sample=_sample,
    render="/".join,
    parse=_parse,
    parts=lambda grid: tuple("".join(grid)),
    edit=_edit,
)
