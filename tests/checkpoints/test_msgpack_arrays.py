"""Msgpack files of Flax and EasyLM, against what Flax itself reads from them."""

import flax.serialization
import jax.numpy as jnp
import msgpack
import numpy as np
import pytest
from etils import epath
from flax.traverse_util import flatten_dict

from brb_jax.checkpoints.checkpoint import CheckpointError
from brb_jax.checkpoints.msgpack_arrays import MsgpackArrays, holds_arrays

RANDOM = np.random.default_rng(0)
TREE = {
    "step": 3,
    "rate": -1e-3,
    "note": "so",
    "nothing": None,
    "negative": -70_000,
    "scalar": np.float32(2),
    "complex": 1j,
    "several": [np.arange(3), {"deep": np.zeros((2, 0), np.float16)}],
    "count": jnp.asarray(7),
    "layer": {
        "kernel": RANDOM.normal(size=(7, 5)).astype(np.float32),
        "half": jnp.asarray(RANDOM.normal(size=(3, 2, 4)), jnp.bfloat16),
        "transposed": RANDOM.normal(size=(40, 30)).T,
    },
}
ARRAYS = {
    "count": TREE["count"],
    "several/0": TREE["several"][0],
    "several/1/deep": TREE["several"][1]["deep"],
    **{f"layer/{name}": array for name, array in TREE["layer"].items()},
}


def stream(tree):
    """A file of EasyLM's, its `save_train_state_to_file` written out."""
    packer = msgpack.Packer()
    return b"".join(packer.pack((key, flax.serialization.to_bytes(value))) for key, value in flatten_dict(tree).items())


def written(folder, content):
    path = epath.Path(folder) / "streaming_params"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("chunk", [2**30, 32])
@pytest.mark.parametrize("pack", [flax.serialization.msgpack_serialize, stream])
def test_arrays(pack, chunk, tmp_path, monkeypatch):
    """Whether an array is in one piece or, as above a gibibyte, in chunks."""
    monkeypatch.setattr(flax.serialization, "MAX_CHUNK_SIZE", chunk)
    path = written(tmp_path, pack(TREE))
    assert holds_arrays(path)
    stored = MsgpackArrays(path)
    assert stored.shapes == {name: array.shape for name, array in ARRAYS.items()}
    for name, array in ARRAYS.items():
        values = stored.read(name)
        assert values.dtype == array.dtype
        np.testing.assert_array_equal(values, array, err_msg=name)


def test_truncated_anywhere(tmp_path):
    """Every shorter file is refused, but for one that ends where a record does: that has fewer arrays."""
    tree = {"a": np.arange(6.0), "b": {"c": np.ones((2, 3), np.float32)}}
    whole = stream(tree)
    first = len(stream({"a": tree["a"]}))
    for length in range(len(whole)):
        path = written(tmp_path, whole[:length])
        if length == first:
            assert MsgpackArrays(path).shapes == {"a": (6,)}
            continue
        with pytest.raises(CheckpointError, match=r"is not whole|is no msgpack file"):
            MsgpackArrays(path)
    with pytest.raises(CheckpointError, match=r"streaming_params is not whole: it ends at byte \d+, within b/c$"):
        MsgpackArrays(written(tmp_path, whole[:-1]))


def test_damaged_anywhere(tmp_path):
    """One byte changed: either nothing shows, or the file is refused; no other error."""
    whole = bytearray(stream({"a": np.arange(6), "b": {"c": np.ones((2, 3), np.float32)}}))
    refused = 0
    for place in range(len(whole)):
        for change in (1, 0x80, 0xFF):
            damaged = bytearray(whole)
            damaged[place] ^= change
            try:
                arrays = MsgpackArrays(written(tmp_path, bytes(damaged)))
            except CheckpointError as error:
                refused += 1
                assert "\n" not in str(error)
            else:
                for name, shape in arrays.shapes.items():
                    assert arrays.read(name).shape == shape
    assert refused > len(whole)


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"\x92", b"{}", b"\x80", msgpack.packb([1, 2]), b"\x93\x01\x02\x03"]
)
def test_no_such_file(content, tmp_path):
    path = written(tmp_path, content)
    assert not holds_arrays(path)
    with pytest.raises(CheckpointError, match="is no msgpack file of Flax or EasyLM"):
        MsgpackArrays(path)


def test_an_unknown_dtype(tmp_path):
    path = written(tmp_path, flax.serialization.msgpack_serialize({"a": np.ones(3, "complex64")}))
    with pytest.raises(CheckpointError, match="a has dtype 'complex64', which is not known"):
        MsgpackArrays(path)
