"""Converting, and restoring what was converted on other meshes than it was saved on."""

import json
import os
import shutil
import subprocess
import sys

import jax
import ml_dtypes
import numpy as np
import pytest
import tiny_models
from flax import nnx
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from brb_jax.checkpoints import CheckpointError, canonical, open_checkpoint
from brb_jax.checkpoints.streaming import flatten, parameter_shapes
from brb_jax.convert import convert
from brb_jax.scoring.parameters import abstract_decoder


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    tiny_models.gemma3().save(folder)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "optimizer.pt").write_text("not for us")
    return folder


@pytest.fixture(scope="module")
def converted(source, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "converted"
    convert(str(source), str(out))
    return out


def assert_same_bits(found, expected):
    found, expected = flatten(found), flatten(expected)
    assert found.keys() == expected.keys()
    for path, leaf in expected.items():
        assert found[path].dtype == leaf.dtype
        np.testing.assert_array_equal(np.asarray(found[path]), np.asarray(leaf), err_msg=path)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_round_trip_is_bit_exact(dtype, source, tmp_path):
    convert(str(source), str(tmp_path / "out"), dtype=dtype)
    number = np.dtype(getattr(ml_dtypes, dtype, dtype))
    direct, restored = open_checkpoint(source), open_checkpoint(tmp_path / "out")
    assert restored.config == direct.config
    asked = tiny_models.abstract_params(direct.config, number)
    assert_same_bits(restored.load(asked), direct.load(asked))
    assert json.loads((tmp_path / "out/model.json").read_text())["dtype"] == dtype


def test_restoring_casts(source, converted):
    asked = tiny_models.abstract_params(open_checkpoint(source).config, ml_dtypes.bfloat16)
    assert_same_bits(open_checkpoint(converted).load(asked), open_checkpoint(source).load(asked))


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
def test_restores_on_any_mesh(devices, source, converted):
    mesh = jax.make_mesh((devices,), ("fsdp",), axis_types=(AxisType.Auto,), devices=jax.devices()[:devices])
    spread = NamedSharding(mesh, PartitionSpec(None, None, "fsdp"))
    config = open_checkpoint(source).config
    asked = tiny_models.abstract_params(config, sharding=NamedSharding(mesh, PartitionSpec()))
    mlp = asked["layers"]["mlp"]
    mlp["up"]["kernel"] = jax.ShapeDtypeStruct(mlp["up"]["kernel"].shape, np.float32, sharding=spread)
    restored = open_checkpoint(converted).load(asked)
    assert restored["layers"]["mlp"]["up"]["kernel"].sharding == spread
    one_device = tiny_models.abstract_params(config)
    assert_same_bits(restored, open_checkpoint(source).load(one_device))


def test_what_is_in_the_directory(converted):
    names = {path.name for path in converted.iterdir()}
    assert names == {"params", "model.json", "tokenizer.json", "config.json"}
    model = json.loads((converted / "model.json").read_text())
    assert model["source"] == "huggingface"
    assert open_checkpoint(converted).tokenizer_path == converted


@pytest.mark.parametrize("make", [tiny_models.llama, tiny_models.gemma3])
def test_the_decoder_asks_for_the_same_tree(make, tmp_path):
    make().save(tmp_path)
    config = open_checkpoint(tmp_path).config
    _, state = abstract_decoder(config, np.dtype("float32"))
    asked = {path: tuple(leaf.shape) for path, leaf in flatten(nnx.to_pure_dict(state)).items()}
    assert asked == parameter_shapes(config)


def test_tree_that_does_not_fit(converted):
    checkpoint = open_checkpoint(converted)
    asked = tiny_models.abstract_params(checkpoint.config)
    asked["embedder"] = {"other": asked["embedder"]["table"]}
    with pytest.raises(CheckpointError, match="embedder/other is not in the checkpoint; embedder/table is in"):
        checkpoint.load(asked)


def test_interrupted_conversion_leaves_nothing_that_opens(source, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(canonical.ocp.partial, "finalize", interrupt)
    with pytest.raises(KeyboardInterrupt):
        convert(str(source), str(tmp_path / "out"))
    monkeypatch.undo()
    assert not (tmp_path / "out").exists()
    for folder in tmp_path.iterdir():
        with pytest.raises(CheckpointError, match="unfinished"):
            open_checkpoint(folder)
    convert(str(source), str(tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    open_checkpoint(tmp_path / "out")


def test_relative_output(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    convert(str(source), "below/out")
    asked = tiny_models.abstract_params(open_checkpoint(source).config)
    assert_same_bits(open_checkpoint("below/out").load(asked), open_checkpoint(source).load(asked))


def test_existing_output(source, tmp_path):
    out = tmp_path / "out"
    convert(str(source), str(out))
    with pytest.raises(CheckpointError, match="out exists; pass --overwrite"):
        convert(str(source), str(out))
    convert(str(source), str(out), dtype="bfloat16", overwrite=True)
    assert json.loads((out / "model.json").read_text())["dtype"] == "bfloat16"
    with pytest.raises(CheckpointError, match="is converted already"):
        convert(str(out), str(tmp_path / "again"))
    (out / "model.json").rename(out / "precious.json")
    with pytest.raises(CheckpointError, match="no converted directory, so it is not overwritten"):
        convert(str(source), str(out), overwrite=True)


def test_damaged_directory(converted, tmp_path):
    copy = shutil.copytree(converted, tmp_path / "copy")
    model = json.loads((copy / "model.json").read_text())
    scaled_by_text = {**model["config"]["layer_kinds"][0], "rotary_scaling": "yarn"}
    for damage, message in (
        ({"format": 2}, "model.json has format 2, this version reads 1$"),
        ({"config": {**model["config"], "wings": 2}}, "model.json cannot be read: .*wings"),
        (
            {"config": {**model["config"], "layer_kinds": [scaled_by_text]}},
            "model.json cannot be read: .*decoder config",
        ),
        ({"config": []}, "model.json cannot be read: .*not a decoder config"),
        ({"source": "DEEP"}, r"model.json cannot be read: not readable as JSON: nested too deeply$"),
    ):
        text = json.dumps({**model, **damage}).replace('"DEEP"', "[" * 100_000 + "]" * 100_000)
        (copy / "model.json").write_text(text)
        with pytest.raises(CheckpointError, match=message):
            open_checkpoint(copy)
    (copy / "model.json").write_text(json.dumps(model))
    shutil.rmtree(copy / "params")
    with pytest.raises(CheckpointError, match=r"has a model.json, but no params/"):
        open_checkpoint(copy)


@pytest.mark.parametrize("damage", ["truncated", "removed"])
def test_damaged_parameters(damage, converted, tmp_path):
    copy = shutil.copytree(converted, tmp_path / "copy")
    largest = max(
        (path for path in (copy / "params").rglob("*") if path.is_file()), key=lambda path: path.stat().st_size
    )
    if damage == "truncated":
        os.truncate(largest, largest.stat().st_size // 2)
    else:
        shutil.rmtree(largest.parent)
    checkpoint = open_checkpoint(copy)
    with pytest.raises(CheckpointError, match=r"params is damaged; convert the checkpoint again: ") as raised:
        checkpoint.load(tiny_models.abstract_params(checkpoint.config))
    assert "\n" not in str(raised.value)


def test_one_line_errors_and_help():
    command = [sys.executable, "-m", "brb_jax.convert"]
    failed = subprocess.run([*command, "--source=/nowhere/model", "--out=x"], capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr == "convert: /nowhere/model does not exist; / holds " + failed.stderr.split(" holds ")[1]
    assert failed.stderr.count("\n") == 1
    helped = subprocess.run([*command, "--help"], capture_output=True, text=True)
    assert "--source" in helped.stdout and "--[no]overwrite" in helped.stdout


def test_importing_touches_no_backend():
    code = (
        "import brb_jax.checkpoints, brb_jax.convert, brb_jax.checkpoints.demo, brb_jax.models.families\n"
        "from jax._src import xla_bridge; assert not xla_bridge._backends"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
