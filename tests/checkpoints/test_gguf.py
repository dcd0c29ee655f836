"""GGUF files, written with gguf's own writer the way llama.cpp's converter lays tensors out."""

import struct
import sys

import gguf
import numpy as np
import pytest
import tiny_models

from brb_jax.checkpoints import CheckpointError, open_checkpoint
from brb_jax.checkpoints.streaming import flatten

LLAMA_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
GEMMA_NAMES = {
    **LLAMA_NAMES,
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}


def interleaved(weight, heads):
    """Rows as llama.cpp wants them: within a head of width 2h, row i, then row h + i, for each i below h."""
    rows_per_head = weight.shape[0] // heads
    half = rows_per_head // 2
    order = [head * rows_per_head + side * half + i for head in range(heads) for i in range(half) for side in range(2)]
    return weight[order]


def write(path, model, metadata=(), leave_out=(), quantise=None):
    """Writes a tiny model. `metadata` overrides keys; those set to None are left out."""
    config = model.config
    gemma = config["model_type"] == "gemma3_text"
    arch = "gemma3" if gemma else "llama"
    writer = gguf.GGUFWriter(path, arch)
    keys = {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.key_length": config["head_dim"],
        "rope.dimension_count": config["head_dim"],
        "rope.freq_base": 5000.0,
    }
    if gemma:
        keys |= {"attention.sliding_window": config["sliding_window"], "attention.value_length": config["head_dim"]}
    for key, value in {**keys, **dict(metadata)}.items():
        if isinstance(value, float):
            writer.add_float32(f"{arch}.{key}", value)
        elif isinstance(value, str):
            writer.add_string(f"{arch}.{key}", value)
        elif isinstance(value, list):
            writer.add_array(f"{arch}.{key}", value)
        elif value is not None:
            writer.add_uint32(f"{arch}.{key}", value)
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for name, weight in model.tensors.items():
        stem = name.removesuffix(".weight")
        if stem in whole:
            stored = whole[stem]
        else:
            _, _, layer, part = stem.split(".", 3)
            stored = f"blk.{layer}.{(GEMMA_NAMES if gemma else LLAMA_NAMES)[part]}"
        if not gemma and stored.endswith(("attn_q", "attn_k")):
            count = config["num_attention_heads"] if stored.endswith("attn_q") else config["num_key_value_heads"]
            weight = interleaved(weight, count)
        if gemma and stored.endswith("norm"):
            weight = weight + 1
        if stored not in leave_out:
            if quantise and weight.ndim == 2 and weight.shape[1] % 32 == 0:
                writer.add_tensor(f"{stored}.weight", gguf.quantize(weight, quantise), raw_dtype=quantise)
            else:
                writer.add_tensor(f"{stored}.weight", weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def load(path):
    checkpoint = open_checkpoint(path)
    return flatten(checkpoint.load(tiny_models.abstract_params(checkpoint.config)))


def test_llama_parameters_are_those_of_the_model(tmp_path):
    model = tiny_models.llama(tie_word_embeddings=True)
    params = load(write(tmp_path / "model.gguf", model))
    expected = tiny_models.canonical(model)
    assert params.keys() == expected.keys()
    for path, value in expected.items():
        np.testing.assert_array_equal(params[path], value, err_msg=path)


def test_untied_llama_in_a_folder(tmp_path):
    model = tiny_models.llama()
    write(tmp_path / "model.gguf", model)
    np.testing.assert_array_equal(load(tmp_path)["unembedding/kernel"], model.tensors["lm_head.weight"].T)


def test_gemma_norms_come_back_without_their_one(tmp_path):
    model = tiny_models.gemma3()
    params = load(write(tmp_path / "model.gguf", model))
    for path, value in tiny_models.canonical(model).items():
        # Adding and taking away 1 rounds at the scale of 1.
        np.testing.assert_allclose(params[path], value, rtol=0, atol=3e-7 if path.endswith("scale") else 0)


def test_quantised_tensors(tmp_path):
    """Q8_0 keeps a block of 32 values to within half a step of its largest / 127."""
    model = tiny_models.llama()
    params = load(write(tmp_path / "model.gguf", model, quantise=gguf.GGMLQuantizationType.Q8_0))
    out = tiny_models.canonical(model)["layers/attention/out/kernel"]  # Its stored rows are 4 · 8 = 32 wide.
    error = np.abs(params["layers/attention/out/kernel"] - out)
    assert 0 < error.max() <= np.abs(out).max() / 127 * 0.51


def test_config(tmp_path):
    config = open_checkpoint(write(tmp_path / "model.gguf", tiny_models.gemma3())).config
    assert (config.family, config.num_layers, config.d_model, config.max_positions) == ("gemma3", 3, 24, 64)
    assert (config.num_heads, config.num_kv_heads, config.head_dim, config.d_mlp) == (4, 2, 8, 40)
    assert config.attention_scale == 8**-0.5
    assert config.tie_embeddings
    (sliding,) = config.layer_kinds  # Three layers: the sixth would be the first with full attention.
    assert (sliding.window, sliding.rotary_base) == (4, 10_000.0)


def test_linear_rotary_scaling(tmp_path):
    scaling = {"rope.scaling.type": "linear", "rope.scaling.factor": 8.0}
    config = open_checkpoint(write(tmp_path / "model.gguf", tiny_models.llama(), scaling)).config
    assert config.layer_kinds[0].rotary_base == 5000.0
    assert config.layer_kinds[0].rotary_scaling.kind == "linear"
    assert config.layer_kinds[0].rotary_scaling.factor == 8.0


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"expert_count": 8}, "sets what brb_jax does not know: llama.expert_count=8"),
        ({"rope.dimension_count": 4}, "does not know: llama.rope.dimension_count=4"),
        ({"vocab_size": 51}, "does not know: llama.vocab_size=51"),
        ({"rope.scaling.type": "yarn", "rope.scaling.factor": 8.0}, "rope_scaling of type 'yarn' is not supported"),
        ({"context_length": None}, "lacks llama.context_length"),
        ({"attention.head_count_kv": None}, "lacks llama.attention.head_count_kv"),
        ({"embedding_length": None}, "lacks llama.embedding_length"),
        ({"feed_forward_length": [40, 40, 48]}, "layers of different llama.feed_forward_length are not supported"),
        ({"block_count": 4}, r"model.layers.3.self_attn.q_proj.weight .* is missing"),
    ],
)
def test_metadata_that_is_refused(metadata, message, tmp_path):
    write(tmp_path / "model.gguf", tiny_models.llama(), metadata)
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(tmp_path)


