"""Context, query and options as the strings that are scored."""

import pytest

from brb_jax.data.case import Case, Option
from brb_jax.data.prompt import continuation, render


@pytest.mark.parametrize(
    ("prompt", "option", "delimiter", "scored"),
    [
        ("zorp: lark ->", "kral", " ", " kral"),
        ("zorp: lark -> ", "kral", " ", "kral"),
        ("zorp: lark ->\n", "kral", " ", "kral"),
        ("zorp: lark ->", " kral", " ", " kral"),
        ("zorp: lark ->", "kral", "", "kral"),
        ("zorp: lark ->", "kral", "\n", "\nkral"),
        ("", "kral", " ", " kral"),
    ],
)
def test_delimiter_is_left_out_where_white_space_separates(prompt, option, delimiter, scored):
    assert continuation(prompt, option, delimiter) == scored


def test_render_joins_context_and_query():
    options = (Option("A", "b", "correct"), Option("B", "c", "random_wrong"))
    rendered = render(Case("f/1", "d", "MemoryRet", None, None, 1, "x -> y\n", "z ->", options, "A"))
    assert rendered.prompt == "x -> y\nz ->"
    assert rendered.continuations == (" b", " c")
