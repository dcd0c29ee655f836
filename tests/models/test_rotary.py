"""Rotary embeddings against hand-worked angles and plain trigonometry in float64."""

import jax.numpy as jnp
import numpy as np

from brb_jax.models import rotary
from brb_jax.models.config import LayerKind, RotaryScaling


def test_frequencies_by_hand():
    """Base 10,000 over a head of 8: one radian a position, then a tenth, a hundredth, a thousandth."""
    np.testing.assert_allclose(rotary.frequencies(8, LayerKind(None, 1e4)), [1, 0.1, 0.01, 0.001], rtol=1e-6)
    linear = RotaryScaling("linear", 4.0)
    np.testing.assert_allclose(rotary.frequencies(8, LayerKind(None, 1e4, linear))[1], 0.025, rtol=1e-6)


def test_llama3_scaling_by_hand():
    """Original length 1000, factor 10, low 1, high 4: turns per original length decide.

    One radian a position is 159 turns: kept. 0.01 rad is 1.59 turns: blended by (1.59 − 1) / 3. 0.001 rad is 0.16
    turns: a tenth of it.
    """
    scaling = RotaryScaling("llama3", 10.0, 1.0, 4.0, 1000)
    blend = (1000 * 0.01 / (2 * np.pi) - 1) / 3
    expected = [1, 0.1, 0.01 * (blend + (1 - blend) / 10), 0.0001]
    np.testing.assert_allclose(rotary.frequencies(8, LayerKind(None, 1e4, scaling)), expected, rtol=1e-5)


def test_rotation_is_by_position_times_frequency():
    """Pair (i, i + H/2) as a complex number is multiplied by exp(i·position·frequency)."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 5, 2, 8))
    positions = np.array([[0, 1, 2, 700, 5000]])
    frequencies = rotary.frequencies(8, LayerKind(None, 1e4))
    pairs = x[..., :4] + 1j * x[..., 4:]
    turned = pairs * np.exp(1j * positions[..., None, None] * frequencies.astype(np.float64))
    out = rotary.rotate(jnp.asarray(x, jnp.float32), *rotary.phases(jnp.asarray(positions), frequencies))
    np.testing.assert_allclose(out, np.concatenate([turned.real, turned.imag], -1), atol=2e-3)
    np.testing.assert_allclose(out[:, :3], np.concatenate([turned.real, turned.imag], -1)[:, :3], atol=1e-6)


def test_phases_tell_positions_past_256_apart_whatever_the_operands():
    """257 is 256 in bfloat16: phases, and rotation of bfloat16 operands, are float32."""
    frequencies = rotary.frequencies(8, LayerKind(None, 1e4))
    cosine, sine = rotary.phases(jnp.asarray([[256, 257]]), frequencies)
    assert cosine.dtype == sine.dtype == jnp.float32
    np.testing.assert_allclose(cosine[0, :, 0], np.cos([256.0, 257.0]), atol=1e-5)
    rotated = rotary.rotate(jnp.ones((1, 2, 1, 8), jnp.bfloat16), cosine, sine)
    assert rotated.dtype == jnp.float32
    np.testing.assert_allclose(rotated[0, :, 0, 0], np.cos([256.0, 257.0]) - np.sin([256.0, 257.0]), atol=1e-5)
