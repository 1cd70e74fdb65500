import numpy as np
import pytest
import tensorflow as tf

from tests.layers.layer_checks import run_layer_test
from tfpriv._errors import InputError
from tfpriv.layers import SequencePooling


def outputs(dtype=tf.float32):
    rng = np.random.default_rng(0)
    return {
        "sequence_output": tf.constant(rng.normal(size=(3, 4, 5)), dtype),
        "pooled_output": tf.constant(rng.normal(size=(3, 5)), dtype),
        "padding_mask": tf.constant([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]),
    }


@pytest.mark.parametrize("kind", ["mean", "cls", "pooled"])
def test_layer(kind, tmp_path):
    model, loaded = run_layer_test(SequencePooling(kind), outputs(), tmp_path)
    assert np.array_equal(model(outputs()), loaded(outputs()))


def test_each_kind():
    given = outputs()
    sequence = given["sequence_output"].numpy()
    mean = SequencePooling("mean")(given).numpy()
    expected = [sequence[0].mean(0), sequence[1, :2].mean(0), np.zeros(5)]
    np.testing.assert_allclose(mean, expected, atol=1e-6)
    assert np.array_equal(SequencePooling("cls")(given), sequence[:, 0])
    assert np.array_equal(SequencePooling("pooled")(given), given["pooled_output"])


def test_what_a_padded_position_holds_does_not_matter():
    given = outputs()
    expected = SequencePooling()(given)
    padded = given["padding_mask"][..., tf.newaxis] == 0
    given["sequence_output"] = tf.where(padded, np.nan, given["sequence_output"])
    with tf.GradientTape() as tape:
        tape.watch(given["sequence_output"])
        pooled = SequencePooling()(given)
        loss = tf.reduce_sum(pooled)
    assert np.array_equal(pooled, expected)
    gradient = tape.gradient(loss, given["sequence_output"]).numpy()
    assert np.isfinite(gradient).all()
    assert (gradient[1, 2:] == 0).all()


def test_half_precision_is_widened_before_the_sum():
    given = {
        "sequence_output": tf.fill([1, 600, 2], tf.constant(300.0, tf.float16)),
        "padding_mask": tf.ones([1, 600], tf.bool),
    }
    pooled = SequencePooling(dtype="mixed_float16")(given)
    assert pooled.dtype == tf.float32
    np.testing.assert_allclose(pooled, 300.0)


def test_bad_input():
    with pytest.raises(InputError, match="kind"):
        SequencePooling("max")
    with pytest.raises(InputError, match="padding_mask"):
        SequencePooling()({"sequence_output": tf.zeros([1, 2, 3])})
    with pytest.raises(InputError, match="pooled_output"):
        SequencePooling("pooled")(tf.zeros([1, 2, 3]))
