"""The reader: sound files are taken as they are, and every fault of every file is listed at once."""

import copy
import hashlib
import json
import os

import pytest

from brb_jax.data.case import Case, Option
from brb_jax.data.fault import DataError
from brb_jax.data.filename import FileName
from brb_jax.data.reader import read_cases, survey_files

NAME = "words_MemoryRet_M2_que_ans.json"


def raw_case(own_id=1, **changes):
    case = {
        "id": own_id,
        "context": "zorav: amber kite -> kite amber\n",
        "query": "zorav: lark jade ->",
        "options": [
            {"label": "A", "text": "kite amber", "type": "retrieval_similar"},
            {"label": "B", "text": "jade lark", "type": "correct"},
            {"label": "C", "text": "jade moss", "type": "random_wrong"},
        ],
        "answer": "B",
        "metadata": {"seed": 7},
    }
    return {**case, **changes}


def with_option(place, **changes):
    case = copy.deepcopy(raw_case())
    case["options"][place].update(changes)
    return case


def without(key):
    return {k: v for k, v in raw_case().items() if k != key}


def write(directory, document, name=NAME):
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    return path


def faults_of(paths, **kwargs):
    with pytest.raises(DataError) as caught:
        read_cases(paths, **kwargs)
    return caught.value.faults


def test_a_sound_file(tmp_path):
    path = write(tmp_path, {"metadata": {"domain": "words", "m": 2}, "cases": [raw_case(17, note="by hand")]})
    dataset = read_cases([path])
    assert dataset.cases == (
        Case(
            case_id="words_MemoryRet_M2/17",
            domain="words",
            task="MemoryRet",
            k=None,
            edit_k=None,
            m=2,
            context="zorav: amber kite -> kite amber\n",
            query="zorav: lark jade ->",
            options=(
                Option("A", "kite amber", "retrieval_similar"),
                Option("B", "jade lark", "correct"),
                Option("C", "jade moss", "random_wrong"),
            ),
            answer="B",
            metadata={"seed": 7, "note": "by hand"},
        ),
    )
    assert dataset.skipped == () and dataset.skipped_cases == ()
    assert dataset.files == (str(path),)


@pytest.mark.parametrize("answer", ["B", "b", " B ", "B.", 1, "jade lark"])
def test_answer_is_normalised_to_its_label(tmp_path, answer):
    [case] = read_cases([write(tmp_path, [raw_case(answer=answer)])]).cases
    assert case.answer == "B" and case.correct_index == 1


def test_byte_order_mark_is_accepted(tmp_path):
    path = write(tmp_path, b"\xef\xbb\xbf" + json.dumps([raw_case()]).encode())
    assert len(read_cases([path]).cases) == 1


@pytest.mark.parametrize("document", [b"", b" \n", b"\xef\xbb\xbf", b"[]", b'{"metadata": {}, "cases": []}'])
def test_no_cases_is_no_fault(tmp_path, document):
    assert read_cases([write(tmp_path, document)]).cases == ()


# Each case is wrong in one way; the text is what the fault has to say of it.
BAD_CASES = {
    "null": (None, "is a NoneType, not an object"),
    "no answer": (without("answer"), "lacks answer; its keys are ['id', 'context', 'query', 'options', 'metadata']"),
    "no id": (without("id"), "lacks id"),
    "no options": (without("options"), "lacks options"),
    "null id": (raw_case(None), "its id is None"),
    "bool id": (raw_case(True), "its id is True"),
    "float id": (raw_case(1.5), "its id is 1.5"),
    "empty id": (raw_case(""), "its id is ''"),
    "context": (raw_case(context=None), "its context is a NoneType"),
    "query": (raw_case(query=["z"]), "its query is a list"),
    "metadata": (raw_case(metadata=[]), "its metadata is a list"),
    "metadata twice": (raw_case(seed=8), "seed stands both in its metadata and beside it"),
    "options text": (raw_case(options="AB"), "its options are a str"),
    "option texts": (raw_case(options=["kite", "lark", "jade"]), "has no types for its options"),
    "option text among objects": (raw_case(options=[*raw_case()["options"][:2], "jade"]), "its option 2 is 'jade'"),
    "option number": (with_option(2, text=5), "its option 2 is {"),
    "no correct": (with_option(1, type="random_wrong"), "has 0 options of type correct"),
    "two correct": (with_option(0, type="correct"), "has 2 options of type correct"),
    "unknown type": (with_option(0, type="old_rule"), "unknown type 'old_rule'"),
    "two options": (raw_case(options=raw_case()["options"][:2]), "has 2 options, MemoryRet has 3"),
    "no options at all": (raw_case(options=[]), "has 0 options, MemoryRet has 3"),
    "label order": (raw_case(options=raw_case()["options"][::-1]), "its labels are C, B, A"),
    "label small": (with_option(0, label="a"), "its labels are a, B, C"),
    "empty option": (with_option(0, text=""), "its option A is empty"),
    "blank option": (with_option(0, text=" \n"), "its option A is empty"),
    "same options": (with_option(2, text="jade lark"), "its options B and C have the same text 'jade lark'"),
    "same but for a space": (with_option(2, text=" jade lark"), "its options B and C have the same text"),
    "answer type": (raw_case(answer="A"), "its answer is A (of type retrieval_similar), but of type correct is B"),
    "answer index type": (raw_case(answer=0), "its answer is A (of type retrieval_similar)"),
    "answer null": (raw_case(answer=None), "the answer None"),
    "answer true": (raw_case(answer=True), "the answer True"),
    "answer negative": (raw_case(answer=-1), "the answer -1"),
    "answer digits": (raw_case(answer="1"), "the answer '1'"),
    "NUL": (raw_case(context="a\0b"), "its context holds a NUL at character 1"),
    "surrogate": (with_option(1, text="jade \ud83d"), "its option B holds the lone surrogate U+D83D at character 5"),
    "surrogate id": (raw_case("\ud83d"), "its id holds the lone surrogate U+D83D at character 0"),
}


