import io
from collections import Counter

import pytest
from result_cases import make_sample
from rich.console import Console

from brb_jax.data.filename import FileName
from brb_jax.results.metrics import summarise
from brb_jax.results.table import (
    _accuracy_table,
    _baseline_table,
    _wrong_type_table,
    print_table,
    print_tables,
    titled,
)

SAMPLES = [
    *[make_sample([-1.0, -2.0, -3.0], context=str(i)) for i in range(8)],
    *[make_sample([-2.0, -1.0, -3.0], context=str(i)) for i in range(8, 10)],
    make_sample(None),
    *[make_sample([-1.0, -2.0, -3.0, -4.0], task="MemoryRev", k=2, edit_k=1, context=f"{i}") for i in range(3)],
    make_sample([-2.0, -3.0, -1.0, -4.0], task="MemoryRev", k=2, edit_k=1, context="z"),
]
SKIPPED = [FileName("words", "MemoryRet", None, None, 70)] * 2


def printed(results):
    file = io.StringIO()
    print_tables(results, file)
    return file.getvalue()


def row(text, start):
    """The cells of the first line that starts with `start`, behind it."""
    line = next(line for line in text.splitlines() if line.split()[:1] == [start])
    return " ".join(line.split()[1:])


def test_the_tables_say_what_the_results_hold():
    text = printed(summarise(SAMPLES, skipped=SKIPPED))
    # Wilson's interval of 8 in 10, as in the literature: 49.0 to 94.3 per cent.
    assert row(text, "MemoryRet") == "10 80.0 % 49.0 … 94.3 33.3 % 0 1 overlong, 2 skipped"
    assert row(text, "MemoryRev") == "4 75.0 % 30.1 … 95.4 25.0 % 0 none"
    assert row(text, "old_rule") == "1 25.0 % 25.0 % 100.0 % 33.3 %"
    assert "Update rate (MemoryRev): 75.0 % (30.1 … 95.4): 3 correct, 1 by the old rule." in text
    assert "similar option was chosen in 14.3 % of 14 cases (31.0 % at random)." in text
    assert "Accuracy by selection rule: logprob 78.6 %" in text


def test_cases_that_were_cut_have_a_column_if_there_are_any():
    text = printed(summarise([*SAMPLES, make_sample([-1.0, -2.0, -3.0], truncated=5, context="cut")]))
    assert row(text, "task").endswith("tied truncated excluded")
    assert row(text, "MemoryRet").endswith(" 0 1 1 overlong") and row(text, "MemoryRev").endswith(" 0 0 none")
    assert "truncated" not in printed(summarise(SAMPLES))


def test_where_contexts_are_shared_the_interval_is_over_contexts():
    results = summarise(SAMPLES)
    low, high = results["overall"]["bootstrap"]
    assert f"{100 * low:.1f} … {100 * high:.1f}" in row(printed(results), "all")


def test_off_a_terminal_there_are_no_colours_and_no_more_than_100_columns():
    text = printed(summarise(SAMPLES, skipped=SKIPPED))
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 100


@pytest.mark.parametrize("samples", [[], [make_sample(None)]])
def test_nothing_counted_is_not_available(samples):
    text = printed(summarise(samples))
    assert row(text, "all").startswith("0 n/a n/a n/a")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_names_and_numbers_are_whole_however_narrow_the_terminal(width):
    results = summarise(SAMPLES, skipped=SKIPPED)
    results["baselines"] = {
        name: {"by": results["by"], "overall": results["overall"]} for name in ("solver", "nearest", "prerevision")
    }
    for make, names in ((_accuracy_table, 1), (_baseline_table, 1), (_wrong_type_table, 2)):
        cells = Counter(word for column in make(results).columns for cell in column.cells for word in cell.split())
        console = Console(file=io.StringIO(), width=width, highlight=False)
        print_table(console, make(results), names)
        printed = console.file.getvalue()
        assert not cells - Counter(printed.split()) and "…" not in printed.replace(" … ", "")
        assert max(map(len, printed.splitlines())) <= width


def test_what_does_not_fit_stands_in_a_further_table_beside_its_names():
    table = titled("Title")
    for heading in ("name", "some numbers", "more"):
        table.add_column(heading, no_wrap=True)
    table.add_row("first", "1,234 … 5,678", "90,123")
    console = Console(file=io.StringIO(), width=24, highlight=False)
    print_table(console, table)
    lines = [line.split() for line in console.file.getvalue().splitlines() if line.strip(" ─")]
    assert lines == [
        ["Title"],
        ["some"],
        ["name", "numbers"],
        ["first", "1,234", "…", "5,678"],
        ["name", "more"],
        ["first", "90,123"],
    ]
