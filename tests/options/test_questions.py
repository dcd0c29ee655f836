"""Reading question/answer files: every form reads to the same questions; what is said of malformed ones."""

import gzip
import json

import pytest

from brb_jax.data.fault import DataError
from brb_jax.data.files import FileFilter
from brb_jax.data.questions import Question, read_questions
from brb_jax.data.rules import Rules

STEM = "birds_MemoryRev_editk1_M2"
NAME = f"{STEM}_que_ans.json"
CONTEXT = "a -> b\nb -> e\n"
CASE = {"id": 7, "context": CONTEXT, "query": "c ->", "answer": "d"}
OTHER = {"id": "x/2", "context": CONTEXT, "query": "北 ->", "answer": "A"}
EXAMPLES = [{"input": "a", "output": "b"}, {"input": "b", "output": "e"}]
SHOTS = [["a", "b"], ["b", "e"]]


def changed(**changes):
    """Both cases, each with its changes; None takes a key out."""
    cases = ({**case, **changes} for case in (CASE, OTHER))
    return [{key: value for key, value in case.items() if value is not None} for case in cases]


def renamed(**names):
    return [{names.get(key, key): value for key, value in case.items()} for case in (CASE, OTHER)]


def lines(cases):
    return "".join(f"{json.dumps(case)}\n" for case in cases)


def by_id():
    return {str(case["id"]): case for case in changed()}


def write(folder, content, name=NAME):
    """`content` as it is if it is bytes or text, else as JSON."""
    content = content if isinstance(content, bytes | str) else json.dumps(content)
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


PACKED = gzip.compress(lines([CASE, OTHER]).encode())
FORMS = {
    "list": (changed(), NAME),
    "under cases": ({"metadata": {"m": 2}, "cases": changed()}, NAME),
    "under another key": ({"version": 1, "label": ["x"], "rows": changed()}, NAME),
    "by id": (by_id(), NAME),
    "by id, without ids": ({"7": changed(id=None)[0], "x/2": changed(id=None)[1]}, NAME),
    "by id, beside metadata": ({"metadata": {"m": 2}, **by_id()}, NAME),
    "by id, under cases": ({"cases": by_id()}, NAME),
    "lines": (lines([CASE, OTHER]), NAME + "l"),
    "lines in .json": (lines([CASE, OTHER]), NAME),
    "packed": (gzip.compress(json.dumps(changed()).encode()), NAME + ".gz"),
    "packed lines": (PACKED, NAME + "l.gz"),
    "byte order mark": (b"\xef\xbb\xbf" + json.dumps(changed()).encode(), NAME),
    "names": (renamed(id="QID", context="Memory", query="que", answer="correct-answer"), NAME),
    "other names": (renamed(id="uid", context="prompt", query="question", answer="gold"), NAME),
    "examples as objects": (changed(context=EXAMPLES), NAME),
    "examples as texts": (changed(context=["a -> b", "b -> e"]), NAME),
}
RULES = {
    "field_map": (
        {"old": [3], "offers": renamed(id="nr", context="before", query="ask", answer="truth")},
        {"field_map": {"cases": "offers", "id": "nr", "context": "before", "query": "ask", "answer": "truth"}},
    ),
    "field_map of what options could be": (
        renamed(answer="candidates"),
        {"field_map": {"answer": "candidates"}},
    ),
    "example_template": (
        changed(context=[{"in": "a", "y": "b"}, {"in": "b", "y": "e"}]),
        {"example_template": "{{ input }} -> {{ y }}\n"},
    ),
    "prompt_template": (
        [{**case, "query": case["query"][0]} for case in changed(context=None, shots=SHOTS)],
        {
            "prompt_template": "{% for s in shots %}{{ s[0] }} -> {{ s[1] }}\n{% endfor %}{{ query }} ->",
            "field_map": {"context": ""},
        },
    ),
}


def expected(metadata=None):
    return tuple(
        Question(f"{STEM}/{case['id']}", None, CONTEXT, case["query"], case["answer"], metadata or {})
        for case in (CASE, OTHER)
    )


def without_name(file):
    return tuple(Question(q.case_id, None, q.context, q.query, q.answer, q.metadata) for q in file.questions)


@pytest.mark.parametrize("form", FORMS)
def test_forms_that_need_no_flag(form, tmp_path):
    content, name = FORMS[form]
    [file] = read_questions([write(tmp_path, content, name)]).files
    assert without_name(file) == expected()
    assert (file.name.task, file.name.edit_k, file.source.path) == ("MemoryRev", 1, tmp_path / name)
    assert all(question.name == file.name for question in file.questions)


@pytest.mark.parametrize("form", RULES)
def test_forms_that_need_a_flag(form, tmp_path):
    content, rules = RULES[form]
    [file] = read_questions([write(tmp_path, content)], rules=Rules(**rules)).files
    assert without_name(file) == expected({"shots": SHOTS} if form == "prompt_template" else {})


def test_a_single_case_and_none(tmp_path):
    [file] = read_questions([write(tmp_path, CASE)]).files
    assert without_name(file) == expected()[:1]
    [file] = read_questions([write(tmp_path, "")]).files
    assert file.questions == ()


