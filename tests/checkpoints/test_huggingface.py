"""Hugging Face directories: every parameter in its place, or an error that names the file or tensor."""

import json
import os
import pickle
import re
import shutil

import jax
import ml_dtypes
import numpy as np
import pytest
import tiny_models
from safetensors.numpy import load_file, save_file

from brb_jax.checkpoints import CheckpointError, open_checkpoint
from brb_jax.checkpoints.streaming import flatten

MODELS = {
    "llama": tiny_models.llama,
    "llama_tied": lambda: tiny_models.llama(tie_word_embeddings=True),
    "llama_biases": lambda: tiny_models.llama(attention_bias=True, mlp_bias=True),
    "gemma3": tiny_models.gemma3,
    "gemma3_untied": lambda: tiny_models.gemma3(tie_word_embeddings=False, attention_bias=True),
}


# Finite bfloat16 values, denormals and both zeros among them.
BITS = (np.arange(50 * 24, dtype=np.uint16).reshape(50, 24) * 54) % 0x7F80


@pytest.fixture
def llama(tmp_path):
    """A folder with an untied Llama."""
    tiny_models.llama().save(tmp_path / "model")
    return tmp_path / "model"


def load(folder, dtype=np.float32):
    checkpoint = open_checkpoint(folder)
    return flatten(checkpoint.load(tiny_models.abstract_params(checkpoint.config, dtype)))


