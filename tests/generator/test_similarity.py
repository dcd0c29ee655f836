"""Similarity, on inputs where one can see which is nearest."""

import pytest

from brb_jax.generator.domains import DOMAINS
from brb_jax.generator.lines import Example, Query
from brb_jax.generator.similarity import nearest

QUERY = "kite lark jade moss"


@pytest.mark.parametrize(
    ("inputs", "winner"),
    [
        # More words at their places win.
        (["kite lark pond rain", "kite lark jade rain", "pond lark jade rain"], 1),
        # Three words elsewhere lose to one in place.
        (["moss kite lark pond", "kite pond rain sand"], 1),
        # As many in place: more words in common win.
        (["kite pond rain sand", "kite pond lark sand", "kite rain pond sand"], 1),
        # Altogether equal: the later one.
        (["kite lark jade pond", "kite lark jade rain", "pond rain sand snow"], 1),
        (["pond rain sand snow", "seed ship shoe silk"], 1),
    ],
)
def test_words(inputs, winner):
    shown = [Example(("zorav",), text, f"output {i}") for i, text in enumerate(inputs)]
    assert nearest(DOMAINS["words"], Query(("zorav",), QUERY), shown) is shown[winner]


def test_the_same_head_comes_first_then_as_many_names():
    shown = [
        Example(("mipej",), QUERY, "a"),
        Example(("zorav",), "pond rain sand snow", "b"),
        Example(("zorav", "mipej"), QUERY, "c"),
    ]
    assert nearest(DOMAINS["words"], Query(("zorav",), QUERY), shown).output == "b"
    assert nearest(DOMAINS["words"], Query(("mipej", "zorav"), QUERY), shown).output == "c"
    assert nearest(DOMAINS["words"], Query(("dukov",), QUERY), shown).output == "a"
    assert nearest(DOMAINS["words"], Query(("a", "b", "c"), QUERY), shown).output == "c"


def test_digits():
    shown = [Example(("zorav",), text, text) for text in ("12345670", "92345678", "87654321")]
    assert nearest(DOMAINS["digits"], Query(("zorav",), "12345677"), shown).input == "12345670"