def test_whatever_else_stands_there_is_metadata(tmp_path):
    cases = changed(metadata={"seed": 1}, label="x", types=["y"], prompt="z")
    [file] = read_questions([write(tmp_path, {"metadata": {"source": "hand"}, "cases": cases})]).files
    assert file.metadata == {"source": "hand"}
    assert without_name(file) == expected({"seed": 1, "label": "x", "types": ["y"], "prompt": "z"})


@pytest.mark.parametrize("answer", ["A", "B", "0", "d-", " padded ", "a\nb"])
def test_an_answer_is_a_text_whatever_else_it_could_mean(answer, tmp_path):
    [file] = read_questions([write(tmp_path, [CASE | {"answer": answer}])]).files
    assert file.questions[0].answer == answer


def test_cases_without_ids_are_numbered(tmp_path):
    [file] = read_questions([write(tmp_path, changed(id=None))]).files
    assert [question.case_id for question in file.questions] == [f"{STEM}/0", f"{STEM}/1"]


@pytest.fixture
def folder(tmp_path):
    """Three files of two cases, one of them below and packed, and something else."""
    write(tmp_path, changed(), "b_MemoryRet_M2_que_ans.json")
    write(tmp_path, changed(), "a_MemoryRet_M9_que_ans.json")
    (tmp_path / "below").mkdir()
    write(tmp_path / "below", PACKED, "c_MemoryCom_k2_M2_que_ans.jsonl.gz")
    write(tmp_path, [], "notes.json")
    return tmp_path


def domains(read):
    return [(file.name.domain, len(file.questions)) for file in read.files]


def test_which_files(folder):
    assert domains(read_questions([folder])) == [("a", 2), ("b", 2), ("c", 2)]
    assert domains(read_questions([folder / "**"])) == [("a", 2), ("b", 2), ("c", 2)]
    assert domains(read_questions([folder / "[bc]_*.json", folder / "below"])) == [("b", 2), ("c", 2)]
    assert domains(read_questions([folder], only=FileFilter(k=(None,), m=(2,)))) == [("b", 2)]


@pytest.mark.parametrize(
    ("limit", "read"),
    [(0, []), (1, [("a", 1)]), (2, [("a", 2)]), (3, [("a", 2), ("b", 1)]), (9, [("a", 2), ("b", 2), ("c", 2)])],
)
def test_limit_takes_the_first_questions_of_the_whole_list(limit, read, folder):
    assert domains(read_questions([folder], limit=limit)) == read


def test_faulty_cases_can_be_left_out(folder):
    write(folder, [CASE, OTHER | {"answer": 3}], "b_MemoryRet_M2_que_ans.json")
    write(folder, [CASE | {"options": []}], "d_MemoryRet_M2_que_ans.json")
    read = read_questions([folder], on_bad_case="skip")
    assert domains(read) == [("a", 2), ("b", 1), ("c", 2)]
    assert [(fault.place, fault.problem) for fault in read.skipped] == [
        (1, "its answer is 3"),
        (0, "has options already"),
    ]
    write(folder, "{", "e_MemoryRet_M2_que_ans.json")
    with pytest.raises(DataError, match=r"1 fault in the data:\n.*e_MemoryRet_M2_que_ans\.json: not JSON"):
        read_questions([folder], on_bad_case="skip")


@pytest.mark.parametrize("settings", [{"limit": -1}, {"on_bad_case": "guess"}])
def test_settings_that_there_are_not(settings, folder):
    with pytest.raises(ValueError, match=next(iter(settings))):
        read_questions([folder], **settings)


def faults(paths, rules=None):
    with pytest.raises(DataError) as caught:
        read_questions(paths, rules=rules)
    return [f"{fault.case}: {fault.problem}" for fault in caught.value.faults]


TYPED = {"correct": "d", "retrieval_similar": "b", "old_rule": "e", "random_wrong": "f"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"answer": 4}, ["7: its answer is 4"]),
        ({"answer": True}, ["7: its answer is True"]),
        ({"answer": ["d"]}, ["7: its answer is ['d']"]),
        ({"answer": "  "}, ["7: its answer is '  '"]),
        ({"answer": "a\0"}, ["7: its answer holds a NUL at character 1"]),
        ({"answer": "\ud83d"}, ["7: its answer holds the lone surrogate U+D83D at character 0"]),
        ({"options": []}, ["7: has options already"]),
        ({"options": TYPED, "answer": None}, ["7: has options already"]),
        ({"Choices": ["d", "b"], "answer": 0}, ["7: has options already"]),
        ({"options": [], "candidates": []}, ["7: has options already"]),
        ({"query": 3}, ["7: its query is a int"]),
        ({"context": "\0", "answer": []}, ["7: its context holds a NUL at character 0", "7: its answer is []"]),
        ({"context": ["a -> b", 3]}, ["7: its example 1 is 3"]),
        ({"id": ""}, ["None: its id is ''"]),
        ({"metadata": []}, ["7: its metadata is a list"]),
        ({"metadata": {"n": 1}, "n": 2}, ["7: n stands both in its metadata and beside it"]),
        ({"answer": None}, ["7: lacks answer; its keys are ['id', 'context', 'query']"]),
        (
            {"answer": None, "gold": "d", "target": "d"},
            ["7: 'gold' or 'target' could be its answer; its keys are ['id', 'context', 'query', 'gold', 'target']"],
        ),
        (
            {"context": None, "passage": "p", "Question": "q"},
            [
                "7: 'query' or 'Question' could be its query; "
                "its keys are ['id', 'query', 'answer', 'passage', 'Question']"
            ],
        ),
    ],
    ids=str,
)
def test_faults_of_a_case(change, says, tmp_path):
    assert faults([write(tmp_path, [OTHER, changed(**change)[0]])]) == says