def rewrite(folder, change):
    """Applies `change` to the dict of stored tensors."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_is_the_transposed_tensor(name, tmp_path):
    model = MODELS[name]()
    model.save(tmp_path)
    params = load(tmp_path)
    expected = tiny_models.canonical(model)
    assert params.keys() == expected.keys()
    for path, value in expected.items():
        np.testing.assert_array_equal(params[path], value, err_msg=path)


def test_shards(tmp_path):
    model = tiny_models.llama()
    model.save(tmp_path, shards=3)
    assert len(list(tmp_path.glob("*.safetensors"))) == 3
    params = load(tmp_path)
    for path, value in tiny_models.canonical(model).items():
        np.testing.assert_array_equal(params[path], value, err_msg=path)


def test_bfloat16_is_bit_exact(tmp_path):
    model = tiny_models.llama()
    model.tensors["model.embed_tokens.weight"] = BITS.view(ml_dtypes.bfloat16)
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path)["embedder/table"].view(np.uint32), BITS.astype(np.uint32) << 16)
    table = load(tmp_path, ml_dtypes.bfloat16)["embedder/table"]
    np.testing.assert_array_equal(np.asarray(table).view(np.uint16), BITS)


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (0x3F808000, 0x3F80),  # Halfway between two: to the even one, below …
        (0x3F818000, 0x3F82),  # … or above.
        (0x3F808001, 0x3F81),
        (0x3F807FFF, 0x3F80),
    ],
)
def test_casts_round_to_nearest_even(value, bits, tmp_path):
    model = tiny_models.llama()
    model.tensors["model.norm.weight"] = np.full(24, value, np.uint32).view(np.float32)
    model.save(tmp_path)
    scale = load(tmp_path, ml_dtypes.bfloat16)["final_norm/scale"]
    np.testing.assert_array_equal(np.asarray(scale).view(np.uint16), np.full(24, bits, np.uint16))


def test_each_parameter_goes_to_its_sharding(tmp_path):
    model = tiny_models.llama()
    model.save(tmp_path)
    mesh = jax.make_mesh((8,), ("fsdp",), axis_types=(jax.sharding.AxisType.Auto,))
    checkpoint = open_checkpoint(tmp_path)
    asked = tiny_models.abstract_params(checkpoint.config)
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, "fsdp"))
    asked["layers"]["mlp"]["up"]["kernel"] = jax.ShapeDtypeStruct((3, 24, 40), np.float32, sharding=sharding)
    up = checkpoint.load(asked)["layers"]["mlp"]["up"]["kernel"]
    assert up.sharding == sharding
    assert {shard.data.shape for shard in up.addressable_shards} == {(3, 3, 40)}
    np.testing.assert_array_equal(up, tiny_models.canonical(model)["layers/mlp/up/kernel"])


def test_text_part_of_a_checkpoint_with_images(tmp_path):
    model = tiny_models.gemma3()
    model.save(tmp_path)
    text = json.loads((tmp_path / "config.json").read_text())
    outer = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3", "text_config": text}
    (tmp_path / "config.json").write_text(json.dumps({**outer, "vision_config": {"hidden_size": 8}}))

    def nest_names(tensors):
        for name in list(tensors):
            tensors[f"language_model.{name}"] = tensors.pop(name)
        tensors["vision_tower.vision_model.embeddings.patch_embedding.weight"] = np.zeros((2, 2), np.float32)
        tensors["multi_modal_projector.mm_input_projection_weight"] = np.zeros((2, 2), np.float32)

    rewrite(tmp_path, nest_names)
    for path, value in tiny_models.canonical(model).items():
        np.testing.assert_array_equal(load(tmp_path)[path], value, err_msg=path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.pop("model.layers.1.mlp.up_proj.weight"),
            r"model.layers.1.mlp.up_proj.weight \(layers/mlp/up/kernel\) is missing",
        ),
        (lambda t: t.pop("lm_head.weight"), r"lm_head.weight \(unembedding/kernel\) is missing"),
        (
            lambda t: t.update({"model.layers.3.mlp.up_proj.weight": np.zeros((40, 24), np.float32)}),
            r"model.layers.3.mlp.up_proj.weight is in no part",
        ),
        (
            lambda t: t.update({"model.layers.0.self_attn.q_proj.weight": np.zeros((24, 32), np.float32)}),
            r"q_proj.weight \(layers/attention/query/kernel\) has shape \(24, 32\), the config asks for \(32, 24\)",
        ),
        (
            lambda t: t.update({"model.norm.weight": np.zeros(24, np.int8)}),
            r"model.norm.weight is stored as I8",
        ),
    ],
)
def test_tensors_that_do_not_match_the_config(change, message, llama):
    rewrite(llama, change)
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(llama)


def test_twelve_layers_where_the_config_says_sixteen(llama):
    config = json.loads((llama / "config.json").read_text())
    (llama / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 5}))
    with pytest.raises(CheckpointError, match=r"model.layers.3.self_attn.q_proj.weight .* is missing.*and 8 more"):
        open_checkpoint(llama)


def test_old_rotary_buffers_are_no_parameters(llama):
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    rewrite(llama, lambda tensors: tensors.update({name: np.ones(4, np.float32)}))
    open_checkpoint(llama)


def test_tied_checkpoint_with_an_output_matrix(tmp_path):
    tiny_models.llama(tie_word_embeddings=True).save(tmp_path)

    def same(tensors):
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].copy()

    def other(tensors):
        tensors["lm_head.weight"][3, 3] += 1

    rewrite(tmp_path, same)
    assert "unembedding/kernel" not in load(tmp_path)
    rewrite(tmp_path, other)
    with pytest.raises(CheckpointError, match=r"lm_head.weight differs from the embedding table"):
        open_checkpoint(tmp_path)


def test_tree_that_does_not_fit_the_model(llama, monkeypatch):
    checkpoint = open_checkpoint(llama)
    monkeypatch.setattr(type(checkpoint.tensors), "read", lambda self, name: pytest.fail(f"read {name}"))
    asked = tiny_models.abstract_params(checkpoint.config)
    leaf = asked["final_norm"]["scale"]
    asked["final_norm"]["scale"] = jax.ShapeDtypeStruct((25,), np.float32, sharding=leaf.sharding)
    with pytest.raises(CheckpointError, match=r"final_norm/scale has shape \(24,\) in the checkpoint and \(25,\)"):
        checkpoint.load(asked)
    asked["final_norm"] = {"bias": leaf}
    with pytest.raises(CheckpointError, match=r"final_norm/bias is not in the checkpoint; final_norm/scale is in"):
        checkpoint.load(asked)
    asked["final_norm"] = {"scale": jax.ShapeDtypeStruct((24,), np.float32)}
    with pytest.raises(CheckpointError, match="final_norm/scale was asked for without a sharding"):
        checkpoint.load(asked)


def test_missing_shard(tmp_path):
    tiny_models.llama().save(tmp_path, shards=3)
    shard = sorted(tmp_path.glob("*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(CheckpointError, match=f"{shard.name} is missing"):
        open_checkpoint(tmp_path)
    shard.mkdir()
    with pytest.raises(CheckpointError, match=f"{shard.name} is a folder"):
        open_checkpoint(tmp_path)


def test_index_that_misplaces_a_tensor(tmp_path):
    tiny_models.llama().save(tmp_path, shards=3)
    path = tmp_path / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"]["model.other.weight"] = index["weight_map"]["model.norm.weight"]
    path.write_text(json.dumps(index))
    with pytest.raises(CheckpointError, match=r"places model.other.weight in .* but it is in no file"):
        open_checkpoint(tmp_path)
    path.write_text("[]")
    with pytest.raises(CheckpointError, match=r"model.safetensors.index.json holds a list"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_truncated_file(keep, llama):
    path = llama / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match=r"model.safetensors is not a whole safetensors file"):
        open_checkpoint(llama)


def test_folder_named_like_a_file(llama):
    (llama / "model.safetensors").unlink()
    (llama / "model.safetensors").mkdir()
    with pytest.raises(CheckpointError, match=r"model.safetensors is a folder"):
        open_checkpoint(llama)


def test_several_files_without_an_index(llama):
    shutil.copy(llama / "model.safetensors", llama / "consolidated.safetensors")
    open_checkpoint(llama)  # `model.safetensors` is the one transformers reads.
    (llama / "model.safetensors").rename(llama / "other.safetensors")
    with pytest.raises(CheckpointError, match=r"2 safetensors files, but no model.safetensors.index.json"):
        open_checkpoint(llama)


class Trap:
    """What a pickle can do: whoever loads it makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        (["pytorch_model.bin"], "pytorch_model.bin"),
        (["model.pt"], "model.pt"),
        (["model.pth"], "model.pth"),
        (
            [f"pytorch_model-0000{i}-of-00004.bin" for i in range(1, 5)] + ["pytorch_model.bin.index.json"],
            "pytorch_model-00001-of-00004.bin, pytorch_model-00002-of-00004.bin, "
            "pytorch_model-00003-of-00004.bin and 1 more",
        ),
    ],
)
def test_pickles_are_refused(names, listed, llama, tmp_path):
    (llama / "model.safetensors").rename(tmp_path / "model.safetensors")
    for name in names:
        (llama / name).write_bytes(pickle.dumps(Trap(tmp_path / "loaded")))
    for path, listed_there in ((llama, listed), (llama / names[0], names[0])):
        expected = re.escape(f"{listed_there}: pickles are never loaded, because they can run any code; if you trust")
        with pytest.raises(CheckpointError, match=rf"/model: {expected} them, save.*save_pretrained\('{llama}'\)$"):
            open_checkpoint(path)
    assert not (tmp_path / "loaded").exists()
    (tmp_path / "model.safetensors").rename(llama / "model.safetensors")
    open_checkpoint(llama)


