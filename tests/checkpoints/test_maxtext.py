"""Checkpoints that MaxText wrote (`fixtures/maxtext/write.py`), held to the scores of its own forward pass."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import orbax.checkpoint as ocp
import pytest
from decoder_logits import logits
from flax import traverse_util
from scipy.special import log_softmax
from transformers import GPT2Config

from brb_jax.checkpoints import CheckpointError, open_checkpoint, open_framework
from brb_jax.checkpoints.orbax_tree import OrbaxArrays, find_tree
from brb_jax.convert import convert

FIXTURES = Path(__file__).parent / "fixtures" / "maxtext"
# What neither tree nor Hugging Face config tells; MaxText's own configs do, as `write.py` sets them.
SETTINGS = {
    "llama-3.1-train-state": {"rope_type": "llama3.1"},
    "llama-unscanned": {"rope_type": "default"},
    "llama-tied": {"rope_type": "default", "normalize_embedding_logits": "true"},
    "qwen3-tied-unscanned": {"normalize_embedding_logits": "false"},
}
NAMES = sorted(folder.name for folder in FIXTURES.iterdir() if folder.is_dir())


def opened(name, folder=None):
    return open_framework(folder or FIXTURES / name, str(FIXTURES / name), SETTINGS.get(name, {}))


def logprobs(checkpoint, name):
    """What we score, and what MaxText did."""
    scores = json.loads((FIXTURES / name / "scores.json").read_text())
    tokens = np.array(scores["tokens"])
    normalized = log_softmax(logits(checkpoint, tokens).astype(np.float64), axis=-1)
    return normalized[np.arange(len(tokens) - 1), tokens[1:]], np.array(scores["logprobs"])


@pytest.fixture
def tree():
    """The arrays of a fixture's tree, by path."""

    def read(name):
        arrays = OrbaxArrays(find_tree(FIXTURES / name))
        return {path: arrays.read(path) for path in arrays.shapes}

    return read


def save(leaves, folder, ocdbt=True):
    """Writes a tree as older versions of MaxText do: Orbax's first API."""
    handler = ocp.PyTreeCheckpointHandler(use_ocdbt=ocdbt)
    args = ocp.args.PyTreeSave(traverse_util.unflatten_dict(leaves, sep="/"))
    ocp.Checkpointer(handler).save(folder, args)


@pytest.mark.parametrize("name", NAMES)
def test_scores(name):
    checkpoint = opened(name)
    assert checkpoint.source.startswith("MaxText")
    ours, theirs = logprobs(checkpoint, name)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


def test_every_family_that_is_read_has_a_fixture():
    families = {opened(name).config.family for name in NAMES}
    assert families == {
        *("llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma", "gemma2", "gemma3", "olmo3"),
        *("deepseek_v2", "deepseek_v3", "gpt_oss"),
    }


@pytest.mark.parametrize("path", ["", "7", "7/items"])
def test_command(path, tmp_path):
    """The run's folder, a step's or the tree's; the record says where it came from."""
    folder = FIXTURES / "llama-3.1-train-state"
    command = [sys.executable, "-m", "brb_jax.convert", f"--source={folder / path}", f"--hf_config={folder}"]
    command += [f"--out={tmp_path / 'out'}", "--maxtext_settings=rope_type=llama3.1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "a llama decoder with 3 layers" in done.stdout and "from MaxText (rope_type=llama3.1)" in done.stdout
    checkpoint = open_checkpoint(tmp_path / "out")
    assert checkpoint.source == "converted from MaxText (rope_type=llama3.1)"
    ours, theirs = logprobs(checkpoint, "llama-3.1-train-state")
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


def test_the_optimizer_is_never_read(tree, tmp_path):
    """Its arrays are there, as files of their own, but none of them can be decoded."""
    leaves = tree("qwen3-train-state")
    save(leaves, tmp_path / "tree", ocdbt=False)
    damaged = 0
    for folder in (tmp_path / "tree").glob("opt_state.*"):
        for file in folder.rglob("*"):
            if file.is_file() and not file.name.startswith((".z", "zarr")):
                file.write_bytes(b"not an array")
                damaged += 1
    assert damaged > 20
    with pytest.raises(Exception, match=r"(?i)blosc|zstd|decod|inval"):
        OrbaxArrays(find_tree(tmp_path / "tree")).read(next(path for path in leaves if path.startswith("opt_state")))
    ours, theirs = logprobs(opened("qwen3-train-state", tmp_path / "tree"), "qwen3-train-state")
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-4)


