"""`convert --verify`: right conversions pass, wrong ones do not, and what cannot be verified is refused at once."""

from __future__ import annotations

import importlib.util
import re
import sys

import commands
import numpy as np
import pytest

from brb_jax.checkpoints import CheckpointError, canonical
from brb_jax.convert import convert

CONVERT = (sys.executable, "-m", "brb_jax.convert")

reference = pytest.mark.reference


@reference
@pytest.mark.parametrize(("family", "dtype"), [("llama", "bfloat16"), ("gemma3", "float32")])
def test_right_conversions(family, dtype, sources, tmp_path):
    written, found = convert(str(sources[family]), str(tmp_path / "out"), dtype, verify=True).splitlines()
    assert written.startswith(f"{tmp_path / 'out'}: a {family} decoder")
    tokens, largest = re.match(r"log-probabilities of (\d+) tokens .* by at most (\S+) nat", found).groups()
    assert int(tokens) == 400 and 0 < float(largest) < 1e-4
    assert found.endswith("within the bound of 1e-03")


@reference
@pytest.mark.parametrize("path", ["layers/attention/query/kernel", "final_norm/scale"])
def test_conversions_with_one_parameter_wrong(path, sources, tmp_path, monkeypatch):
    """Its last axis is turned by one: shape and sum stay the same."""
    right = canonical.read_parameter

    def wrong(checkpoint, name, dtype):
        parameter = right(checkpoint, name, dtype)
        return np.roll(parameter, 1, axis=-1) if name == path else parameter

    monkeypatch.setattr(canonical, "read_parameter", wrong)
    with pytest.raises(CheckpointError, match=r"is written, but do not use it: .* beyond the bound of 1e-03"):
        convert(str(sources["llama"]), str(tmp_path / "out"), verify=True)


@reference
def test_command(sources, tmp_path):
    command = [*CONVERT, f"--source={sources['llama']}", f"--out={tmp_path / 'out'}", "--verify"]
    done = commands.run(command)
    assert done.returncode == 0 and done.stdout.count("\n") == 2, done.stderr
    assert "within the bound of 1e-03" in done.stdout


def test_without_torch(sources, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "torch" else find(name, *rest))
    with pytest.raises(CheckpointError, match="--verify: torch is not installed; pip install torch, or leave"):
        convert(str(sources["llama"]), str(tmp_path / "out"), verify=True)
    assert not (tmp_path / "out").exists()


def test_what_torch_cannot_read(models, tmp_path):
    with pytest.raises(CheckpointError, match="is converted already"):
        convert(str(models["llama"]), str(tmp_path / "out"), verify=True)
