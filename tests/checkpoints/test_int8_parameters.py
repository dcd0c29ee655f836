"""Parameters as int8: what is loaded is what numpy and qwix make of the stored tensors, on any mesh."""

import functools
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import qwix
import tiny_models
from jax.sharding import AxisType

from brb_jax.checkpoints import CheckpointError, open_checkpoint, open_framework, streaming
from brb_jax.checkpoints.streaming import flatten
from brb_jax.convert import convert
from brb_jax.models.int8 import CALIBRATION
from brb_jax.scoring.parameters import abstract_decoder, abstract_parameters

FIXTURES = Path(__file__).parent / "fixtures" / "maxtext"
# The axes that a matrix is contracted over, where it is used; its leading axis counts the layers.
CONTRACTED = {
    "embedder/table": (1,),
    "layers/attention/query/kernel": (1,),
    "layers/attention/key/kernel": (1,),
    "layers/attention/value/kernel": (1,),
    "layers/attention/out/kernel": (1, 2),
    "layers/mlp/gate/kernel": (1,),
    "layers/mlp/up/kernel": (1,),
    "layers/mlp/down/kernel": (1,),
    "unembedding/kernel": (0,),
}
MODELS = {
    "llama": lambda: tiny_models.llama(attention_bias=True, mlp_bias=True),
    "gemma3": tiny_models.gemma3,
}


def load(folder, mesh_shape=(1, 1, 1)):
    mesh = jax.make_mesh(
        mesh_shape,
        ("data", "fsdp", "tensor"),
        axis_types=(AxisType.Auto,) * 3,
        devices=jax.devices()[: int(np.prod(mesh_shape))],
    )
    checkpoint = open_checkpoint(folder)
    _, state = abstract_decoder(checkpoint.config, "int8")
    return flatten(checkpoint.load(abstract_parameters(state, mesh)))


@pytest.fixture(scope="module", params=MODELS)
def model(request, tmp_path_factory):
    """A tiny model, and its folder."""
    made, folder = MODELS[request.param](), tmp_path_factory.mktemp(request.param)
    made.save(folder)
    return made, folder


def assert_quantised(values, scales, stored, contracted):
    """By numpy, to the rounding of float32: the largest absolute value is 127 steps, and each value the nearest."""
    scale = np.abs(stored).max(contracted, keepdims=True) / 127
    np.testing.assert_allclose(scales, scale, rtol=5e-7, atol=0)
    assert values.dtype == np.int8
    assert np.abs(values - stored / scale).max() < 0.5 + 1e-4


def test_values_and_scales(model):
    """What is no matrix is as it was stored."""
    made, folder = model
    expected = tiny_models.canonical(made)
    params = load(folder)
    assert params.keys() == expected.keys() | {f"{path}_scale" for path in expected.keys() & CONTRACTED.keys()}
    for path, stored in expected.items():
        if path in CONTRACTED:
            assert_quantised(params[path], params[f"{path}_scale"], stored, CONTRACTED[path])
        else:
            assert params[path].dtype == np.float32
            np.testing.assert_array_equal(params[path], stored, err_msg=path)


def test_as_qwix_quantises_the_whole_stack(model):
    """Bit for bit, with a scale for each layer and channel."""
    made, folder = model
    params = load(folder)
    for path, stored in tiny_models.canonical(made).items():
        if path in CONTRACTED:
            channels = tuple(axis for axis in range(stored.ndim) if axis not in CONTRACTED[path])
            quantise = jax.jit(
                functools.partial(
                    qwix.quantize, qtype=jnp.int8, channelwise_axes=channels, calibration_method=CALIBRATION
                )
            )
            quantised = quantise(stored)
            np.testing.assert_array_equal(params[path], quantised.qvalue, err_msg=path)
            np.testing.assert_array_equal(params[f"{path}_scale"], quantised.scale, err_msg=path)


@pytest.mark.parametrize("mesh_shape", [(2, 2, 2), (1, 1, 8), (1, 4, 1)])
def test_on_a_mesh(mesh_shape, model):
    """The same bits; scales are split as their matrices' channels are, and whole along what is contracted."""
    _, folder = model
    one, many = load(folder), load(folder, mesh_shape)
    for path, value in one.items():
        np.testing.assert_array_equal(many[path], value, err_msg=path)
    for path, contracted in CONTRACTED.items():
        if path in many:
            spec, scale_spec = (many[name].sharding.spec for name in (path, f"{path}_scale"))
            expected = [None if axis in contracted else entry for axis, entry in enumerate(spec)]
            assert list(scale_spec) == expected, path


def test_a_converted_directory(model, tmp_path):
    _, folder = model
    convert(str(folder), str(tmp_path / "out"))
    converted, direct = load(tmp_path / "out", (2, 2, 2)), load(folder)
    assert converted.keys() == direct.keys()
    for path, value in direct.items():
        assert converted[path].dtype == value.dtype
        np.testing.assert_array_equal(converted[path], value, err_msg=path)


def test_a_converted_directory_in_bfloat16(model, tmp_path):
    """The values that were stored are the ones that are rounded, in float32."""
    made, folder = model
    convert(str(folder), str(tmp_path / "out"), dtype="bfloat16")
    params = load(tmp_path / "out")
    stored = tiny_models.canonical(made)["layers/mlp/up/kernel"].astype(ml_dtypes.bfloat16).astype(np.float32)
    assert_quantised(params["layers/mlp/up/kernel"], params["layers/mlp/up/kernel_scale"], stored, (1,))


@pytest.mark.parametrize("name", ["deepseek2", "gemma2", "mixtral-unscanned"])
def test_layers_that_are_stored_together_or_apart(name):
    """Stacks of several kinds of layers, experts, every second layer in one array: the nearest values."""
    checkpoint = open_framework(FIXTURES / name, str(FIXTURES / name), {})
    device = jax.make_mesh((1,), ("data",), devices=jax.devices()[:1], axis_types=(AxisType.Auto,))
    floats, int8 = (
        flatten(checkpoint.load(abstract_parameters(abstract_decoder(checkpoint.config, dtype)[1], device)))
        for dtype in ("float32", "int8")
    )
    matrices = [path for path in floats if f"{path}_scale" in int8]
    assert len(matrices) > 6
    for path in floats:
        if path in matrices:
            scale = np.asarray(int8[f"{path}_scale"])
            assert np.abs(int8[path] - floats[path] / scale).max() < 0.5 + 1e-4, path
            contracted = tuple(axis for axis, size in enumerate(scale.shape) if size != floats[path].shape[axis])
            assert (np.abs(int8[path]).max(contracted) == 127).all(), path
        else:
            np.testing.assert_array_equal(int8[path], floats[path], err_msg=path)


def test_one_layer_at_a_time(model, monkeypatch):
    made, folder = model
    seen = []
    quantise = streaming.quantise
    monkeypatch.setattr(streaming, "quantise", lambda part, axes: seen.append(part.shape) or quantise(part, axes))
    load(folder)
    matrices = tiny_models.canonical(made).keys() & CONTRACTED.keys()
    assert len(seen) == sum(tiny_models.LAYERS if path.startswith("layers/") else 1 for path in matrices)


def test_a_tree_that_does_not_fit(model):
    _, folder = model
    checkpoint = open_checkpoint(folder)
    _, state = abstract_decoder(checkpoint.config, "int8")
    asked = abstract_parameters(state, jax.make_mesh((1,), ("data",), devices=jax.devices()[:1]))
    asked["embedder"]["other"] = asked["embedder"].pop("table")
    with pytest.raises(CheckpointError, match="embedder/other is not in the checkpoint"):
        checkpoint.load(asked)