@pytest.mark.parametrize("item", ["model_params", "items", "default"])
@pytest.mark.parametrize("root", ["", "base/", "params/", "params/params/"])
def test_parameters_alone(root, item, tree, tmp_path):
    """As NNX trainers save them: each leaf a `value`, below one of several roots."""
    leaves = {path: leaf for path, leaf in tree("mistral").items() if path.startswith("params/params/")}
    plain = {f"{root}{path.removeprefix('params/params/')}/value": leaf for path, leaf in leaves.items()}
    save(plain, tmp_path / "3" / item)
    original, renamed = opened("mistral"), opened("mistral", tmp_path)
    assert renamed.tensors.shapes == original.tensors.shapes
    name = "decoder/layers/self_attention/out/kernel"
    np.testing.assert_array_equal(renamed.tensors.read(name), original.tensors.read(name))


def test_a_router_bias_that_is_no_parameter(tree, tmp_path):
    """MaxText keeps DeepSeek's in a collection of its own, or beside the parameters: once each in its versions."""
    leaves = tree("deepseek3-unscanned")
    biases = {path: leaf for path, leaf in leaves.items() if path.endswith("gate/bias")}
    assert len(biases) == 2
    rest = {path: leaf for path, leaf in leaves.items() if path not in biases and not path.startswith("nnx_aux")}
    for i, root in enumerate(("params/params", "params/MoEBiasVar", "nnx_aux/model")):
        moved = {f"{root}/decoder/{path.partition('decoder/')[2]}": leaf for path, leaf in biases.items()}
        save(rest | moved, tmp_path / str(i))
        checkpoint = opened("deepseek3-unscanned", tmp_path / str(i))
        name = "decoder/moe_layers_1/DeepSeekMoeBlock_0/MoeBlock_0/gate/bias"
        (bias,) = (leaf for path, leaf in biases.items() if path.endswith(name))
        np.testing.assert_array_equal(checkpoint.tensors.read(name), bias)


def test_images_and_the_token_after_the_next_are_left_out(tree, tmp_path):
    leaves = tree("mistral")
    others = ("vision_encoder/Gemma3VisionEncoderLayer_0/pos_embedding", "mtp_block/mtp_layer_1/projection/kernel")
    save(leaves | {f"params/params/{path}": np.ones(3, np.float32) for path in others}, tmp_path / "tree")
    assert opened("mistral", tmp_path / "tree").tensors.shapes == opened("mistral").tensors.shapes


def test_leaves_of_no_decoder_are_refused_by_name(tree, tmp_path):
    leaves = tree("mistral")
    save(leaves | {"params/params/decoder/layers/mlp/wi_0/lora_a": np.ones((4, 2), np.float32)}, tmp_path / "tree")
    with pytest.raises(
        CheckpointError, match=r"params/params/decoder/layers/mlp/wi_0/lora_a is in no part of a mistral"
    ):
        opened("mistral", tmp_path / "tree")


def test_leaves_that_are_missing_are_named(tree, tmp_path):
    leaves = tree("gemma3")
    gone = "params/params/decoder/layers_remainder/layers_1/mlp/wo/kernel"
    save({path: leaf for path, leaf in leaves.items() if path != gone}, tmp_path / "tree")
    with pytest.raises(
        CheckpointError, match=r"decoder/layers_remainder/layers_1/mlp/wo/kernel \(layers/mlp/down/kernel\) is missing"
    ):
        opened("gemma3", tmp_path / "tree")


def test_two_models_in_one_tree(tree, tmp_path):
    leaves = tree("mistral")
    plain = {path.replace("params/params/", "base/"): leaf for path, leaf in leaves.items() if "params/params/" in path}
    save(leaves | plain, tmp_path / "tree")
    with pytest.raises(CheckpointError, match=r"are both decoder/\S+; name the directory of one of the two trees"):
        opened("mistral", tmp_path / "tree")


def test_a_config_of_other_sizes(tmp_path):
    shutil.copytree(FIXTURES / "mistral", tmp_path / "hf")
    config = json.loads((tmp_path / "hf/config.json").read_text())
    (tmp_path / "hf/config.json").write_text(json.dumps({**config, "num_hidden_layers": 3, "intermediate_size": 28}))
    with pytest.raises(CheckpointError) as refused:
        open_framework(FIXTURES / "mistral", str(tmp_path / "hf"))
    (line,) = str(refused.value).splitlines()
    kernel = "params/params/decoder/layers/mlp/wi_0/kernel (layers/mlp/gate/kernel)"
    assert f"{kernel} has shape (20, 2, 24), the config asks for (20, 3, 28)" in line


