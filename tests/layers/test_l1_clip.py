import numpy as np
import pytest
import tensorflow as tf

from tests.layers.layer_checks import run_layer_test
from tfpriv._errors import InputError
from tfpriv.layers import L1Clip


def test_layer(tmp_path):
    model, loaded = run_layer_test(L1Clip(2.5), tf.random.normal([3, 5]), tmp_path)
    values = tf.random.normal([4, 5])
    assert np.array_equal(model(values), loaded(values))


@pytest.mark.parametrize("radius", [0.1, 1.0, 30.0])
def test_a_record_is_scaled_down_and_never_up(radius):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 16)).astype(np.float32)
    values *= 10.0 ** rng.uniform(-4, 4, size=(200, 1)).astype(np.float32)
    clipped = L1Clip(radius)(values).numpy()
    norm = np.abs(values).astype(float).sum(-1)
    inside = norm <= radius
    assert 0 < inside.mean() < 1
    assert np.array_equal(clipped[inside], values[inside])
    assert np.abs(clipped).astype(float).sum(-1).max() <= radius * (1 + 1e-6)
    shrunk = values[~inside] * (radius / norm[~inside])[:, None]
    np.testing.assert_allclose(clipped[~inside], shrunk, rtol=1e-6)


def test_zeros_and_what_is_not_finite_are_safe():
    largest = np.finfo(np.float32).max
    values = tf.constant(
        [[0.0, 0.0], [np.nan, 4.0], [-np.inf, np.inf], [largest, -largest]]
    )
    with tf.GradientTape() as tape:
        tape.watch(values)
        clipped = L1Clip()(values)
        loss = tf.reduce_sum(clipped)
    assert clipped.numpy().tolist() == [[0, 0], [0, 1], [0, 0], [0.5, -0.5]]
    assert np.isfinite(tape.gradient(loss, values)).all()


def test_the_gradient_is_that_of_the_formula():
    values = tf.constant([[0.2, -0.3, 0.1], [1.0, -2.0, 0.5]], tf.float64)
    (analytic,), (numeric,) = tf.test.compute_gradient(
        L1Clip(dtype="float64"), [values]
    )
    np.testing.assert_allclose(analytic, numeric, atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_is_widened(policy):
    values = tf.constant([[1e6, 1e6, 2e6]])  # overflows float16
    clipped = L1Clip(dtype=policy)(values)
    assert clipped.dtype == tf.float32
    assert clipped.numpy().tolist() == [[0.25, 0.25, 0.5]]


@pytest.mark.parametrize("radius", [0, -1.0, float("nan"), float("inf"), "1"])
def test_bad_radius(radius):
    with pytest.raises(InputError, match="radius"):
        L1Clip(radius)
