"""Parameters of one dtype, products of another, and the precision that float32 products are asked for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from brb_jax.models.config import DecoderConfig, LayerKind
from brb_jax.models.decoder import Decoder
from brb_jax.models.int8 import with_int8_matrices
from brb_jax.models.products import Products

CONFIG = DecoderConfig(
    family="llama",
    vocab_size=64,
    num_layers=2,
    d_model=32,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    d_mlp=48,
    max_positions=64,
    layer_kinds=(LayerKind(None, 1e4),),
    layer_pattern=(0, 0),
    activation="silu",
    norm_eps=1e-5,
    attention_scale=0.35,
)
T = 16
INPUTS = (np.arange(T, dtype=np.int32)[None], np.arange(T, dtype=np.int32)[None], np.full((1, T), T, np.int32))


def logits(decoder: Decoder) -> np.ndarray:
    graph, state = nnx.split(decoder)

    @jax.jit
    def forward(state, *inputs):
        merged = nnx.merge(graph, state)
        return merged.logits(merged.hidden_states(*inputs))

    return np.asarray(forward(state, *INPUTS))


def decoder(param_dtype: str, **products) -> Decoder:
    dtype = "float32" if param_dtype == "int8" else param_dtype
    made = nnx.jit(lambda: Decoder(CONFIG, dtype=dtype, products=Products(**products), rngs=nnx.Rngs(0)))()
    return with_int8_matrices(made) if param_dtype == "int8" else made


def products_of(model: Decoder):
    """Operand dtypes, result dtype and precision of every matrix product of the program."""

    def walk(jaxpr):
        for equation in jaxpr.eqns:
            if equation.primitive.name == "dot_general":
                operands = {str(variable.aval.dtype) for variable in equation.invars}
                yield (*operands, str(equation.outvars[0].aval.dtype), equation.params["precision"])
            for parameter in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
                inner = getattr(parameter, "jaxpr", parameter)
                if hasattr(inner, "eqns"):
                    yield from walk(inner)

    graph, state = nnx.split(model)

    def forward(state, *inputs):
        merged = nnx.merge(graph, state)
        return merged.logits(merged.hidden_states(*inputs))

    return set(walk(jax.make_jaxpr(forward)(state, *INPUTS).jaxpr))


HIGHEST, HIGH, DEFAULT = ((precision,) * 2 for precision in ("HIGHEST", "HIGH", "DEFAULT"))


@pytest.mark.parametrize(
    ("dtype", "products", "expected"),
    [
        ("float32", {}, ("float32", "float32", HIGHEST)),
        ("bfloat16", {}, ("bfloat16", "float32", None)),
        ("float32", {"dtype": "bfloat16"}, ("bfloat16", "float32", None)),
        ("bfloat16", {"dtype": "float32"}, ("float32", "float32", HIGHEST)),
        ("int8", {}, ("float32", "float32", HIGHEST)),
        ("int8", {"dtype": "bfloat16"}, ("bfloat16", "float32", None)),
        ("float32", {"precision": "high"}, ("float32", "float32", HIGH)),
        ("float32", {"precision": "default"}, ("float32", "float32", DEFAULT)),
        ("float32", {"dtype": "bfloat16", "precision": "high"}, ("bfloat16", "float32", None)),
    ],
    ids=str,
)
def test_every_product_of_the_program(dtype, products, expected):
    """Both operands have one dtype, the result is float32, and there is no other kind of product."""
    found = {
        (*rest, None if precision is None else tuple(part.name for part in precision))
        for *rest, precision in products_of(nnx.eval_shape(lambda: decoder(dtype, **products)))
    }
    assert found == {expected}


def test_bfloat16_parameters_in_float32_products_are_exact():
    """As float32 parameters that were rounded: nothing else is."""
    stored = decoder("bfloat16", dtype="float32")
    graph, state = nnx.split(stored)
    reference = nnx.merge(graph, jax.tree.map(lambda leaf: leaf.astype(jnp.float32), state))
    np.testing.assert_array_equal(logits(stored), logits(reference))


def test_float32_parameters_in_bfloat16_products():
    """Norm scales keep their digits; matrices lose theirs."""
    exact, both = decoder("float32"), decoder("float32", dtype="bfloat16")
    difference = np.abs(logits(exact) - logits(both)).max()
    assert 1e-3 < difference < 0.5
    _, state = nnx.split(both)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(state)} == {"float32"}