@pytest.mark.parametrize("kind", BAD_CASES)
def test_bad_case(tmp_path, kind):
    raw, says = BAD_CASES[kind]
    path = write(tmp_path, [raw_case("first"), raw, raw_case("last")])
    faults = faults_of([path])
    assert any(says in fault.problem for fault in faults), faults
    assert {(fault.file, fault.place) for fault in faults} == {(str(path), 1)}
    assert all(fault.remedy for fault in faults)
    str(DataError(faults)).encode()  # the message itself can be printed

    dataset = read_cases([path], on_bad_case="skip")
    assert [case.case_id for case in dataset.cases] == ["words_MemoryRet_M2/first", "words_MemoryRet_M2/last"]
    assert dataset.skipped == faults and dataset.skipped_cases == (FileName.parse(NAME),)


# As above, for what a parsed value can no longer hold.
BAD_JSON = {
    '"m": NaN': "NaN is no JSON number",
    '"m": [{"x": -Infinity}]': "-Infinity is no JSON number",
    '"m": 1e999': "1e999 is no JSON number",
    '"query": "other"': "the key 'query' stands twice in one object",
    '"m": {"x": 1, "x": 2}': "the key 'x' stands twice in one object",
}


@pytest.mark.parametrize("text", BAD_JSON)
def test_case_that_is_no_standard_json(tmp_path, text):
    bad = json.dumps(raw_case("bad")).removesuffix("}") + f", {text}}}"
    path = write(tmp_path, f"[{bad}, {json.dumps(raw_case('good'))}]".encode())
    [fault] = faults_of([path])
    assert (fault.place, fault.case, fault.problem) == (0, "bad", BAD_JSON[text])
    [case] = read_cases([path], on_bad_case="skip").cases
    assert case.case_id == "words_MemoryRet_M2/good"


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (b"[", "not JSON: Expecting value: line 1 column 2"),
        (b"[]]", "not JSON: Extra data"),
        (b'["\xff"]', "not UTF-8: byte 0xff at offset 2"),
        (b"[" * 100_000, "nested too deeply"),
        (b"3", "holds int"),
        (b'{"data": []}', "holds an object with the keys ['data']"),
        (b'{"cases": {}}', "holds an object with the keys ['cases']"),
        (b'{"cases": [], "cases": []}', "the key 'cases' stands twice"),
        (b'{"metadata": {"m": NaN}, "cases": []}', "NaN is no JSON number"),
        (b'{"metadata": 3, "cases": []}', "its metadata is a int"),
        (b'{"metadata": {"m": 70}, "cases": []}', "its name says m=2, its metadata m=70"),
        (b'{"metadata": {"task": "MemoryCom"}, "cases": []}', "its name says task='MemoryRet', its metadata"),
        (b'{"metadata": {"k": 2}, "cases": []}', "its name says k=None, its metadata k=2"),
    ],
)
@pytest.mark.parametrize("on_bad_case", ["fail", "skip"])
def test_bad_file_is_never_skipped(tmp_path, document, says, on_bad_case):
    faults = faults_of([write(tmp_path, document)], on_bad_case=on_bad_case)
    assert any(says in fault.problem for fault in faults), faults
    assert faults[0].place is None


def test_file_of_another_task_is_refused(tmp_path):
    faults = faults_of([write(tmp_path, [raw_case()], "words_MemoryCom_k2_M2_que_ans.json")])
    assert "unknown type 'retrieval_similar'" in " ".join(fault.problem for fault in faults)


@pytest.mark.parametrize("ids", [(1, 1, 1), (1, "1", 1)])
def test_every_further_case_of_an_id_is_a_fault(tmp_path, ids):
    path = write(tmp_path, [raw_case(own_id) for own_id in ids])
    assert [(fault.place, fault.case) for fault in faults_of([path])] == [(1, "1"), (2, "1")]
    dataset = read_cases([path], on_bad_case="skip")
    assert len(dataset.cases) == 1 and len(dataset.skipped_cases) == 2


