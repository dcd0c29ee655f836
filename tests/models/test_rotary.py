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


def test_yarn_scaling_by_hand():
    """Original length 1000, factor 10: pairs 0.697 and 2.202 turn 32 times and once, so 0 to 3 are blended."""
    scaling = RotaryScaling("yarn", 10.0, original_max_positions=1000)
    expected = [1, 0.1 * (2 / 3 + 1 / 30), 0.01 * (1 / 3 + 2 / 30), 0.0001]
    np.testing.assert_allclose(rotary.frequencies(8, LayerKind(None, 1e4, scaling)), expected, rtol=1e-5)
    keep = 1 - (1 - 0.69672) / (2.20176 - 0.69672)
    exact = RotaryScaling("yarn", 10.0, original_max_positions=1000, truncate=False)
    second = rotary.frequencies(8, LayerKind(None, 1e4, exact))[1]
    np.testing.assert_allclose(second, 0.1 * (keep + (1 - keep) / 10), rtol=1e-4)


def test_scalings_by_length():
    """Trees of 100 and 150 tokens in one row, original length 100: the first has its own frequencies."""
    lengths = jnp.asarray([[100, 150]])
    longrope = RotaryScaling(
        "longrope", 1.0, original_max_positions=100, short_factors=(1, 1, 2, 2), long_factors=(1, 5, 4, 8)
    )
    by_slot = rotary.frequencies_by_length(8, LayerKind(None, 1e4, longrope), lengths)
    np.testing.assert_allclose(by_slot[0], [[1, 0.1, 0.005, 0.0005], [1, 0.02, 0.0025, 0.000125]], rtol=1e-6)
    dynamic = RotaryScaling("dynamic", 2.0, original_max_positions=100)
    by_slot = rotary.frequencies_by_length(8, LayerKind(None, 1e4, dynamic), lengths)
    base = 1e4 * (2 * 150 / 100 - 1) ** (8 / 6)
    np.testing.assert_allclose(by_slot[0], [[1, 0.1, 0.01, 0.001], base ** -np.arange(0, 1, 0.25)], rtol=1e-5)


def test_a_layer_without_positions_and_a_part_of_a_head():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(1, 3, 2, 10)), jnp.float32)
    positions = jnp.asarray([[0, 7, 3000]])
    still = rotary.rotate(x, *rotary.phases(positions, rotary.frequencies(10, LayerKind(None, None))))
    np.testing.assert_array_equal(still, x)
    cosine, sine = rotary.phases(positions, rotary.frequencies(4, LayerKind(None, 1e4)))
    turned = rotary.rotate(x, cosine, sine)
    np.testing.assert_array_equal(turned[..., 4:], x[..., 4:])
    np.testing.assert_array_equal(turned[..., :4], rotary.rotate(x[..., :4], cosine, sine))
    scaled = rotary.phases(positions, rotary.frequencies(4, LayerKind(None, 1e4)), attention_factor=1.5)
    np.testing.assert_allclose(scaled[0], 1.5 * cosine, rtol=1e-6)


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