def test_a_config_of_a_family_that_maxtext_does_not_have(tmp_path):
    (tmp_path / "config.json").write_text(GPT2Config().to_json_string())
    with pytest.raises(CheckpointError, match=r"MaxText's layout of a gpt2 decoder is not known here"):
        open_framework(FIXTURES / "mistral", str(tmp_path))


def test_another_tree(tmp_path):
    save({"encoder/layer_0/w": np.ones((2, 3), np.float32), "head": np.ones(5, np.float32)}, tmp_path / "tree")
    with pytest.raises(CheckpointError) as refused:
        opened("mistral", tmp_path / "tree")
    assert str(refused.value).splitlines()[1:] == ["  encoder/layer_0/w (2, 3)", "  head (5,)"]
    assert "its tree is of no framework that is known (" in str(refused.value)


def test_as_a_model_it_has_to_be_converted():
    with pytest.raises(
        CheckpointError, match=r"convert it: python -m brb_jax.convert --source=\S+/mistral/7 --hf_config="
    ):
        open_checkpoint(FIXTURES / "mistral" / "7")


def test_an_interrupted_save(tmp_path):
    """The latest finished step counts; a step cut short does not, and does not hide it."""
    steps = tmp_path / "run"
    shutil.copytree(FIXTURES / "mistral/7", steps / "7")
    shutil.copytree(FIXTURES / "mistral/7/items", steps / "9.orbax-checkpoint-tmp-1/items.orbax-checkpoint-tmp-2")
    assert opened("mistral", steps).fingerprint == opened("mistral").fingerprint
    with pytest.raises(CheckpointError, match=r"9.orbax-checkpoint-tmp-1 is an unfinished checkpoint"):
        opened("mistral", steps / "9.orbax-checkpoint-tmp-1")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("llama-unscanned", {}, r"--maxtext_settings=rope_type=llama3.1 if .*--maxtext_settings=rope_type=default$"),
        (
            "llama-tied",
            {"rope_type": "default"},
            r"normalize_embedding_logits=true .*, or --maxtext_settings=normalize",
        ),
        ("qwen3-tied-unscanned", {}, r"--maxtext_settings=normalize_embedding_logits=true if its config had that"),
        ("mistral", {"rope_type": "llama"}, r"rope_type=llama: its values are default, llama3.1, yarn$"),
        (
            "mistral",
            {"rope_type": "yarn"},
            r"MaxText's layout of a mistral decoder with rope_type=yarn is not known here",
        ),
        (
            "mistral",
            {"scan_layers": "true"},
            r"MaxText has no setting 'scan_layers' that counts here, only rope_type, ",
        ),
        ("gpt-oss", {"rope_type": "llama3.1"}, r"MaxText's layout of a gpt_oss decoder with rope_type=llama3.1 is not"),
        (
            "deepseek2",
            {"rope_type": "default"},
            r"pairs do not lie next to each other, but in a deepseek_v2 .* they do$",
        ),
    ],
)
def test_settings(name, settings, message):
    with pytest.raises(CheckpointError, match=message) as refused:
        open_framework(FIXTURES / name, str(FIXTURES / name), settings)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"maxtext_settings": ["rope_type=default"]},
            "--maxtext_settings is for a checkpoint of MaxText's, which needs",
        ),
        ({"maxtext_settings": ["rope_type"], "hf_config": "x"}, "'rope_type' is not of the form rope_type=default"),
    ],
)
def test_settings_of_the_command(arguments, message, tmp_path):
    with pytest.raises(CheckpointError, match=message):
        convert(str(FIXTURES / "mistral"), str(tmp_path / "out"), **arguments)


def test_settings_matter():
    """Another order of rotation, another scale of the logits: either would go unnoticed but for the scores."""
    for name, settings in (
        ("llama-unscanned", {"rope_type": "llama3.1"}),
        ("qwen3-tied-unscanned", {"normalize_embedding_logits": "true"}),
    ):
        checkpoint = open_framework(FIXTURES / name, str(FIXTURES / name), settings)
        ours, theirs = logprobs(checkpoint, name)
        assert np.abs(ours - theirs).max() > 0.01
