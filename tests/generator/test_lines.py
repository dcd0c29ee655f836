"""The text of a context, against text written by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brb_jax.generator.lines import (
    Definition,
    Example,
    Query,
    Statement,
    examples,
    parse_context,
    parse_query,
    render_context,
)

TEXT = """\
zorav: amber kite -> kite amber
From now on, zorav: spell every word backwards, from last to first.
zorav then mipej: amber kite -> mbera itek
mipej means: put the words in reverse order.
"""
LINES = (
    Example(("zorav",), "amber kite", "kite amber"),
    Statement("zorav", "spell every word backwards, from last to first"),
    Example(("zorav", "mipej"), "amber kite", "mbera itek"),
    Definition("mipej", "put the words in reverse order"),
)


def test_context():
    assert render_context(LINES) == TEXT
    assert parse_context(TEXT) == LINES
    assert parse_context("") == ()
    assert examples(LINES) == [LINES[0], LINES[2]]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("zorav: lark jade ->", Query(("zorav",), "lark jade")),
        ("zorav then mipej then dukov: 123 ->", Query(("zorav", "mipej", "dukov"), "123")),
    ],
)
def test_query(text, query):
    assert query.render() == text
    assert parse_query(text) == query


@pytest.mark.parametrize(
    "text", ["", "zorav: lark", "zorav: lark -> kral", "lark ->", "zorav: lark -> ", "Zorav: lark ->"]
)
def test_no_query(text):
    with pytest.raises(ValueError, match="is no query"):
        parse_query(text)


@pytest.mark.parametrize(
    "line",
    ["", "zorav lark -> kral", "zorav: lark ->", "From now on, zorav: sort", "zorav: -> x", "zorav means: sort"],
)
def test_error_names_the_line(line):
    with pytest.raises(ValueError, match=f"line 1 of the context .*{line!r}"):
        parse_context(f"zorav: lark -> kral\n{line}\n")


names = st.text("abcdvz", min_size=1, max_size=5)
heads = st.lists(names, min_size=1, max_size=4).map(tuple)
values = st.text("abc019 ,[]=:", min_size=1).filter(lambda text: text == text.strip())
told = st.builds(Definition, names, values) | st.builds(Statement, names, values)
lines = st.builds(Example, heads, values, values) | told


@given(st.lists(lines).map(tuple))
def test_round_trip(lines):
    assert parse_context(render_context(lines)) == lines
