"""Devices and processes: the mesh of a run, multi-process start-up, and agreement between processes."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import hashlib
import math
import os
import sys
from collections.abc import Iterator, Mapping

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh

from brb_jax.models.partitioning import LOGICAL_TO_MESH, MESH_AXES


class MeshError(ValueError):
    """A mesh that these devices cannot form."""


@dataclasses.dataclass(frozen=True)
class Processes:
    """How the processes of a run find each other.

    On Cloud TPU (and under SLURM, MPI or GKE) all fields stay None: JAX reads them from its surroundings.

    Attributes:
        coordinator_address: `host:port` of process 0.
        num_processes: How many processes there are.
        process_id: Which one this is, from 0.
    """

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None


def join_processes(processes: Processes) -> None:
    """Connects this process to the others. Must run before anything touches a device.

    Raises:
        MeshError: JAX cannot tell the address, the number or the place, or they contradict each other.
    """
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            coordinator_address=processes.coordinator_address,
            num_processes=processes.num_processes,
            process_id=processes.process_id,
        )
    except ValueError as error:
        raise MeshError(
            f"--distributed: {error} Outside Cloud TPU, give --coordinator_address, --num_processes and --process_id "
            "(from 0) to every process."
        ) from error
    atexit.register(_leave_at_once)


def leave_processes() -> None:
    """Disconnects from the others, once all have come here."""
    jax.distributed.shutdown()


def _leave_at_once() -> None:
    """JAX, at exit, waits five minutes for the other processes; they may be waiting for this one, which failed."""
    if jax.distributed.is_initialized():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """If the block raises on one process, every process raises, instead of waiting for that one in a collective.

    Raises:
        MeshError: Another process failed. Where the block itself raised, its error goes on.
    """
    error: Exception | None = None
    try:
        yield
    except Exception as raised:
        error = raised
    if jax.process_count() > 1:
        failed = np.flatnonzero(multihost_utils.process_allgather(np.asarray(error is not None))).tolist()
        if failed:
            leave_processes()
            error = error or MeshError(f"process {failed[0]} failed; it tells why")
    if error is not None:
        raise error


def mesh_sizes(request: Mapping[str, int], num_devices: int) -> dict[str, int]:
    """Size of every mesh axis.

    Args:
        request: Sizes by axis name; at most one may be −1, which takes the devices that are left. Axes not named are 1,
            but `data` takes the devices that are left when no axis is −1 and it is not named.
        num_devices: Devices to use, all of them.

    Raises:
        MeshError: An unknown axis, a size below 1, or sizes whose product is not `num_devices`.

    >>> mesh_sizes({"tensor": 2}, 8)
    {'data': 4, 'fsdp': 1, 'expert': 1, 'tensor': 2}
    """
    for axis, size in request.items():
        if axis not in MESH_AXES:
            raise MeshError(f"--mesh: unknown axis {axis!r}; the axes are {', '.join(MESH_AXES)}")
        if size < 1 and size != -1:
            raise MeshError(f"--mesh: size {size} of axis {axis!r}; give a positive number, or -1 for what is left")
    sizes = {axis: request.get(axis, 1) for axis in MESH_AXES}
    if "data" not in request and -1 not in request.values():
        sizes["data"] = -1
    open_axes = [axis for axis, size in sizes.items() if size == -1]
    if len(open_axes) > 1:
        raise MeshError(f"--mesh: only one axis may be -1, not {' and '.join(open_axes)}")
    fixed = math.prod(size for size in sizes.values() if size != -1)
    if open_axes and num_devices % fixed == 0:
        sizes[open_axes[0]] = num_devices // fixed
    if math.prod(sizes.values()) != num_devices:
        asked = ",".join(f"{axis}={size}" for axis, size in request.items())
        raise MeshError(f"--mesh={asked} does not fit {num_devices} devices: the sizes' product must be that number")
    return sizes


def make_mesh(request: Mapping[str, int]) -> Mesh:
    """The mesh over every device of every process."""
    sizes = mesh_sizes(request, jax.device_count())
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes), axis_types=(AxisType.Auto,) * len(sizes))


def row_multiple(mesh: Mesh) -> int:
    """The number of rows a batch must be a multiple of: the devices along the axes that split the batch."""
    return math.prod(mesh.shape.get(axis, 1) for axis in LOGICAL_TO_MESH["batch"])


def agree(value: str, what: str) -> None:
    """Fails on every process unless all of them hold the same value.

    Args:
        value: Text of any length; its digest is compared.
        what: What the value stands for, for the error.

    Raises:
        MeshError: The processes hold different values.
    """
    if jax.process_count() == 1:
        return
    mine = np.frombuffer(hashlib.sha256(value.encode()).digest(), np.uint8)
    digests = multihost_utils.process_allgather(mine)
    different = np.flatnonzero((digests != digests[0]).any(1)).tolist()
    if different:
        raise MeshError(
            f"processes {different} disagree with process 0 on {what}: "
            "each must be given the same flags, files and package versions"
        )


def from_process_zero(mask: np.ndarray) -> np.ndarray:
    """Process 0's value of a small boolean array, on every process."""
    if jax.process_count() == 1:
        return mask
    return np.asarray(multihost_utils.broadcast_one_to_all(mask.astype(np.uint8))).astype(bool)
