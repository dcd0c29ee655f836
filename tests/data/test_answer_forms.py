"""The forms an answer may have; the rows of the table are hand-written."""

import pytest

from brb_jax.data.answer import answer_index

WORDS = ["lark", "kite", "jade", "moss"]


@pytest.mark.parametrize(
    ("answer", "texts", "index"),
    [
        ("C", WORDS, 2),
        ("c", WORDS, 2),
        (" C ", WORDS, 2),
        ("C.", WORDS, 2),
        ("\tc.\n", WORDS, 2),
        (2, WORDS, 2),
        (0, WORDS, 0),
        ("moss", WORDS, 3),
        ("2", ["4", "2", "7"], 1),
        ("10", ["4", "10", "7"], 1),
        # Two readings that name the same option are one.
        ("B", ["A", "B", "C"], 1),
        (0, ["0", "1", "2"], 0),
    ],
)
def test_documented_forms(answer, texts, index):
    assert answer_index(answer, texts) == index


@pytest.mark.parametrize(
    "answer",
    [None, True, False, -1, 4, 2.0, "2", "0", "-1", "", " ", "E", "CC", "C)", "(C)", "Lark", " lark", ["C"], {"C": 1}],
)
def test_all_else_is_refused(answer):
    with pytest.raises(ValueError, match="the answer"):
        answer_index(answer, WORDS)


@pytest.mark.parametrize(
    ("answer", "texts"),
    [("A", ["B", "A", "C"]), ("a", ["b", "a"]), (2, ["2", "5", "7"]), (1, ["1", "0", "2"])],
)
def test_two_readings_are_refused(answer, texts):
    with pytest.raises(ValueError, match=r"could mean option [A-C] or [A-C]"):
        answer_index(answer, texts)
