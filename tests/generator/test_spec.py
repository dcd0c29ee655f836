"""Knobs that contradict each other are refused by name."""

import pytest

from brb_jax.generator import file
from brb_jax.generator.spec import FileSpec, SpecError


def test_file_names():
    assert FileSpec("words", "MemoryRet").file_name.format() == "words_MemoryRet_M70_que_ans.json"
    assert FileSpec("words", "MemoryCom", k=2).file_name.format() == "words_MemoryCom_k2_M70_que_ans.json"
    assert FileSpec("digits", "MemoryRev", edit_k=1, m=9, operators=2).file_name.stem == "digits_MemoryRev_editk1_M9"


@pytest.mark.parametrize(
    ("knobs", "says"),
    [
        ({"domain": "birds"}, "unknown domain 'birds'; domains are words, digits, letters"),
        ({"task": "MemoryFoo"}, "unknown task 'MemoryFoo'"),
        ({"revision": "maybe"}, "unknown revision 'maybe'"),
        ({"k": 2}, "k is for MemoryCom"),
        ({"task": "MemoryCom"}, "k is for MemoryCom, and MemoryCom needs it; got MemoryCom with k=None"),
        ({"task": "MemoryRev"}, "edit_k is for MemoryRev"),
        ({"task": "MemoryRev", "edit_k": 1, "k": 2}, "k is for MemoryCom"),
        ({"task": "MemoryCom", "k": 0}, "k must be between 1 and 5, got 0"),
        ({"task": "MemoryCom", "k": 4, "operators": 3}, "k must be between 1 and 3, got 4"),
        ({"task": "MemoryCom", "k": 6, "operators": 9}, "k must be between 1 and 5, got 6"),
        ({"task": "MemoryCom", "k": 1, "operators": 1}, "operators must be between 2 and 17, got 1"),
        ({"definitions": "none"}, "unknown definitions 'none'; definitions are examples, text, both"),
        ({"relevant": "middle"}, "unknown relevant 'middle'"),
        ({"distance": -1}, "distance must be at least 0, got -1"),
        ({"distance": 66}, "m must be between 71 and 100000, got 70"),
        (
            {"operators": 1, "relevant": "late"},
            "relevant=late needs operators that are not asked about; raise operators",
        ),
        ({"operators": 1, "distance": 3}, "distance=3 needs operators that are not asked about; raise operators"),
        ({"operators": 1, "definitions": "text"}, "definitions=text leaves no operator to show; raise operators"),
        ({"task": "MemoryCom", "k": 3, "operators": 3, "relevant": "early"}, "relevant=early needs operators"),
        ({"task": "MemoryRev", "edit_k": 5}, "edit_k must be between 1 and 4, got 5"),
        ({"task": "MemoryRev", "edit_k": 0}, "edit_k must be between 1 and 4, got 0"),
        ({"operators": 0}, "operators must be between 1 and 17, got 0"),
        ({"operators": 18}, "operators must be between 1 and 17, got 18"),
        ({"task": "MemoryRev", "edit_k": 2, "operators": 16}, "operators must be between 1 and 15, got 16"),
        ({"m": 4}, "m must be between 5 and 100000, got 4"),
        ({"task": "MemoryCom", "k": 2, "m": 9}, "m must be between 10 and 100000, got 9"),
        ({"cases": -1}, "cases must be at least 0, got -1"),
        ({"questions_per_context": 1001}, "questions_per_context must be between 1 and 1000, got 1001"),
        ({"m": 100_001}, "m must be between 5 and 100000, got 100001"),
        ({"questions_per_context": 0}, "questions_per_context must be between 1 and 1000, got 0"),
    ],
)
def test_contradictions(knobs, says):
    with pytest.raises(SpecError) as caught:
        FileSpec(**{"domain": "words", "task": "MemoryRet", **knobs})
    assert says in str(caught.value)


def test_too_little_room_is_said(monkeypatch):
    # One example of eight digits has seventy-two edits of one digit, so it has no room for more questions.
    monkeypatch.setattr(file, "_CONTEXT_ATTEMPTS", 3)
    spec = FileSpec("digits", "MemoryRet", m=1, operators=1, cases=200, questions_per_context=200)
    with pytest.raises(SpecError, match=r"digits_MemoryRet_M1_que_ans.json: 3 contexts of m=1 .* raise m"):
        list(file.generate_cases(spec))
