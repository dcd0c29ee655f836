"""Arrays of Orbax trees, whole and block by block, as they were saved by eight devices in each of Orbax's formats."""

import shutil

import jax
import ml_dtypes
import numpy as np
import orbax.checkpoint as ocp
import orbax.checkpoint.experimental.v1 as ocp_v1
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from brb_jax.checkpoints import CheckpointError
from brb_jax.checkpoints.orbax_tree import OrbaxArrays, find_tree

KERNEL = np.random.default_rng(0).normal(size=(16, 3, 12)).astype(np.float32)
TABLE = KERNEL[:, 0].astype(ml_dtypes.bfloat16)
BLOCK = (slice(4, 12), slice(0, 3), slice(6, 12))


def tree():
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("fsdp", "tensor"))
    sharding = NamedSharding(mesh, PartitionSpec("fsdp", None, "tensor"))
    return {"layers%": {"kernel": jax.device_put(KERNEL, sharding)}, "a table": TABLE, "step": np.array(7, np.int32)}


def save(folder, save_args=None, **settings):
    handler = ocp.PyTreeCheckpointHandler(**settings)
    ocp.Checkpointer(handler).save(folder / "tree", ocp.args.PyTreeSave(tree(), save_args))
    return OrbaxArrays(find_tree(folder / "tree"))


@pytest.mark.parametrize("zarr3", [False, True])
@pytest.mark.parametrize("ocdbt", [False, True])
def test_whole_and_in_blocks(ocdbt, zarr3, tmp_path):
    arrays = save(tmp_path, use_ocdbt=ocdbt, use_zarr3=zarr3)
    assert arrays.shapes == {"layers%/kernel": (16, 3, 12), "a table": (16, 12), "step": ()}
    np.testing.assert_array_equal(arrays.read("layers%/kernel"), KERNEL)
    assert arrays.chunk_shape("layers%/kernel") == (4, 3, 6)
    np.testing.assert_array_equal(arrays.read("layers%/kernel", BLOCK), KERNEL[BLOCK])
    np.testing.assert_array_equal(arrays.read("a table"), TABLE)
    assert arrays.read("a table").dtype == TABLE.dtype
    assert arrays.chunk_shape("step") == ()
    assert arrays.read("step") == 7


def test_of_the_second_api(tmp_path):
    ocp_v1.save(tmp_path / "tree", tree())
    arrays = OrbaxArrays(find_tree(tmp_path / "tree"))
    np.testing.assert_array_equal(arrays.read("layers%/kernel"), KERNEL)


def test_chunks_smaller_than_a_shard(tmp_path):
    """In zarr's third version a shard may be of several chunks."""
    save_args = {"layers%": {"kernel": ocp.SaveArgs(chunk_byte_size=4 * 18)}, "a table": ocp.SaveArgs()}
    arrays = save(tmp_path, {**save_args, "step": ocp.SaveArgs()}, use_zarr3=True)
    assert np.prod(arrays.chunk_shape("layers%/kernel")) == 18
    np.testing.assert_array_equal(arrays.read("layers%/kernel", BLOCK), KERNEL[BLOCK])


def test_a_missing_chunk_is_not_zeros(tmp_path):
    arrays = save(tmp_path, use_ocdbt=False)
    (tmp_path / "tree/layers%.kernel/1.0.1").unlink()
    np.testing.assert_array_equal(arrays.read("layers%/kernel", (slice(0, 4),)), KERNEL[:4])
    with pytest.raises(CheckpointError, match=r"tree: layers%/kernel cannot be read: .*missing"):
        arrays.read("layers%/kernel")


def test_a_damaged_chunk(tmp_path):
    arrays = save(tmp_path, use_ocdbt=False)
    (tmp_path / "tree/layers%.kernel/1.0.1").write_bytes(b"no chunk")
    with pytest.raises(CheckpointError, match=r"tree: layers%/kernel cannot be read: .*1\.0\.1"):
        arrays.read("layers%/kernel")


def test_an_array_that_is_gone(tmp_path):
    """Its name and shape are still in the tree's metadata."""
    arrays = save(tmp_path, use_ocdbt=False)
    shutil.rmtree(tmp_path / "tree/layers%.kernel")
    for use in (arrays.read, arrays.chunk_shape):
        with pytest.raises(CheckpointError, match=r"tree: layers%/kernel cannot be read: "):
            use("layers%/kernel")
