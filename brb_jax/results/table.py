"""`results.json` ─► tables for a terminal, readable too where output goes to a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

WIDTH = 100
NONE = "n/a"
_STYLE: Mapping[str, Any] = {
    "title_justify": "left",
    "title_style": "bold",
    "box": box.SIMPLE_HEAD,
    "pad_edge": False,
}


def print_tables(results: Mapping[str, Any], file: IO[str] | None = None) -> None:
    """Prints accuracy by task, kinds of error, and what MemoryRev says about updating.

    Args:
        results: What `results.json` holds: from `metrics.summarise`, with `baselines` or without.
        file: Where to; standard output by default. At most 100 columns are used, and colours only on a
            terminal.
    """
    file = file or sys.stdout
    console = Console(file=file, highlight=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    print_table(console, _accuracy_table(results))
    if results.get("baselines"):
        print_table(console, _baseline_table(results))
    if results["overall"]["wrong_types"]:
        print_table(console, _wrong_type_table(results), names=2)
    console.print(_sentences(results))


def print_table(console: Console, table: Table, names: int = 1) -> None:
    """Prints a table with the cells of its `no_wrap` columns whole, however narrow the console.

    Where it is too wide, headings are broken into lines and gaps made smaller; where that is not enough, columns go to
    further tables.

    Args:
        console: Where to.
        table: What to print; its headings are strings.
        names: How many columns name a row, and so stand at the left of every further table.
    """
    if not _fits(console, table):
        for column in table.columns:
            column.header = str(column.header).replace(" ", "\n")
        table.padding = (0, 1, 0, 0)
    first, end = names, len(table.columns)
    while first < end:
        parts = (_columns(table, [*range(names), *range(first, last)]) for last in range(end, first, -1))
        part = next((part for part in parts if _fits(console, part)), _columns(table, [*range(names), first]))
        part.title = table.title if first == names else None
        console.print(part)
        first += len(part.columns) - names


def _fits(console: Console, table: Table) -> bool:
    unbounded = console.options.update_width(sys.maxsize)
    for column in table.columns:
        if column.no_wrap:
            cells = (column.header, *column.cells)
            column.min_width = max(Measurement.get(console, unbounded, cell).maximum for cell in cells)
    return console.measure(table, options=unbounded).minimum <= console.width


def _columns(table: Table, indices: Sequence[int]) -> Table:
    """A table of some of a table's columns."""
    chosen = [table.columns[index] for index in indices]
    part = Table(*(column.copy() for column in chosen), **_STYLE, padding=table.padding)
    cells = zip(*(column.cells for column in chosen), strict=True)
    for row, shown in zip(table.rows, cells, strict=True):
        part.add_row(*shown, end_section=row.end_section)
    return part


def percent(share: float | None) -> str:
    """A share as per cent with one decimal.

    >>> percent(0.625), percent(None)
    ('62.5 %', 'n/a')
    """
    return NONE if share is None else f"{100 * share:.1f} %"


def percent_interval(interval: Sequence[float] | None) -> str:
    """An interval of shares as per cent.

    >>> percent_interval([0.49016, 0.94333])
    '49.0 … 94.3'
    """
    return NONE if interval is None else f"{100 * interval[0]:.1f} … {100 * interval[1]:.1f}"


def accuracy_interval(cell: Mapping[str, Any]) -> Sequence[float] | None:
    """The interval to show: where cases share contexts, Wilson's takes them for more evidence than they are."""
    return cell["bootstrap"] or cell["wilson"]


def excluded(cell: Mapping[str, Any]) -> str:
    """The cases of a cell that entered no accuracy, by reason.

    >>> excluded({"overlong": 3, "error": 0, "skipped": 1})
    '3 overlong, 1 skipped'
    """
    return ", ".join(f"{cell[s]} {s}" for s in ("overlong", "error", "skipped") if cell[s]) or "none"


def _accuracy_table(results: Mapping[str, Any]) -> Table:
    rule = results["selection"]
    table = _table(f"Accuracy by task (selection: {rule})" if rule else "Accuracy by task")
    for column in ("cases", "accuracy", "95 % interval", "chance", "tied"):
        table.add_column(column, justify="right", no_wrap=True)
    truncated = results["overall"]["truncated"] > 0
    if truncated:
        table.add_column("truncated", justify="right", no_wrap=True)
    table.add_column("excluded")
    for cell in results["by"]["task"]:
        table.add_row(cell["task"], *_accuracy_row(cell, truncated))
    table.add_section()
    table.add_row("all", *_accuracy_row(results["overall"], truncated))
    return table


def _accuracy_row(cell: Mapping[str, Any], truncated: bool) -> list[str]:
    return [
        str(cell["ok"]),
        percent(cell["accuracy"]),
        percent_interval(accuracy_interval(cell)),
        percent(cell["chance"]),
        str(cell["tied"]),
        *([str(cell["truncated"])] if truncated else []),
        excluded(cell),
    ]


def _baseline_table(results: Mapping[str, Any]) -> Table:
    table = _table("Accuracy of the baselines")
    baselines = results["baselines"]
    for name in baselines:
        table.add_column(name, justify="right", no_wrap=True)
    for place, cell in enumerate(results["by"]["task"]):
        table.add_row(cell["task"], *(percent(row["by"]["task"][place]["accuracy"]) for row in baselines.values()))
    table.add_section()
    table.add_row("all", *(percent(row["overall"]["accuracy"]) for row in baselines.values()))
    return table


def _wrong_type_table(results: Mapping[str, Any]) -> Table:
    table = _table("What was chosen instead, and how often a random choice would")
    table.add_column("option", no_wrap=True)
    for column in ("chosen", "of answers", "at random", "of errors", "at random"):
        table.add_column(column, justify="right", no_wrap=True)
    for cell in results["by"]["task"]:
        for i, (type_, row) in enumerate(cell["wrong_types"].items()):
            table.add_row(
                cell["task"] if i == 0 else "",
                type_,
                str(row["count"]),
                percent(row["share"]),
                percent(row["random_share"]),
                percent(row["share_of_errors"]),
                percent(row["random_share_of_errors"]),
            )
        table.add_section()
    return table


def _sentences(results: Mapping[str, Any]) -> str:
    overall = results["overall"]
    update, bias = overall["update_rate"], overall["retrieval_bias"]
    lines = []
    if update["correct"] + update["old_rule"]:
        lines.append(
            f"Update rate (MemoryRev): {percent(update['rate'])} ({percent_interval(update['wilson'])}): "
            f"{update['correct']} correct, {update['old_rule']} by the old rule."
        )
    if bias["offered"]:
        lines.append(
            f"Retrieval bias: the similar option was chosen in {percent(bias['share'])} "
            f"of {bias['offered']} cases ({percent(bias['random_share'])} at random)."
        )
    if results["selection"]:
        rules = overall["accuracy_by_rule"].items()
        lines.append("Accuracy by selection rule: " + ", ".join(f"{rule} {percent(a)}" for rule, a in rules) + ".")
    return "\n".join(lines)


def titled(title: str) -> Table:
    """An empty table in the style of all."""
    return Table(title=title, **_STYLE)


def _table(title: str) -> Table:
    table = titled(title)
    table.add_column("task", no_wrap=True)
    return table