def test_missing_tensor(tmp_path):
    write(tmp_path / "model.gguf", tiny_models.llama(), leave_out=["blk.1.ffn_up"])
    with pytest.raises(CheckpointError, match=r"model.layers.1.mlp.up_proj.weight \(layers/mlp/up/kernel\) is missing"):
        open_checkpoint(tmp_path)


def test_unknown_architecture(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "mamba")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(CheckpointError, match="GGUF architecture 'mamba' is not supported, only llama, gemma3"):
        open_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (0, "ends within its header"),
        (3, "ends within its header"),
        (100, "ends within its header"),
        (-1, "ends before or within"),
        (-60_000, "ends before or within"),
    ],
)
def test_truncated_file(keep, message, tmp_path):
    path = write(tmp_path / "model.gguf", tiny_models.llama())
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match=message):
        open_checkpoint(path)


def test_metadata_of_arrays_in_arrays(tmp_path):
    """Each level is a kind (9, an array) and a length."""
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"x" + struct.pack("<I", 9)
    (tmp_path / "model.gguf").write_bytes(head + struct.pack("<IQ", 9, 1) * 100_000)
    with pytest.raises(CheckpointError, match=r"model.gguf has a damaged header: RecursionError"):
        open_checkpoint(tmp_path)


def test_file_of_another_kind(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(CheckpointError, match="does not begin with 'GGUF'"):
        open_checkpoint(tmp_path)


def test_fingerprint_does_not_follow_the_name(tmp_path):
    path = write(tmp_path / "model.gguf", tiny_models.llama())
    first = open_checkpoint(path).fingerprint
    assert open_checkpoint(path.rename(tmp_path / "renamed.gguf")).fingerprint == first


def test_without_the_gguf_package(tmp_path, monkeypatch):
    write(tmp_path / "model.gguf", tiny_models.llama())
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(
        CheckpointError, match=r"needs the package gguf: pip install '\.\[demo\]' in brb_jax's checkout"
    ):
        open_checkpoint(tmp_path)
