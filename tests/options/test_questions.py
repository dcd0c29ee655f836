"""Reading question/answer files: what is taken, and what is said of the rest."""

import json

import pytest

from brb_jax.data.fault import DataError
from brb_jax.data.questions import read_questions

NAME = "birds_MemoryRev_editk1_M2_que_ans.json"
CASE = {"id": 7, "context": "a -> b\n", "query": "c ->", "answer": "d", "metadata": {"seed": 1}, "note": "x"}


def write(folder, cases, name=NAME):
    (folder / name).write_text(cases if isinstance(cases, str) else json.dumps(cases))
    return folder


def test_a_file(tmp_path):
    [file] = read_questions([write(tmp_path, {"metadata": {"source": "hand"}, "cases": [CASE]})])
    assert file.path == tmp_path / NAME and file.metadata == {"source": "hand"}
    [question] = file.questions
    assert question.case_id == "birds_MemoryRev_editk1_M2/7"
    assert (question.context, question.query, question.answer) == ("a -> b\n", "c ->", "d")
    assert question.metadata == {"seed": 1, "note": "x"} and question.name.edit_k == 1


@pytest.mark.parametrize("answer", ["A", "B", "0", "d-", " padded ", "a\nb"])
def test_an_answer_is_a_text_whatever_else_it_could_mean(answer, tmp_path):
    [file] = read_questions([write(tmp_path, [CASE | {"answer": answer}])])
    assert file.questions[0].answer == answer


def test_a_folder_is_read_in_order_of_name(tmp_path):
    for name in ("b_MemoryRet_M2_que_ans.json", "a_MemoryRet_M2_que_ans.json"):
        write(tmp_path, [CASE], name)
    (tmp_path / "notes.json").write_text("[]")
    assert [file.name.domain for file in read_questions([tmp_path])] == ["a", "b"]


def faults(paths):
    with pytest.raises(DataError) as caught:
        read_questions(paths)
    return [f"{fault.case}: {fault.problem}" for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"answer": 4}, ["7: its answer is 4"]),
        ({"answer": None}, ["7: its answer is None"]),
        ({"answer": "  "}, ["7: its answer is '  '"]),
        ({"answer": "a\0"}, ["7: its answer holds a NUL at character 1"]),
        ({"answer": "\ud83d"}, ["7: its answer holds the lone surrogate U+D83D at character 0"]),
        ({"options": []}, ["7: has options already"]),
        ({"query": 3}, ["7: its query is a int"]),
        ({"context": "\0", "answer": []}, ["7: its answer is []", "7: its context holds a NUL at character 0"]),
        ({"id": ""}, ["None: its id is ''"]),
        ({"metadata": []}, ["7: its metadata is a list"]),
    ],
)
def test_faults_of_a_case(change, says, tmp_path):
    assert faults([write(tmp_path, [CASE | change])]) == says


def test_faults_of_all_files_are_listed_together(tmp_path):
    without = {key: value for key, value in CASE.items() if key != "answer"}
    write(tmp_path, [CASE, CASE, without, "case"])
    write(tmp_path, "[NaN", "a_MemoryRet_M2_que_ans.json")
    write(tmp_path, '{"cases": 3}', "b_MemoryRet_M2_que_ans.json")
    write(tmp_path, "[]", "c_que_ans.json")
    (tmp_path / "empty").mkdir()
    found = faults([tmp_path, tmp_path / "empty", tmp_path / "missing_MemoryRet_M2_que_ans.json"])
    for says, one in zip(
        (
            "None: not JSON",
            "None: holds no list of cases",
            "7: its id stands twice in the file",
            "7: lacks answer; its keys are ['id', 'context', 'query', 'metadata', 'note']",
            "None: is a str, not an object",
            "None: the name 'c_que_ans.json' does not follow",
            "None: the directory holds no",
            "None: cannot be read",
        ),
        found,
        strict=True,
    ):
        assert one.startswith(says)


def test_files_of_one_name_and_no_files(tmp_path):
    (tmp_path / "other").mkdir()
    write(tmp_path, [CASE]), write(tmp_path / "other", [CASE])
    assert faults([tmp_path, tmp_path / "other"]) == [f"None: has the same name as {tmp_path / NAME}"]
    assert faults([]) == ["None: no files were named"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"id": 1, "id": 2, "context": "", "query": "", "answer": "d"}]', "2: the key 'id' stands twice"),
        ('{"metadata": {"x": NaN}, "cases": []}', "None: NaN is no JSON number"),
        ('{"cases": [], "cases": []}', "None: the key 'cases' stands twice"),
        ("", "None: not JSON"),
    ],
)
def test_json_that_is_none(text, says, tmp_path):
    [found] = faults([write(tmp_path, text)])
    assert found.startswith(says)
