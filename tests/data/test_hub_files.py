"""`hf://` against a small server that answers as the Hub does, from a process of its own for each cache."""

import json
import os
import subprocess
import sys

import pytest
from hub_server import Hub

OPTIONS = {"correct": "a", "retrieval_similar": "b", "random_wrong": "c"}


def file_of(*ids, note="x"):
    return json.dumps([{"id": i, "context": note, "query": "q", "options": OPTIONS} for i in ids]).encode()


FILES = {
    "README.md": b"A card.",
    "data/words_MemoryRet_M70_que_ans.json": file_of(1, 2),
    "data/digits_MemoryRet_M70_que_ans.json": file_of(1),
    "data/old/words_MemoryRet_M5_que_ans.jsonl": file_of(3)[1:-1],
    "data/old/notes.json": b"{}",
    "words_MemoryRet_M10_que_ans.json": file_of(4),
}
MODEL_FILES = {"words_MemoryRet_M1_que_ans.json": file_of(9), "model.safetensors": b"weights"}
DATASET = "hf://datasets/team/bench"


@pytest.fixture
def hub():
    hub = Hub(
        {"datasets/team/bench": dict(FILES), "models/team/bench": MODEL_FILES, "datasets/team/gated": dict(FILES)},
        gated=("datasets/team/gated",),
    )
    yield hub
    hub.close()


@pytest.fixture
def read(hub, tmp_path):
    """Reads in a fresh process: (ids of cases, files) or what the error says."""

    def read(*paths, offline=False, endpoint=None, **only):
        code = f"""
import json
from brb_jax.data.fault import DataError
from brb_jax.data.files import FileFilter
from brb_jax.data.reader import read_cases
try:
    dataset = read_cases({paths!r}, only=FileFilter(**{only!r}))
    print(json.dumps([[case.case_id for case in dataset.cases], dataset.files, dataset.fingerprint]))
except DataError as error:
    print(json.dumps(str(error)))
"""
        environment = {
            **os.environ,
            "HF_ENDPOINT": endpoint or hub.url,
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_OFFLINE": str(int(offline)),
        }
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return json.loads(done.stdout)

    return read


ALL = [
    "digits_MemoryRet_M70/1",
    "words_MemoryRet_M10/4",
    "words_MemoryRet_M5/3",
    "words_MemoryRet_M70/1",
    "words_MemoryRet_M70/2",
]


def test_whole_repository(hub, read, tmp_path):
    ids, files, fingerprint = read(DATASET)
    assert ids == ALL
    assert files[0] == f"{DATASET}@{hub.commit('datasets/team/bench')}/data/digits_MemoryRet_M70_que_ans.json"
    assert sorted(hub.downloaded) == sorted(name for name in FILES if "que_ans" in name)

    # The same files in a folder are the same dataset.
    for name, data in FILES.items():
        path = tmp_path / "local" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert read(str(tmp_path / "local"))[::2] == [ids, fingerprint]


def test_model_repository_and_both_together(hub, read):
    assert read("hf://team/bench")[0] == ["words_MemoryRet_M1/9"]
    assert hub.downloaded == ["words_MemoryRet_M1_que_ans.json"]
    assert read("hf://team/bench", DATASET)[0] == [*ALL[:2], "words_MemoryRet_M1/9", *ALL[2:]]


@pytest.mark.parametrize(
    ("path", "stems"),
    [
        ("/data", ["digits_MemoryRet_M70", "words_MemoryRet_M5", "words_MemoryRet_M70"]),
        ("/data/", ["digits_MemoryRet_M70", "words_MemoryRet_M5", "words_MemoryRet_M70"]),
        ("/data/words*", ["words_MemoryRet_M70"]),
        ("/*/old", ["words_MemoryRet_M5"]),
        ("/**/words_*_M[57]*", ["words_MemoryRet_M5", "words_MemoryRet_M70"]),
        ("@v1/words_MemoryRet_M10_que_ans.json", ["words_MemoryRet_M10"]),
        ("@main", ["digits_MemoryRet_M70", "words_MemoryRet_M10", "words_MemoryRet_M5", "words_MemoryRet_M70"]),
    ],
)
def test_part_of_a_repository(hub, read, path, stems):
    _, files, _ = read(DATASET + path)
    assert [file.rpartition("/")[2].partition("_que_ans")[0] for file in files] == stems
    # Only what is meant was fetched.
    assert sorted(name.rpartition("/")[2].partition("_que_ans")[0] for name in hub.downloaded) == stems


