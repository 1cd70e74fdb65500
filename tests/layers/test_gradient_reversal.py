import numpy as np
import pytest
import tensorflow as tf

from tests.layers.layer_checks import run_layer_test
from tfpriv._errors import InputError
from tfpriv.layers import GradientReversal


def test_layer(tmp_path):
    model, loaded = run_layer_test(
        GradientReversal(0.5), tf.random.normal([3, 5]), tmp_path
    )
    values = tf.random.normal([4, 5])
    assert np.array_equal(model(values), loaded(values))


@pytest.mark.parametrize("weight", [1.0, 0.25, 0.0, -2.0])
def test_the_value_passes_and_the_gradient_is_reversed(weight):
    values = tf.constant([[1.0, -2.0, 3.0]])
    for layer in (GradientReversal(weight), tf.function(GradientReversal(weight))):
        with tf.GradientTape() as tape:
            tape.watch(values)
            passed = layer(values)
            loss = tf.reduce_sum(passed**2)
        assert np.array_equal(passed, values)
        expected = -weight * 2 * values
        np.testing.assert_allclose(tape.gradient(loss, values), expected)


def test_half_precision_stays():
    layer = GradientReversal(dtype="mixed_float16")
    assert layer(tf.ones([2, 2])).dtype == tf.float16


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), "1", None])
def test_bad_weight(weight):
    with pytest.raises(InputError, match="weight"):
        GradientReversal(weight)