@pytest.mark.parametrize(
    ("content", "name", "says"),
    [
        ('[{"id": 1, "id": 2, "context": "", "query": "", "answer": "d"}]', NAME, "2: the key 'id' stands twice"),
        ('{"metadata": {"x": NaN}, "cases": []}', NAME, "None: NaN is no JSON number"),
        ('{"cases": [], "cases": []}', NAME, "None: the key 'cases' stands twice"),
        ("[", NAME, "None: not JSON: Expecting value"),
        (b'["\xe9"]', NAME, "None: not UTF-8: byte 0xe9 at offset 2"),
        (PACKED, NAME, "None: not UTF-8: byte 0x8b at offset 1"),
        (PACKED[:-9], NAME + "l.gz", "None: not a whole gzip file: Compressed file ended before"),
        (lines([CASE]) + "{", NAME + "l", "None: line 2 is not JSON"),
        ("3", NAME, "None: holds int"),
        ({"cases": 3}, NAME, "None: holds an object with the keys ['cases']"),
        ({"7": {"context": "", "query": ""}}, NAME, "None: holds an object with the keys ['7']"),
        ({"a": [CASE], "b": [CASE]}, NAME, "None: holds an object in which 'a' and 'b' could be the cases"),
        ({"a": [CASE], "7": CASE}, NAME, "None: holds an object in which 'a' and its other values could be the cases"),
        ({"8": CASE}, NAME, "None: its id is 7, but it stands under the key '8'"),
        ({"metadata": {"m": 70}, "cases": []}, NAME, "None: its name says m=2, its metadata m=70"),
        ({"metadata": [], "cases": []}, NAME, "None: its metadata is a list, not an object"),
        ([CASE, CASE], NAME, "7: its id stands twice in the file"),
        (["case"], NAME, "None: is a str, not an object"),
        ([CASE], "birds_que_ans.json", "None: the name 'birds_que_ans.json' does not follow"),
        ({"7": {key: CASE[key] for key in ("context", "query")} | {"options": TYPED}}, NAME, "7: has options already"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_malformed_files(content, name, says, tmp_path):
    [found] = faults([write(tmp_path, content, name)])
    assert found.startswith(says)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"field_map": {"answer": "truth"}}, "7: lacks 'truth', which --field_map takes for its answer"),
        ({"field_map": {"options": "context"}}, "7: has options already"),
        ({"prompt_template": "{{ context }}"}, "7: --prompt_template leaves its query out"),
        ({"prompt_template": "{{ query }}{{ answer }}"}, "7: does not fit --prompt_template: 'answer' is undefined"),
    ],
    ids=str,
)
def test_rules_that_do_not_fit(rules, says, tmp_path):
    [found] = faults([write(tmp_path, [CASE])], Rules(**rules))
    assert found.startswith(says)


def test_faults_of_all_files_are_listed_together(tmp_path):
    write(tmp_path, [CASE, CASE, changed(answer=None)[0], "case"])
    write(tmp_path, "[NaN", "a_MemoryRet_M2_que_ans.json")
    write(tmp_path, {"cases": 3}, "b_MemoryRet_M2_que_ans.json")
    write(tmp_path, [], "c_que_ans.json")
    (tmp_path / "empty").mkdir()
    found = faults([tmp_path, tmp_path / "empty", tmp_path / "missing_MemoryRet_M2_que_ans.json"])
    for says, one in zip(
        (
            "None: the directory holds no",
            "None: there is no such file or directory",
            "None: the name 'c_que_ans.json' does not follow",
            "None: not JSON",
            "None: holds an object with the keys ['cases']",
            "7: its id stands twice in the file",
            "7: lacks answer; its keys are ['id', 'context', 'query']",
            "None: is a str, not an object",
        ),
        found,
        strict=True,
    ):
        assert one.startswith(says)


def test_files_of_one_name_and_no_files(tmp_path):
    (tmp_path / "other").mkdir()
    write(tmp_path, [CASE]), write(tmp_path / "other", PACKED, NAME + "l.gz")
    [found] = faults([tmp_path])
    assert found.startswith(f"None: has the same name as {tmp_path / NAME}")
    assert faults([]) == ["None: no files were named"]
