"""What is written is what is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brb_jax.data.case import Case, Option
from brb_jax.data.filename import FileName
from brb_jax.data.reader import read_cases
from brb_jax.data.writer import encode, write_cases

NAME = FileName("words", "MemoryRet", None, None, 2)


def case(own_id="1", texts=("a b", "c d", "e f"), context="x -> y\n", metadata=None):
    types = ("random_wrong", "correct", "retrieval_similar")
    options = tuple(Option(*parts) for parts in zip("ABC", texts, types, strict=True))
    own_metadata = metadata or {}
    return Case(
        f"words_MemoryRet_M2/{own_id}", "words", "MemoryRet", None, None, 2, context, "q", options, "B", own_metadata
    )


def test_bytes_by_hand():
    assert encode(NAME, [case("17")], {"seed": 3}).decode() == (
        '{"metadata": {"seed": 3},\n"cases": [\n'
        '{"id": 17, "context": "x -> y\\n", "query": "q", "options": ['
        '{"label": "A", "text": "a b", "type": "random_wrong"}, '
        '{"label": "B", "text": "c d", "type": "correct"}, '
        '{"label": "C", "text": "e f", "type": "retrieval_similar"}], "answer": "B", "metadata": {}}\n]}\n'
    )
    assert json.loads(encode(NAME, [], {})) == {"metadata": {}, "cases": []}


characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.lists(
    st.text(characters, min_size=1).filter(str.strip), min_size=3, max_size=3, unique_by=lambda text: text.strip()
)


@given(st.text(characters, min_size=1), texts, st.text(characters))
def test_read_after_write(tmp_path_factory, own_id, texts, context):
    directory = tmp_path_factory.mktemp("written")
    # The answer "B" could also mean an option whose text is another option's label; not the writer's business.
    texts = [f"{text}." if text in ("A", "B", "C") else text for text in texts]
    written = case(own_id, tuple(texts), context, {"ü": [1, None, "x"]})
    write_cases(directory, NAME, [written], {"domain": "words"})
    assert read_cases([directory]).cases == (written,)


@pytest.mark.parametrize("own_id", ["0", "17", "-3", "007", "٧", "a/b", " 1"])
def test_ids_stay_what_they_are(tmp_path, own_id):
    write_cases(tmp_path, NAME, [case(own_id)], {})
    assert read_cases([tmp_path]).cases == (case(own_id),)


def test_file_appears_whole_or_not_at_all(tmp_path):
    write_cases(tmp_path / "new" / "folder", NAME, [case()], {})
    path = write_cases(tmp_path / "new" / "folder", NAME, [case("2")], {}, overwrite=True)
    assert [entry.name for entry in path.parent.iterdir()] == [NAME.format()]
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_cases(tmp_path / "new" / "folder", NAME, [case("3", metadata={"x": float("nan")})], {})
    assert [entry.name for entry in path.parent.iterdir()] == [NAME.format()]
    assert read_cases([path]).cases == (case("2"),)


def test_a_file_that_holds_something_else_is_replaced_only_on_request(tmp_path):
    path = write_cases(tmp_path, NAME, [case("1")], {})
    assert write_cases(tmp_path, NAME, [case("1")], {}) == path  # The same bytes.
    for other in ("2", "10"):  # Of the same length, and of another.
        with pytest.raises(FileExistsError, match=f"^{path} exists and holds something else; pass --overwrite"):
            write_cases(tmp_path, NAME, [case(other)], {})
        assert [entry.name for entry in tmp_path.iterdir()] == [NAME.format()]
        assert read_cases([path]).cases == (case("1"),)


def test_cases_are_written_as_they_come(tmp_path):
    sizes = []

    def cases():
        for own_id in "123":
            sizes.append(sum(entry.stat().st_size for entry in tmp_path.iterdir()))
            yield case(own_id, context="x" * 100_000)

    write_cases(tmp_path, NAME, cases(), {})
    assert sizes[1] >= 99_000 and sizes[2] >= 199_000


def test_nothing_is_left_when_there_is_no_next_case(tmp_path):
    def cases():
        yield case("1")
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_cases(tmp_path, NAME, cases(), {})
    assert list(tmp_path.iterdir()) == []


def test_case_of_another_file():
    with pytest.raises(ValueError, match="case words_MemoryRet_M2/1 does not belong in digits_MemoryRet_M2_que_ans"):
        encode(FileName("digits", "MemoryRet", None, None, 2), [case()], {})
