"""Which files paths, globs and filters mean, and that the order is the same however they are named."""

import gzip
import json
import os
from pathlib import Path

import pytest

from brb_jax.data.fault import DataError
from brb_jax.data.files import FileFilter, FilterError, find_files, parse_numbers
from brb_jax.data.reader import read_cases
from brb_jax.data.rules import Rules, RulesError, parse_field_map

NAMES = [
    "digits_MemoryCom_k2_M10",
    "digits_MemoryRet_M70",
    "words_MemoryCom_k2_M10",
    "words_MemoryCom_k3_M70",
    "words_MemoryRet_M70",
    "words_MemoryRev_editk1_M70",
    "words_MemoryRev_k2_editk3_M70",
]
SUFFIX = "_que_ans.json"


@pytest.fixture
def data(tmp_path):
    """Empty files, at three depths, and files of other kinds."""
    for i, name in enumerate(NAMES):
        folder = tmp_path / ("", "part", "part/deeper")[i % 3]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / (name + SUFFIX)).write_text("[]")
    (tmp_path / "README.md").write_text("Not data.")
    (tmp_path / "part" / "words_MemoryRet_M70_que_ans.json.bak").write_text("[]")
    (tmp_path / f".words_MemoryRet_M9{SUFFIX}").write_text("[]")
    hidden = tmp_path / ".cache"
    hidden.mkdir()
    (hidden / f"words_MemoryRet_M8{SUFFIX}").write_text("[]")
    return tmp_path


def stems(paths, **only):
    sources, faults = find_files(paths, FileFilter(**only))
    assert faults == []
    return [source.name.stem for source in sources]


def test_order_is_that_of_the_names(data, monkeypatch):
    monkeypatch.chdir(data)
    files = sorted((next(data.rglob(name + SUFFIX)) for name in NAMES), key=lambda file: str(file)[::-1])
    for paths in (
        [data],
        [f"{data}/"],
        ["."],
        files,
        files[::-1],
        [f"{data}/**"],
        ["**/*_M70*", "part/../**/*_M10*"],
        [data / "part", f"{data}/*{SUFFIX}"],
    ):
        assert stems(paths) == NAMES, paths


@pytest.mark.parametrize(
    ("only", "kept"),
    [
        ({"tasks": ("MemoryCom",)}, [0, 2, 3]),
        ({"tasks": ("MemoryRev", "MemoryRet")}, [1, 4, 5, 6]),
        ({"domains": ("digits",)}, [0, 1]),
        ({"k": (2,)}, [0, 2, 6]),
        ({"k": (3, None)}, [1, 3, 4, 5]),
        ({"edit_k": (1, 3)}, [5, 6]),
        ({"edit_k": (None,)}, [0, 1, 2, 3, 4]),
        ({"m": (70,)}, [1, 3, 4, 5, 6]),
        ({"tasks": ("MemoryCom",), "domains": ("words",), "k": (2,), "m": (10, 70)}, [2]),
    ],
)
def test_filters(data, only, kept):
    assert stems([data], **only) == [NAMES[i] for i in kept]


def test_files_left_out_are_not_opened(data):
    (data / f"words_MemoryRet_M5{SUFFIX}").write_bytes(b"no JSON")
    assert len(read_cases([data], only=FileFilter(m=(70, 10))).files) == 7
    with pytest.raises(DataError, match="not JSON"):
        read_cases([data])


def test_fingerprint_is_of_the_files_chosen(data):
    by_filter = read_cases([data], only=FileFilter(k=(3,))).fingerprint
    assert by_filter == read_cases(list(data.rglob("*_k3_M70*"))).fingerprint != read_cases([data]).fingerprint


@pytest.mark.parametrize(
    ("only", "says"),
    [
        ({"domains": ("wrods",)}, "--domains=wrods: none of the 7 files has it; they have domain = digits, words"),
        ({"k": (4,)}, "--k=4: none of the 7 files has it; they have k = none, 2, 3"),
        ({"m": (7,)}, "--m=7: none of the 7 files has it; they have m = 10, 70"),
        (
            {"tasks": ("MemoryRet",), "k": (2,)},
            "--tasks=MemoryRet, --k=2: no file is left of 7; loosen the filters",
        ),
    ],
)
def test_filters_that_leave_nothing(data, only, says):
    with pytest.raises(DataError, match=f"^1 fault in the data:\n  {says}"):
        read_cases([data], only=FileFilter(**only))