def test_same_ids_in_two_files_stay_apart(tmp_path):
    write(tmp_path, [raw_case(1)])
    write(tmp_path, [raw_case(1)], "words_MemoryRet_M3_que_ans.json")
    ids = [case.case_id for case in read_cases([tmp_path]).cases]
    assert ids == ["words_MemoryRet_M2/1", "words_MemoryRet_M3/1"]


def test_two_files_of_one_name(tmp_path):
    first, second = (write(tmp_path / folder, [raw_case()]) for folder in "ab")
    [fault] = faults_of([first, second])
    assert fault.file == str(second) and f"same name as {first}" in fault.problem
    [fault] = faults_of([first, first])
    assert "same name" in fault.problem


def test_directory_is_read_in_order_of_name(tmp_path):
    for name in ("words_MemoryRet_M2", "digits_MemoryRet_M2", "words_MemoryRet_M10"):
        write(tmp_path, [raw_case()], f"{name}_que_ans.json")
    write(tmp_path, b"no benchmark file", "README.md")
    ids = [case.case_id for case in read_cases([str(tmp_path) + "/"]).cases]
    assert ids == ["digits_MemoryRet_M2/1", "words_MemoryRet_M10/1", "words_MemoryRet_M2/1"]


def test_nothing_to_read(tmp_path):
    assert "no *_que_ans.json file" in faults_of([tmp_path])[0].problem
    assert "no such file" in faults_of([tmp_path / "missing"])[0].problem
    assert "no files were named" in faults_of([])[0].problem
    (tmp_path / NAME).mkdir()
    assert "cannot be read" in faults_of([tmp_path])[0].problem


def test_a_pipe_or_a_device_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / NAME)
    (tmp_path / "words_MemoryRet_M3_que_ans.json").symlink_to("/dev/zero")
    (tmp_path / "words_MemoryRet_M4_que_ans.json").symlink_to(tmp_path / "nowhere")
    faults = survey_files([tmp_path]).faults
    assert [fault.problem for fault in faults[:2]] == ["cannot be read: it is a pipe or a device, not a file"] * 2
    assert faults[2].problem.startswith("cannot be read: [Errno 2] No such file or directory")


def test_name_against_the_convention(tmp_path):
    [fault] = faults_of([write(tmp_path, [raw_case()], "cases.json")])
    assert "'cases.json' does not follow" in fault.problem and "rename it" in fault.remedy


def test_faults_of_all_files_are_listed_together(tmp_path):
    write(tmp_path, [raw_case(i, answer=None) for i in range(15)])
    write(tmp_path, b"[", "words_MemoryRet_M3_que_ans.json")
    write(tmp_path, [raw_case(i, answer="A") for i in range(15)], "words_MemoryRet_M4_que_ans.json")
    with pytest.raises(DataError) as caught:
        read_cases([tmp_path])
    assert len(caught.value.faults) == 31
    first, *listed, last = str(caught.value).splitlines()
    assert first == "31 faults in the data:"
    assert len(listed) == 20 and last.strip() == "… and 11 more"
    assert listed[3].startswith(f"  {tmp_path / NAME}, case #3 (id 3): the answer None")
    assert "give a label" in listed[3]


@pytest.mark.parametrize(("limit", "ids"), [(None, [0, 1, 2, 10, 11]), (0, []), (2, [0, 1]), (4, [0, 1, 2, 10])])
def test_limit_takes_the_head_of_the_whole_list(tmp_path, limit, ids):
    write(tmp_path, [raw_case(i) for i in range(3)])
    write(tmp_path, [raw_case(i) for i in (10, 11)], "words_MemoryRet_M3_que_ans.json")
    cases = read_cases([tmp_path], limit=limit).cases
    assert [int(case.case_id.split("/")[1]) for case in cases] == ids


def test_limit_does_not_hide_a_fault(tmp_path):
    write(tmp_path, [raw_case(0), raw_case(1, answer=None)])
    assert faults_of([tmp_path], limit=1)[0].case == "1"


def test_arguments_are_checked(tmp_path):
    with pytest.raises(ValueError, match="limit must be"):
        read_cases([tmp_path], limit=-1)
    with pytest.raises(ValueError, match="on_bad_case must be"):
        read_cases([tmp_path], on_bad_case="ignore")


def test_fingerprint_is_of_names_and_bytes(tmp_path):
    data = json.dumps([raw_case()]).encode()
    path = write(tmp_path / "a", data)
    digest = hashlib.sha256()
    for part in (NAME.encode(), data):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    fingerprint = read_cases([path]).fingerprint
    assert fingerprint == digest.hexdigest()
    assert read_cases([write(tmp_path / "b", data)], limit=0).fingerprint == fingerprint
    assert read_cases([write(tmp_path / "c", data + b"\n")]).fingerprint != fingerprint
    assert read_cases([write(tmp_path / "d", data, "words_MemoryRet_M3_que_ans.json")]).fingerprint != fingerprint