def test_filters_choose_before_the_download(hub, read):
    assert read(DATASET, domains=("words",), m=(5, 10))[0] == ["words_MemoryRet_M10/4", "words_MemoryRet_M5/3"]
    assert sorted(hub.downloaded) == ["data/old/words_MemoryRet_M5_que_ans.jsonl", "words_MemoryRet_M10_que_ans.json"]
    says = read(DATASET, m=(6,))
    assert "--m=6: none of the 4 files has it; they have m = 5, 10, 70" in says
    assert len(hub.downloaded) == 2


def test_offline(hub, read):
    address = DATASET + "/data/words*"
    said = read(address, offline=True)
    assert said == (
        f"1 fault in the data:\n  {address}: cannot be read offline: the repository, at this revision, is not in the "
        "cache; run once with the same --data and filters, and without HF_HUB_OFFLINE"
    )
    assert hub.requests == []

    fetched = read(address)
    asked = len(hub.requests)
    assert read(address, offline=True) == fetched
    # What was not fetched then is missing now: no half of a dataset.
    said = read(DATASET, offline=True)
    assert said.startswith(
        f"1 fault in the data:\n  {DATASET}: cannot be read offline: 3 of 4 files are not in the cache "
        "(data/digits_MemoryRet_M70_que_ans.json, …); run once"
    )
    assert read(DATASET, offline=True, domains=("words",), m=(70,)) == fetched
    assert len(hub.requests) == asked


def test_what_is_cached_is_not_fetched_again(hub, read):
    first = read(DATASET)
    downloads = len(hub.downloaded)
    assert read(DATASET) == first and len(hub.downloaded) == downloads
    # A new commit is seen, and changes the fingerprint.
    hub.repositories["datasets/team/bench"]["words_MemoryRet_M10_que_ans.json"] = file_of(5)
    second = read(DATASET)
    assert "words_MemoryRet_M10/5" in second[0] and second[2] != first[2]
    assert hub.downloaded[downloads:] == ["words_MemoryRet_M10_que_ans.json"]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (
            "hf://datasets/team/nothing",
            "there is no such dataset repository on the Hub, or it is private; check the name",
        ),
        ("hf://team/nothing", "there is no such model repository on the Hub, or it is private; check the name"),
        ("hf://datasets/team/gated", "is gated, and access has not been granted; ask for it on its page, and log in"),
        (DATASET + "@v9", "the repository has no revision 'v9'; name another after the @"),
        (DATASET + "/dta", "holds no *_que_ans.json file; check the path behind the repository's name"),
        (DATASET + "/data/old/notes.json", "means 1 files, of which none is a *_que_ans.json"),
        ("hf://datasets/team", "is no address on the Hub: Invalid HF URI 'hf://datasets/team'. Repository id must be"),
        ("hf://spaces/team/bench", "is a space; only datasets and models can be read"),
        ("hf://", "is no address on the Hub: "),
    ],
)
def test_one_clear_line(read, path, says):
    said = read(path)
    head, line = said.splitlines()
    assert head == "1 fault in the data:" and line.startswith(f"  {path}: {says}")


def test_hub_that_cannot_be_reached(hub, read):
    read(DATASET)
    said = read(DATASET, endpoint="http://127.0.0.1:1")
    # Not silently what an earlier run fetched: it may be out of date.
    assert f"  {DATASET}: the Hub cannot be reached, or gave no answer: " in said and "HF_HUB_OFFLINE=1" in said
    assert said.count("\n") == 1


def test_faults_in_files_name_their_address(hub, read):
    hub.repositories["datasets/team/bench"]["data/old/words_MemoryRet_M5_que_ans.jsonl"] = b"{oops\n"
    said = read(DATASET)
    assert f"  {DATASET}/data/old/words_MemoryRet_M5_que_ans.jsonl: line 1 is not JSON" in said
