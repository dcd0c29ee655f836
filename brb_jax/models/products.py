"""In what dtype and precision matrices are multiplied, whatever the dtype that parameters are stored in.

Settings hold while a program is traced, as a mesh does (`jax.set_mesh`): `Decoder` puts them in effect, its parts ask.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num

MatmulPrecision = Literal["default", "high", "highest"]


@dataclasses.dataclass(frozen=True)
class Products:
    """How matrices are multiplied. Results are float32 always.

    Attributes:
        dtype: Name of the one that both operands are cast to; None for that of the parameters, or float32 if these are
            integers.
        precision: Of float32 operands. `highest` means float32; accelerators round them to less otherwise.
    """

    dtype: str | None = None
    precision: MatmulPrecision = "highest"


DEFAULT_PRODUCTS = Products()
_products = contextvars.ContextVar("products", default=DEFAULT_PRODUCTS)


@contextlib.contextmanager
def multiplying(products: Products) -> Iterator[None]:
    """Puts settings in effect for what is traced inside."""
    token = _products.set(products)
    try:
        yield
    finally:
        _products.reset(token)


def operand(parameter: Num[Array, "..."]) -> Float[Array, "..."]:
    """A parameter as a factor of a product."""
    dtype = _products.get().dtype
    if dtype is not None:
        return parameter.astype(dtype)
    return parameter.astype(jnp.float32) if jnp.issubdtype(parameter.dtype, jnp.integer) else parameter


def precision(dtype: jnp.dtype) -> jax.lax.Precision | None:
    """Of a product whose operands have this dtype."""
    return jax.lax.Precision(_products.get().precision) if dtype == jnp.float32 else None
