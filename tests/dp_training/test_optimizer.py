from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests.dp_training import models
from tfpriv._errors import InputError
from tfpriv.dp_training import (
    DPKerasAdamOptimizer,
    make_stock_step,
    stock_dp_adam,
)


def values(model) -> list[tf.Variable]:
    return [v.value for v in model.trainable_variables]


def batch(size: int = 6):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(size, 3)).astype("float32")
    return tf.constant(x), tf.constant(generator.integers(0, 2, size))


def test_minimize_without_noise_equals_tf_privacys_stock_optimizer():
    ours, theirs = models.logistic(), models.logistic()
    theirs.set_weights(ours.get_weights())
    inputs = batch()
    private = DPKerasAdamOptimizer(0.1, 0.0, 6.0, learning_rate=0.1)
    stock = stock_dp_adam(0.1, 0.0, learning_rate=0.1)
    for optimizer, model in ((private, ours), (stock, theirs)):
        step = make_stock_step(optimizer, model, models.cross_entropy)
        step(*inputs)
        step(*inputs)
    for a, b in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_without_noise_and_clipping_it_is_adam():
    private, plain = tf.Variable([1.0, -2.0]), tf.Variable([1.0, -2.0])
    optimizer = DPKerasAdamOptimizer(1.0, 0.0, 4.0, learning_rate=0.1)
    adam = tf_keras.optimizers.legacy.Adam(0.1)
    for total in ([4.0, 8.0], [-2.0, 1.0]):
        optimizer.apply_clipped_sums([private], [tf.constant(total)])
        adam.apply_gradients([(tf.constant(total) / 4.0, plain)])
    np.testing.assert_allclose(private, plain, rtol=1e-6)


def test_public_sums_join_the_mean_without_noise_of_their_own():
    optimizer = DPKerasAdamOptimizer(1.0, 0.0, 4.0)
    (mean,) = optimizer.noised_mean(
        [tf.constant([3.0])], [tf.constant([5.0])], num_public=12
    )
    assert float(mean[0]) == 0.5


def test_the_noise_has_the_standard_deviation_of_the_formula():
    optimizer = DPKerasAdamOptimizer(2.0, 3.0, 10.0)
    (mean,) = optimizer.noised_mean([tf.zeros(20_000)], num_public=5)
    assert float(tf.math.reduce_std(mean)) == pytest.approx(2 * 3 / 15, rel=0.03)


def test_a_regulariser_is_neither_clipped_nor_divided():
    variable = tf.Variable([10.0])
    optimizer = DPKerasAdamOptimizer(1e-3, 0.0, 1e6, learning_rate=0.0)
    optimizer.apply_clipped_sums(
        [variable], [tf.zeros(1)], regulariser=lambda: tf.reduce_sum(variable**2)
    )
    first_moment = optimizer.get_slot(variable, "m")
    np.testing.assert_allclose(first_moment, [0.1 * 20.0], rtol=1e-6)


def test_the_configuration_holds_no_noise_state():
    optimizer = DPKerasAdamOptimizer(2.0, 3.0, 10.0, learning_rate=0.5)
    config = optimizer.get_config()
    assert not {"seed", "global_state"} & set(config)
    again = DPKerasAdamOptimizer.from_config(config)
    assert again.get_config() == config


def test_a_gradient_that_was_not_made_private_is_refused():
    variable = tf.Variable([1.0])
    optimizer = DPKerasAdamOptimizer(1.0, 1.0, 4.0)
    with pytest.raises(InputError, match="persistent tape"):
        optimizer.minimize(lambda: variable**2, [variable])
    with pytest.raises(AssertionError):
        optimizer.apply_gradients([(tf.ones(1), variable)])


@pytest.mark.parametrize(
    "numbers", [(0.0, 1.0, 4.0), (1.0, -1.0, 4.0), (1.0, float("nan"), 4.0), (1, 1, 0)]
)
def test_numbers_out_of_range_are_refused(numbers):
    with pytest.raises(InputError):
        DPKerasAdamOptimizer(*numbers)


def test_importing_the_package_imports_no_tensorflow():
    code = "import sys, tfpriv.dp_training; print('tensorflow' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"