def test_filters_are_checked():
    with pytest.raises(FilterError, match="--tasks: there is no task 'Memoryret'; the tasks are MemoryRet, MemoryCom"):
        FileFilter(tasks=("Memoryret",))
    assert parse_numbers("k", ["2", " 3", "none"]) == (2, 3, None)
    for item in ("two", "-1", "2.0", ""):
        with pytest.raises(FilterError, match=f"--k: '{item}' is neither a whole number nor 'none'"):
            parse_numbers("k", [item])


@pytest.mark.parametrize(
    ("items", "says"),
    [
        (["context"], "--field_map: 'context' is not of the form context=passage"),
        (["context=a", "context=b"], "--field_map: context is given twice"),
        (["contxt=a"], "--field_map: there is no field 'contxt'; the fields are cases, id, context, query, "),
        (["query="], "--field_map: query= names no key; only id and context may be left out"),
    ],
)
def test_field_map_is_checked(items, says):
    with pytest.raises(RulesError, match=says):
        Rules(field_map=parse_field_map(items))


@pytest.mark.parametrize("flag", ["example_template", "prompt_template"])
def test_templates_are_checked_before_a_file_is_read(flag):
    with pytest.raises(RulesError, match=rf"--{flag}: '{{{{ query' is no template: unexpected end of template"):
        Rules(**{flag: "{{ query"})


def test_one_stem_with_two_endings(data):
    path = data / "part" / "words_MemoryRet_M70_que_ans.jsonl.gz"
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(DataError) as caught:
        read_cases([data])
    [fault] = caught.value.faults
    other = data / "part" / f"words_MemoryRet_M70{SUFFIX}"
    assert fault.file == str(path) and fault.problem.startswith(f"has the same name as {other}, so")


def test_links(data, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / f"words_MemoryRet_M3{SUFFIX}").write_text("[]")
    (data / "linked").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(data)
    (data / f"words_MemoryRet_M4{SUFFIX}").symlink_to(elsewhere / f"words_MemoryRet_M3{SUFFIX}")
    assert stems([data]) == sorted([*NAMES, "words_MemoryRet_M3", "words_MemoryRet_M4"])


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("{data}/*.txt", "no \\*_que_ans.json file matches"),
        ("{data}/nothing/**", "no \\*_que_ans.json file matches"),
        ("{data}/nothing", "there is no such file or directory"),
        ("{data}/part/empty", "the directory holds no \\*_que_ans.json file"),
        ("{data}/README.md", "the name 'README.md' does not follow"),
    ],
)
def test_paths_that_mean_nothing(data, path, says):
    (data / "part" / "empty").mkdir()
    with pytest.raises(DataError, match=says) as caught:
        read_cases([path.format(data=data), data])
    assert len(caught.value.faults) == 1 and caught.value.faults[0].file == path.format(data=data)


def test_name_with_brackets_is_a_name_first(tmp_path):
    path = tmp_path / f"[words]_MemoryRet_M2{SUFFIX}"
    path.write_text("[]")
    assert stems([path]) == ["[words]_MemoryRet_M2"]


def test_home_directory(data, monkeypatch):
    monkeypatch.setenv("HOME", str(data))
    assert stems(["~"]) == NAMES
    assert stems(["~/*_M70*"]) == [name for name in NAMES if (data / (name + SUFFIX)).exists() and "M70" in name]


def test_folder_that_cannot_be_listed(data, monkeypatch):
    def walk(top, onerror, followlinks):
        onerror(PermissionError(13, "Permission denied", str(Path(top, "part"))))

    monkeypatch.setattr(os, "walk", walk)
    with pytest.raises(DataError, match=r"cannot be read: .*Permission denied: '.*part'; check the path"):
        read_cases([data])


def test_limit_takes_the_same_cases_however_the_files_are_named(data):
    options = {"correct": "a", "retrieval_similar": "b", "random_wrong": "c"}
    for name in ("words_MemoryRet_M70", "digits_MemoryRet_M70"):
        [path] = data.rglob(name + SUFFIX)
        path.write_text(json.dumps([{"context": "", "query": "q", "options": options}] * 2))
    files = list(data.rglob(f"*MemoryRet_M70{SUFFIX}"))
    for paths in ([data], files, files[::-1], [f"{data}/**/*MemoryRet*"]):
        ids = [case.case_id for case in read_cases(paths, limit=3).cases]
        assert ids == ["digits_MemoryRet_M70/0", "digits_MemoryRet_M70/1", "words_MemoryRet_M70/0"]
