"""Layouts of tensors that hold several parameters, against slices written out."""

import dataclasses

import numpy as np
import pytest
from tiny_decoders import CONFIG

from brb_jax.models.families.tensors import Tensor

L, N, K, H, D, F = 3, 4, 2, 6, 5, 7
SIZES = dataclasses.replace(CONFIG, num_heads=N, num_kv_heads=K, head_dim=H, d_model=D, d_mlp=F)
FUSED = np.random.default_rng(0).normal(size=((N + 2 * K) * H, D))


@pytest.mark.parametrize(
    ("layout", "piece", "stored", "expected"),
    [
        ("(N+K+K H) D -> D N H", 0, FUSED, FUSED[: N * H].T.reshape(D, N, H)),
        ("(N+K+K H) D -> D K H", 1, FUSED, FUSED[N * H : (N + K) * H].T.reshape(D, K, H)),
        ("(N+K+K H) D -> D K H", 2, FUSED, FUSED[(N + K) * H :].T.reshape(D, K, H)),
        ("F+F D -> D F", 1, FUSED[: 2 * F], FUSED[F : 2 * F].T),
        ("D (K+K H) -> D K H", 1, FUSED[: 2 * K * H].T, FUSED[K * H : 2 * K * H].T.reshape(D, K, H)),
        ("D (F 1+1) -> D F", 1, FUSED[: 2 * F].T, FUSED[1 : 2 * F : 2].T),
        ("D (N h 2) -> D N (2 h)", 0, FUSED[: N * H].T, FUSED[: N * H].T.reshape(D, N, H)[..., [0, 2, 4, 1, 3, 5]]),
        (
            "D L F -> L D F",
            0,
            FUSED.reshape(D, L, -1)[..., :F],
            FUSED.reshape(D, L, -1)[..., :F].swapaxes(0, 1),
        ),
        ("(K H+H) -> K H", 1, FUSED[: 2 * K * H, 0], FUSED[[*range(6, 12), *range(18, 24)], 0].reshape(K, H)),
    ],
)
def test_a_piece_of_a_fused_tensor(layout, piece, stored, expected):
    tensor = Tensor("name", "path", layout, piece)
    assert tensor.source_shape(SIZES) == stored.shape
    assert tensor.shape(SIZES) == expected.shape
    np.testing.assert_array_equal(tensor.to_canonical(stored, SIZES), expected)
    # Single slices along the axes that are kept are those of the result.
    for stored_axis, axis in tensor.kept_axes().items():
        for i in range(stored.shape[stored_axis]):
            part = tensor.to_canonical(stored.take([i], stored_axis), SIZES)
            np.testing.assert_array_equal(part, expected.take([i], axis))


@pytest.mark.parametrize(
    ("layout", "kept"),
    [
        ("V D -> V D", {0: 0, 1: 1}),
        ("D L N H -> L D N H", {0: 1, 1: 0, 2: 2, 3: 3}),
        ("L 1+1 F D -> L D F", {0: 0, 2: 2, 3: 1}),
        ("F+F D -> D F", {1: 0}),
        ("D K (h 2) -> D K (2 h)", {0: 0, 1: 1}),
        ("(N H) D -> D N H", {1: 0}),
        ("F 1 -> F", {0: 0}),
    ],
)
def test_axes_that_are_kept(layout, kept):
    assert Tensor("name", "path", layout).kept_axes() == kept


def test_values_of_another_scale():
    tensor = Tensor("name", "path", "D -> D", times=0.5, plus=-1)
    values = tensor.to_canonical(np.arange(D, dtype=np.float16), SIZES)
    np.testing.assert_array_equal(values, [-1, -0.5, 0, 0.5, 1])
    assert values.dtype == np.float32
