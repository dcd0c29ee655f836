"""The decoder's parameters on a mesh: shapes and shardings first, then the checkpoint's arrays straight into place."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh, NamedSharding
from jax.typing import DTypeLike

from brb_jax.models.config import DecoderConfig
from brb_jax.models.decoder import Decoder
from brb_jax.models.int8 import with_int8_matrices
from brb_jax.models.partitioning import partition_spec
from brb_jax.models.products import DEFAULT_PRODUCTS, Products


def abstract_decoder(
    config: DecoderConfig, dtype: DTypeLike, products: Products = DEFAULT_PRODUCTS
) -> tuple[nnx.GraphDef, nnx.State]:
    """The decoder's static part, and its parameters as shapes: no memory, no device.

    Args:
        config: What the family varies in.
        dtype: Of the parameters; int8 is that of matrices, see `models.int8`.
        products: How matrices are multiplied.
    """
    int8 = jnp.dtype(dtype) == jnp.int8

    def build() -> Decoder:
        decoder = Decoder(config, dtype=jnp.float32 if int8 else dtype, products=products, rngs=nnx.Rngs(0))
        return with_int8_matrices(decoder) if int8 else decoder

    return nnx.split(nnx.eval_shape(build))


def abstract_parameters(state: nnx.State, mesh: Mesh) -> dict[str, Any]:
    """A nested dict of `jax.ShapeDtypeStruct`, each with its sharding on `mesh`: what a checkpoint is loaded into."""

    def place(variable: nnx.Variable) -> jax.ShapeDtypeStruct:
        value = variable.get_value()
        spec = partition_spec(value.shape, variable.get_metadata("out_sharding"), dict(mesh.shape))
        return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=NamedSharding(mesh, spec))

    return nnx.to_pure_dict(jax.tree.map(place, state, is_leaf=lambda leaf: isinstance(leaf, nnx.Variable)))


def with_values(state: nnx.State, parameters: dict[str, Any]) -> nnx.State:
    """The abstract state with a loaded nested dict of arrays in place of its shapes."""
    nnx.replace_by_pure_dict(state, parameters)
    return state