def test_metas_own_form_is_refused(tmp_path):
    (tmp_path / "params.json").write_text("{}")
    for i in range(2):
        (tmp_path / f"consolidated.0{i}.pth").write_bytes(pickle.dumps(Trap(tmp_path / "loaded")))
    for path, listed in (
        (tmp_path, "consolidated.00.pth, consolidated.01.pth"),
        (tmp_path / "consolidated.00.pth", "consolidated.00.pth"),
    ):
        with pytest.raises(
            CheckpointError, match=rf"{listed}: pickles are never loaded.*Meta's own form.*safetensors$"
        ):
            open_checkpoint(path)
    assert not (tmp_path / "loaded").exists()


def test_nothing_but_a_config(llama):
    (llama / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"there is a config\.json, but no safetensors file$"):
        open_checkpoint(llama)


def test_config_that_cannot_be_read(llama):
    (llama / "config.json").write_text("[1]")
    with pytest.raises(CheckpointError, match=r"config.json holds a list"):
        open_checkpoint(llama)
    (llama / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config.json cannot be read"):
        open_checkpoint(llama)


def test_fingerprint_follows_the_weights_not_the_place(llama, tmp_path):
    first = open_checkpoint(llama).fingerprint
    copied = shutil.copytree(llama, tmp_path / "elsewhere")
    assert open_checkpoint(copied).fingerprint == first

    def train(tensors):
        tensors["model.norm.weight"] += 1e-3

    rewrite(copied, train)
    assert open_checkpoint(copied).fingerprint != first


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json"])
@pytest.mark.parametrize("depth", [201, 100_000])
def test_json_that_is_nested_too_deeply(name, depth, llama):
    (llama / "model.safetensors").unlink()
    (llama / name).write_text('{"weight_map": ' + "[" * depth + "]" * depth + "}")
    with pytest.raises(CheckpointError, match=rf"{name} cannot be read: not readable as JSON: nested too deeply$"):
        open_checkpoint(llama)


@pytest.mark.parametrize("places", [{"lm_head.weight": ["a.safetensors"]}, {"lm_head.weight": 3}, ["ab"], None])
def test_index_of_something_else_than_names(places, llama):
    (llama / "model.safetensors").unlink()
    (llama / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    with pytest.raises(CheckpointError, match="weight_map is no object of file names"):
        open_checkpoint(llama)
