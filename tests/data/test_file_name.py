"""The file-name convention, against names written by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brb_jax.data.case import TASKS
from brb_jax.data.filename import FileName, FileNameError

WRITTEN = {
    "words_MemoryRet_M70_que_ans.json": FileName("words", "MemoryRet", None, None, 70),
    "words_MemoryCom_k2_M70_que_ans.json": FileName("words", "MemoryCom", 2, None, 70),
    "digits_MemoryRev_editk1_M5_que_ans.json": FileName("digits", "MemoryRev", None, 1, 5),
    "key_value_MemoryRev_k3_editk2_M0_que_ans.json": FileName("key_value", "MemoryRev", 3, 2, 0),
    "a_MemoryRet_k2_MemoryCom_k12_M100_que_ans.json": FileName("a_MemoryRet_k2", "MemoryCom", 12, None, 100),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_parse_and_format(name):
    assert FileName.parse(name) == WRITTEN[name]
    assert WRITTEN[name].format() == name
    assert WRITTEN[name].stem + "_que_ans.json" == name


@pytest.mark.parametrize("suffix", ["json", "jsonl", "json.gz", "jsonl.gz"])
def test_every_suffix_says_the_same(suffix):
    name = FileName.parse(f"words_MemoryCom_k2_M70_que_ans.{suffix}")
    assert name == FileName("words", "MemoryCom", 2, None, 70)
    assert name.format() == "words_MemoryCom_k2_M70_que_ans.json"


@pytest.mark.parametrize(
    "name",
    [
        "words.json",
        "words_MemoryRet_M70.json",
        "words_MemoryRet_M_que_ans.json",
        "words_MemoryRet_m70_que_ans.json",
        "words_MemoryRet_M070_que_ans.json",
        "words_MemoryRet_M٧_que_ans.json",
        "words_MemoryFoo_M70_que_ans.json",
        "words_MemoryCom_k0_M70_que_ans.json",
        "words_MemoryCom_k02_M70_que_ans.json",
        "words_MemoryRev_editk1_k2_M70_que_ans.json",
        "words_MemoryRet_M70_que_ans.json.zip",
        "words_MemoryRet_M70_que_ans.jsonll",
        "words_MemoryRet_M70_que_ans.gz",
        "_MemoryRet_M70_que_ans.json",
        "MemoryRet_M70_que_ans.json",
        "a/b_MemoryRet_M70_que_ans.json",
        "",
    ],
)
def test_other_names_are_refused(name):
    with pytest.raises(FileNameError):
        FileName.parse(name)


def test_error_shows_name_and_convention():
    with pytest.raises(FileNameError, match=r"'words\.json' does not follow \{domain\}_\{task\}.*MemoryRev"):
        FileName.parse("words.json")


@pytest.mark.parametrize("parts", [("", "MemoryRet", None, None, 1), ("w", "Ret", None, None, 1)])
def test_parts_that_make_no_name(parts):
    with pytest.raises(FileNameError):
        FileName(*parts)


numbers = st.none() | st.integers(1, 10**6)


@given(
    st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1),
    st.sampled_from(sorted(TASKS)),
    numbers,
    numbers,
    st.integers(0, 10**7),
)
def test_round_trip(domain, task, k, edit_k, m):
    name = FileName(domain, task, k, edit_k, m)
    assert FileName.parse(name.format()) == name
