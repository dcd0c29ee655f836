"""Checkpoints of Tunix, Gemma and EasyLM: `fixtures/*/write.py` says how they and the scores beside them were made."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import orbax.checkpoint as ocp
import pytest
from decoder_logits import logits
from etils import epath
from flax import traverse_util
from scipy.special import log_softmax

from brb_jax.checkpoints import CheckpointError, open_checkpoint, open_framework, streaming
from brb_jax.checkpoints.frameworks import FRAMEWORKS
from brb_jax.checkpoints.msgpack_arrays import MsgpackArrays
from brb_jax.checkpoints.orbax_tree import OrbaxArrays, find_tree, shapes
from brb_jax.checkpoints.streaming import parameter_shapes, read_parameter
from brb_jax.convert import convert

FIXTURES = Path(__file__).parent / "fixtures"
TUNIX, GEMMA, EASYLM = FIXTURES / "tunix", FIXTURES / "gemma", FIXTURES / "easylm"
ORBAX = {
    TUNIX / "llama/checkpoint": "Tunix",
    TUNIX / "qwen2/checkpoint": "Tunix",
    TUNIX / "qwen3/checkpoint": "Tunix",
    TUNIX / "qwen3_moe/checkpoint": "Tunix",
    TUNIX / "gemma/checkpoint": "Tunix",
    TUNIX / "gemma2/checkpoint": "Tunix",
    TUNIX / "gemma3/checkpoint": "Tunix",
    GEMMA / "nested_gemma/checkpoint": "Gemma (nested)",
    GEMMA / "flat_gemma2/checkpoint": "Gemma (flat)",
    GEMMA / "flat_gemma3_with_images/checkpoint": "Gemma (flat)",
    GEMMA / "stacked_gemma3/checkpoint": "Gemma (stacked)",
    GEMMA / "kauldron_gemma2/checkpoint": "Gemma (Kauldron)",
}
MSGPACK = dict.fromkeys(
    [EASYLM / "streaming_params", EASYLM / "streaming_train_state", EASYLM / "params.msgpack"], "EasyLM"
)
ALL = ORBAX | MSGPACK


def name(source):
    return str(source.relative_to(FIXTURES))


@pytest.mark.parametrize("source", ALL, ids=name)
def test_scores(source, tmp_path):
    """Every token's log-probability, by the framework's own forward pass."""
    said = convert(str(source), str(tmp_path / "converted"), hf_config=str(source.parent))
    assert f"in float32, from {ALL[source]} (sha256:" in said
    checkpoint = open_checkpoint(tmp_path / "converted")
    assert checkpoint.source == f"converted from {ALL[source]}"
    scores = json.loads((source.parent / "scores.json").read_text())
    tokens = np.array(scores["tokens"])
    log_probs = log_softmax(logits(checkpoint, tokens).astype(np.float64), axis=-1)
    np.testing.assert_allclose(log_probs[range(len(tokens) - 1), tokens[1:]], scores["log_probs"], rtol=0, atol=1e-4)


@pytest.mark.parametrize("source", ALL, ids=name)
def test_recognised_by_one(source):
    arrays = MsgpackArrays(epath.Path(source)) if source in MSGPACK else OrbaxArrays(find_tree(source))
    assert [framework.name for framework in FRAMEWORKS if framework.recognises(arrays.shapes)] == [ALL[source]]


@pytest.mark.parametrize(
    "path",
    [
        "params/params/decoder/layers_0/self_attention/query/kernel",
        "params/params/decoder/layers/self_attention/query/kernel",
        "decoder/layers_0/self_attention/query/kernel/value",
        "base/decoder/layers/0/self_attention/query/kernel/value",
    ],
)
def test_a_tree_of_maxtext_is_none_of_these(path):
    ours = {"Tunix", "EasyLM", "Gemma (flat)", "Gemma (stacked)", "Gemma (nested)", "Gemma (Kauldron)"}
    assert not [f.name for f in FRAMEWORKS if f.name in ours and f.recognises({path})]


def test_the_optimizer_state_of_tunix_is_not_read(tmp_path):
    """What it consists of may even be gone."""
    shutil.copytree(TUNIX / "llama/checkpoint", tmp_path / "checkpoint")
    (step,) = (tmp_path / "checkpoint").iterdir()
    assert shapes(find_tree(step / "optimizer_state"))
    for below in ("d", "ocdbt.process_0"):
        shutil.rmtree(step / "optimizer_state" / below)
    convert(str(tmp_path / "checkpoint"), str(tmp_path / "converted"), hf_config=str(TUNIX / "llama"))


@pytest.mark.parametrize(
    ("source", "reader"),
    [(GEMMA / "kauldron_gemma2/checkpoint", OrbaxArrays), (EASYLM / "streaming_train_state", MsgpackArrays)],
    ids=["Kauldron", "EasyLM"],
)
def test_of_a_train_state_parameters_alone_are_read(source, reader, tmp_path, monkeypatch):
    read, original = [], reader.read
    monkeypatch.setattr(reader, "read", lambda self, path, *block: read.append(path) or original(self, path, *block))
    convert(str(source), str(tmp_path / "converted"), hf_config=str(source.parent))
    assert read
    assert all(path.startswith("params/") for path in read)


def save(folder, leaves):
    """A tree with these leaves, by path."""
    tree = traverse_util.unflatten_dict({tuple(path.split("/")): np.asarray(leaf) for path, leaf in leaves.items()})
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder.absolute(), tree)
    return folder


def leaves_of(source):
    arrays = OrbaxArrays(find_tree(source))
    return {path: arrays.read(path) for path in arrays.shapes}


def opening_error(source, hf_config):
    with pytest.raises(CheckpointError) as caught:
        open_framework(source, str(hf_config))
    return str(caught.value)


@pytest.mark.parametrize(
    ("fixture", "extra"),
    [
        (TUNIX / "llama", "layers/0/attn/q_proj/w_lora_a/value"),
        (TUNIX / "gemma", "score/kernel/value"),
        (GEMMA / "nested_gemma", "layer_1/attn/qkv_einsum/lora/a"),
        (GEMMA / "nested_gemma", "layer_0/skip_scale"),
    ],
)
def test_a_leaf_that_no_decoder_has(fixture, extra, tmp_path):
    changed = save(tmp_path / "changed", {**leaves_of(fixture / "checkpoint"), extra: np.ones((2, 3))})
    said = opening_error(changed, fixture)
    assert said.endswith(f"{extra} is in no part of a {fixture.name.split('_')[-1]} decoder of this config")
    assert "\n" not in said


def test_a_leaf_that_is_missing(tmp_path):
    leaves = leaves_of(TUNIX / "qwen3/checkpoint")
    (gone,) = (path for path in leaves if path.startswith("layers/1/attn/k_norm/"))
    del leaves[gone]
    said = opening_error(save(tmp_path / "changed", leaves), TUNIX / "qwen3")
    assert said.endswith("layers/1/attn/k_norm/w (layers/attention/key_norm/scale) is missing")


def test_an_unknown_tree(tmp_path):
    source = save(tmp_path / "unknown", {"encoder/block_0/kernel": np.ones((2, 3)), "encoder/bias": np.ones(4)})
    said = opening_error(source, TUNIX / "llama")
    assert "its tree is of no framework that is known (MaxText, Tunix, " in said
    assert said.splitlines()[1:] == ["  encoder/bias (4,)", "  encoder/block_0/kernel (2, 3)"]


def changed_config(folder, fixture, **changes):
    folder.mkdir()
    config = {**json.loads((fixture / "config.json").read_text()), **changes}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("source", "changes", "expected"),
    [
        (
            TUNIX / "llama/checkpoint",
            {"num_hidden_layers": 3},
            r"layers/2/attn/q_proj/w \(layers/attention/query/kernel\) is missing",
        ),
        (
            TUNIX / "gemma3/checkpoint",
            {"intermediate_size": 32},
            r"layers/0/mlp/gate_proj/kernel/?\w* \(layers/mlp/gate/kernel\) has shape \(16, 24\), "
            r"the config asks for \(16, 32\)",
        ),
        (
            GEMMA / "stacked_gemma3/checkpoint",
            {"num_hidden_layers": 6},
            r"attention_type_2/attn/q_einsum/w \(layers/attention/query/kernel\) has shape \(1, 4, 16, 6\), "
            r"the config asks for \(2, 4, 16, 6\)",
        ),
        (
            EASYLM / "streaming_params",
            {"vocab_size": 1000},
            r"transformer/wte/embedding \(embedder/table\) has shape \(48, 24\), the config asks for \(1000, 24\)",
        ),
        (EASYLM / "streaming_params", {"tie_word_embeddings": True}, "set tie_word_embeddings to false in a copy of"),
        (
            EASYLM / "streaming_params",
            {"attention_bias": True},
            r"EasyLM has no models like that of the config: .*layers/attention/out/bias",
        ),
        (GEMMA / "nested_gemma/checkpoint", {"intermediate_size": 16}, "cannot be told which axis of gating_einsum"),
    ],
)
def test_a_config_of_other_sizes(source, changes, expected, tmp_path):
    said = opening_error(source, changed_config(tmp_path / "config", source.parent, **changes))
    assert re.search(expected, said)
    assert "\n" not in said


@pytest.mark.parametrize(
    ("source", "config"),
    [
        (TUNIX / "llama/checkpoint", GEMMA / "nested_gemma"),
        (GEMMA / "nested_gemma/checkpoint", EASYLM),
        (EASYLM / "streaming_params", TUNIX / "qwen3"),
    ],
)
def test_a_config_of_another_family(source, config):
    said = opening_error(source, config)
    assert "\n" not in said
    assert str(source) in said


def test_no_such_checkpoint():
    said = opening_error(TUNIX / "lama/checkpoint", TUNIX / "llama")
    assert re.search(
        r"tunix/lama/checkpoint does not exist; .*/fixtures/tunix holds gemma/, gemma2/, gemma3/, llama/", said
    )


@pytest.mark.parametrize("rows", [40, 60])
def test_a_vocabulary_padded_in_another_way(rows, tmp_path):
    """The checkpoint's 48 rows count, not the config's."""
    config = changed_config(tmp_path / "config", EASYLM, vocab_size=rows)
    assert open_framework(EASYLM / "params.msgpack", str(config)).config.vocab_size == 48


@pytest.mark.parametrize("source", [TUNIX / "llama/checkpoint", EASYLM / "streaming_params"], ids=name)
def test_evaluated_without_converting(source):
    with pytest.raises(CheckpointError, match=r"without config and tokenizer; convert it: .* --hf_config=REPOSITORY "):
        open_checkpoint(source)


@pytest.mark.parametrize("source", ORBAX, ids=name)
def test_read_in_blocks(source, monkeypatch):
    """A parameter put together from the least blocks there can be is that of whole arrays."""
    checkpoint = open_framework(source, str(source.parent))
    paths = parameter_shapes(checkpoint.config)
    whole = {path: read_parameter(checkpoint, path, np.dtype(np.float32)) for path in paths}
    monkeypatch.setattr(OrbaxArrays, "chunk_shape", lambda self, path: (1,) * len(self.shapes[path]))
    monkeypatch.setattr(streaming, "_BLOCK_SIZE", 50)
    for path in paths:
        np.testing.assert_array_equal(read_parameter(checkpoint, path, np.dtype(np.float32)), whole[path])
