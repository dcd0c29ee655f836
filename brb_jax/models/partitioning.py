"""Logical axis names, and the one table that maps them to mesh axes.

Parameters and activations name what each of their axes *is* ("heads", "embed"); this table says where it goes.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
from jax.sharding import PartitionSpec

MESH_AXES = ("data", "fsdp", "expert", "tensor")

LOGICAL_TO_MESH: dict[str, tuple[str, ...]] = {
    "batch": ("data", "fsdp", "expert"),
    "embed": ("fsdp",),
    "vocab": ("tensor",),
    "heads": ("tensor",),
    "kv_heads": ("tensor",),
    "mlp": ("tensor",),
    "experts": ("expert",),
    "head_dim": (),
    "latent": ("fsdp",),
    "positions": (),
    "layers": (),
}


def partition_spec(
    shape: Sequence[int], logical_axes: Sequence[str | None], mesh_shape: dict[str, int]
) -> PartitionSpec:
    """Where an array goes on a mesh. An axis that its mesh axes do not divide evenly is replicated instead.

    Args:
        shape: The array's shape.
        logical_axes: The logical name of each axis; None for one that is never split.
        mesh_shape: Size of each mesh axis.

    Raises:
        ValueError: A logical axis is not in the table, or there are not as many names as axes.

    >>> tuple(partition_spec((64, 3, 16), ("embed", "kv_heads", "head_dim"), {"data": 1, "fsdp": 4, "tensor": 2}))
    ('fsdp', None, None)
    """
    if len(shape) != len(logical_axes):
        raise ValueError(f"{len(logical_axes)} logical axes {tuple(logical_axes)} for shape {tuple(shape)}")
    entries: list[str | tuple[str, ...] | None] = []
    for size, name in zip(shape, logical_axes, strict=True):
        if name is not None and name not in LOGICAL_TO_MESH:
            raise ValueError(f"unknown logical axis {name!r}; known: {', '.join(LOGICAL_TO_MESH)}")
        axes = tuple(axis for axis in LOGICAL_TO_MESH.get(name or "", ()) if mesh_shape.get(axis, 1) > 1)
        parts = 1
        for axis in axes:
            parts *= mesh_shape[axis]
        if not axes or size % parts:
            entries.append(None)
        else:
            entries.append(axes[0] if len(axes) == 1 else axes)
    return PartitionSpec(*entries)


def constrain(x: jax.Array, *logical_axes: str | None) -> jax.Array:
    """Pins an activation's sharding under the mesh of the surrounding `jax.set_mesh`; without one, does nothing."""
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return x
    return jax.lax.with_sharding_constraint(x, partition_spec(x.shape, logical_axes, dict(mesh.shape)))
