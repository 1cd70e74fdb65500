import numpy as np
import pytest
import tensorflow as tf

from tests.layers.layer_checks import run_layer_test
from tfpriv.layers import MinMaxScale


def test_layer(tmp_path):
    model, loaded = run_layer_test(MinMaxScale(), tf.random.normal([3, 5]), tmp_path)
    values = tf.random.normal([4, 5])
    assert np.array_equal(model(values), loaded(values))


def test_each_record_fills_the_unit_interval_and_keeps_its_proportions():
    values = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32) * 100
    scaled = MinMaxScale()(values).numpy()
    assert (scaled.min(-1) == 0).all()
    assert (scaled.max(-1) == 1).all()
    expected = (values - values.min(-1, keepdims=True)) / np.ptp(
        values, -1, keepdims=True
    )
    np.testing.assert_allclose(scaled, expected, atol=1e-6)


@pytest.mark.parametrize(
    "row",
    [
        [0.0, 0.0, 0.0],
        [7.0, 7.0, 7.0],
        [1e-45, 0.0, 1e-45],
        [np.nan, np.inf, -np.inf],
    ],
)
def test_a_constant_record_is_a_half_with_a_finite_gradient(row):
    values = tf.constant([row])
    with tf.GradientTape() as tape:
        tape.watch(values)
        scaled = MinMaxScale()(values)
        loss = tf.reduce_sum(scaled * [1.0, 2.0, 3.0])
    assert scaled.numpy().tolist() == [[0.5, 0.5, 0.5]]
    assert tape.gradient(loss, values).numpy().tolist() == [[0.0, 0.0, 0.0]]


def test_what_is_not_finite_counts_as_zero():
    scaled = MinMaxScale()(tf.constant([[np.nan, 2.0, -2.0], [np.inf, 1.0, -np.inf]]))
    assert scaled.numpy().tolist() == [[0.5, 1.0, 0.0], [0.0, 1.0, 0.0]]


def test_the_widest_range_is_finite():
    largest = np.finfo(np.float32).max
    scaled = MinMaxScale()(tf.constant([[largest, -largest, 0.0]]))
    assert scaled.numpy().tolist() == [[1.0, 0.0, 0.5]]


def test_the_gradient_is_that_of_the_formula():
    values = tf.constant([[0.0, 1.0, 4.0, 2.0]], tf.float64)
    layer = MinMaxScale(dtype="float64")
    (analytic,), (numeric,) = tf.test.compute_gradient(layer, [values])
    np.testing.assert_allclose(analytic, numeric, atol=1e-5)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
def test_half_precision_is_widened(policy):
    values = tf.constant([[1.0, 1.0 + 2.0**-12, 2.0]])
    scaled = MinMaxScale(dtype=policy)(values)
    assert scaled.dtype == tf.float32
    assert scaled.numpy()[0, 1] == 2.0**-12
    assert MinMaxScale(dtype=policy)(tf.cast(values, tf.float16)).dtype == tf.float32
