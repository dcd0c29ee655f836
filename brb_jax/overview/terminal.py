"""An overview ─► tables for a terminal, readable too where output goes to a file."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from typing import IO

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from brb_jax.data.case import CORRECT
from brb_jax.data.fault import Fault
from brb_jax.overview.facts import Facts, Lengths
from brb_jax.overview.overview import Overview
from brb_jax.overview.shown_case import ShownCase, ShownOption
from brb_jax.results.table import NONE, percent, print_table, titled

# Columns where output goes to a file.
_WIDTH = 120
# Longer names of files may be broken over lines.
_NAME = 44
# Lines of a prompt that are shown at its beginning and its end, unless all are asked for.
_HEAD, _TAIL = 4, 8
# Characters of the prompt that stand before an option's scored span.
_BEFORE = 24
_ALL = "all files"


def print_overview(overview: Overview, whole: bool = False, file: IO[str] | None = None) -> None:
    """Prints what a dataset holds, one case as it is read, and every fault.

    Args:
        overview: What to print.
        whole: Whether the case's prompt is printed whole, however long.
        file: Where to; standard output by default. Colours only on a terminal.
    """
    file = file or sys.stdout
    console = Console(file=file, highlight=False)
    if not console.is_terminal:
        console.width = _WIDTH
    console.print(overview.reading)
    print_table(console, _sizes(overview))
    console.print(_computed(overview.total))
    if overview.total.cases:
        print_table(console, _guessers(overview))
    if overview.case is not None:
        _print_case(console, overview.case, whole)
    _print_faults(console, overview.faults)


def _sizes(overview: Overview) -> Table:
    table = _table("What the files hold", overview)
    columns = ["cases", "contexts", "faults"]
    if overview.tokenizer:
        columns += ["context, tokens", "overlong", "by option", "shared", "ratio"]
    else:
        columns += ["context, characters", "context, bytes"]
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, facts, faults in _rows(overview):
        row = [name, str(facts.cases), str(facts.contexts), str(faults)]
        if facts.sharing is None or facts.overlong is None:
            row += [_lengths(facts.context_characters), _lengths(facts.context_bytes)]
        else:
            once, shared = facts.sharing.option_tokens, facts.sharing.tree_tokens
            ratio = f"{once / shared:.1f} ×" if shared else NONE
            row += [_lengths(facts.context_tokens), str(facts.overlong), f"{once:,}", f"{shared:,}", ratio]
        if name == _ALL:
            table.add_section()
        table.add_row(*row)
    return table


def _computed(facts: Facts) -> str:
    if facts.sharing is None:
        return ""
    work = facts.sharing
    return (
        f"A pass per option computes {work.option_tokens:,} tokens; common prefixes shared, {work.tree_tokens:,} are "
        f"left. In rows, with padding and cuts, a run on a CPU computes {work.slots:,} slots.\n"
    )


def _guessers(overview: Overview) -> Table:
    table = _table("Where options stand, and how often they are picked without reading", overview)
    labels = sorted({label for _, facts, _ in _rows(overview) for at in facts.labels.values() for label in at})
    for column in (*labels, "always A", "longest", "shortest", "chance"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, facts, _ in _rows(overview):
        table.add_section()
        table.add_row(name)
        for type_, at in facts.labels.items():
            table.add_row(
                f"  {type_}",
                *(str(at.get(label, "")) for label in labels),
                *(percent(picks[type_]) for picks in facts.guessers.values()),
                percent(facts.chance) if type_ == CORRECT else "",
            )
    return table


def _rows(overview: Overview) -> list[tuple[str, Facts, int]]:
    rows = [(file.name.stem, file.facts, len(file.faults)) for file in overview.files]
    return [*rows, (_ALL, overview.total, len(overview.faults))]


def _print_case(console: Console, case: ShownCase, whole: bool) -> None:
    console.print(Text(f"The case {printable(case.case_id)} as it is read", style="bold"))
    if case.note:
        console.print(Text(f"({case.status}: {case.note})"))
    if not case.options:
        return
    first = case.options[0]
    front = "" if first.ids is None else f"In front of the text: {', '.join(case.prefix) or 'nothing'}. "
    console.print(Text(f"{front}Scored is what stands in ⟦ ⟧.\n"))
    prompt = elided(printable(first.read), whole)
    # Lines of the prompt are not broken but where they end.
    console.print(Text.assemble((prompt, "dim"), (_marked(first), "bold")), soft_wrap=True)
    console.print()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("option", "type"):
        table.add_column(column, no_wrap=True)
    table.add_column("as it is read", overflow="fold")
    if first.tokens is not None:
        table.add_column("ids", justify="right", no_wrap=True)
        table.add_column("scored tokens", overflow="fold")
    for option in case.options:
        before = printable(option.read[-_BEFORE:]).replace("\n", "\\n")
        shown: list[RenderableType] = [
            option.label + (" *" if option.label == case.answer else ""),
            option.type,
            Text.assemble(("…" if len(option.read) > _BEFORE else "") + before, (_marked(option), "bold")),
        ]
        if option.tokens is not None:
            tokens = " ".join(f"{printable(token.text)!r}·{token.id}" for token in option.tokens)
            shown += [str(option.ids), Text(tokens)]
        table.add_row(*shown)
    console.print(table)
    console.print(Text("* correct"))
    inexact = [option.label for option in case.options if option.exact is False]
    if inexact:
        console.print(
            Text(f"The ids of {', '.join(inexact)} decode to another text than the file's: it was cut or normalised.")
        )


def _print_faults(console: Console, faults: Sequence[Fault]) -> None:
    if not faults:
        console.print("No faults.")
        return
    console.print(Text(f"{len(faults)} fault{'s' * (len(faults) > 1)}", style="bold"))
    for fault in faults:
        console.print(Text(f"  {printable(str(fault))}"), soft_wrap=True)


def _marked(option: ShownOption) -> str:
    return f"⟦{printable(option.scored)}⟧"


def printable(text: str) -> str:
    """Text with what a terminal would act on, or could not show, written as an escape; line breaks stay.

    >>> printable("a\\x1b[1m\\n")
    'a\\\\x1b[1m\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c == "\n" or unicodedata.category(c)[0] != "C" else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def elided(text: str, whole: bool) -> str:
    """The text; without its middle if it is long, and not asked for `whole`. What is left out is two lines or more."""
    lines = text.splitlines(keepends=True)
    left_out = len(lines) - _HEAD - _TAIL
    if whole or left_out <= 1:
        return text
    return f"{''.join(lines[:_HEAD])}… {left_out} lines …\n{''.join(lines[-_TAIL:])}"


def _lengths(lengths: Lengths | None) -> str:
    if lengths is None:
        return NONE
    parts = (lengths.min, round(lengths.median), lengths.max)
    return f"{parts[0]:,}" if parts[0] == parts[2] else " … ".join(f"{part:,}" for part in parts)


def _table(title: str, overview: Overview) -> Table:
    table = titled(title)
    longest = max(len(name) for name, _, _ in _rows(overview))
    table.add_column("file", overflow="fold", min_width=min(longest, _NAME))
    return table
