from __future__ import annotations

from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tests.dp_training import models
from tfpriv._errors import InputError
from tfpriv.dp_training import ClippingEngine, make_engine, register_engine


def batch(kind: str, size: int = 5):
    generator = np.random.default_rng(1)
    labels = tf.constant(generator.integers(0, 2, size))
    if kind == "logistic":
        x = generator.normal(size=(size, 3)).astype("float32")
    else:
        # Few tokens, so that rows repeat them and share them.
        length = 3 if kind == "lstm" else 6
        x = generator.integers(0, 4, (size, length)).astype("int32")
    return tf.constant(x), labels


def sums(name, model, inputs, mask=None, clip=0.05, loss=models.cross_entropy):
    engine = make_engine(name, model, loss, clip)
    mask = tf.ones(len(inputs[0]), bool) if mask is None else tf.constant(mask)
    run = tf.function(engine.clipped_sum, autograph=False)
    return [s.numpy() for s in run(inputs, mask)]


@pytest.mark.parametrize("kind", ["logistic", "text_cnn", "lstm"])
def test_loop_equals_tf_privacys_jacobian(kind):
    model = getattr(models, kind)()
    inputs = batch(kind)
    mask = [True, False, True, True, True]
    for ours, theirs in zip(
        sums("loop", model, inputs, mask),
        sums("jacobian", model, inputs, mask),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
        assert np.abs(theirs).max() > 0


def test_without_clipping_the_sum_is_the_gradient_of_the_summed_loss():
    model = models.text_cnn()
    inputs = batch("text_cnn")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(models.cross_entropy(model, *inputs))
    variables = [v.value for v in model.trainable_variables]
    gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, variables)]
    for ours, plain in zip(
        sums("loop", model, inputs, clip=1e2), gradients, strict=True
    ):
        np.testing.assert_allclose(ours, plain, atol=1e-5)


def test_a_repeated_token_is_summed_before_it_is_normed():
    # One row that holds a token four times: its gradient is 4, not 4 ones.
    ids = keras.Input((4,), dtype="int32")
    embedded = layers.Embedding(3, 1)(ids)
    model = keras.Model(ids, layers.Flatten()(embedded))
    (table,) = sums(
        "loop",
        model,
        (tf.constant([[2, 2, 2, 2]]),),
        clip=1.0,
        loss=lambda model, ids: tf.reduce_sum(model(ids), axis=1),
    )
    np.testing.assert_allclose(table[:, 0], [0, 0, 1], rtol=1e-6)


def test_a_gradient_that_is_not_finite_adds_nothing():
    rows = tf.constant([[1.0, 0.0], [np.nan, 0.0], [np.inf, 1.0]])
    kernel, bias = sums(
        "loop", models.linear(), (rows,), clip=1.0, loss=models.linear_loss
    )
    np.testing.assert_allclose(kernel[:, 0], [0.5**0.5, 0], rtol=1e-6)
    np.testing.assert_allclose(bias, [0.5**0.5], rtol=1e-6)


@pytest.mark.parametrize("name", ["loop", "jacobian"])
def test_frozen_layers_have_no_gradient_and_unused_ones_a_zero_one(name):
    model = models.logistic()
    model.add(layers.Dense(2))
    model.layers[0].trainable = False

    def loss(model, x):
        return tf.reduce_sum(tf.matmul(x[:, :2], model.layers[1].kernel), axis=1)

    kernel, bias = sums(name, model, (tf.ones((3, 3)),), clip=1e3, loss=loss)
    np.testing.assert_allclose(kernel, np.full((2, 2), 3.0))
    np.testing.assert_allclose(bias, np.zeros(2))


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "bfloat16", "float64"])
def test_sums_are_float32_or_wider_whatever_the_model_computes_in(policy):
    keras.config.set_dtype_policy(policy)
    try:
        model = models.linear(300)
    finally:
        keras.config.set_dtype_policy("float32")
    rows = tf.ones((2, 300)) * 7.0
    result = sums("loop", model, (rows,), clip=1.0, loss=models.linear_loss)
    assert {s.dtype.name for s in result} <= {"float32", "float64"}
    # Two gradients of one direction, each of length 1 to float32's precision.
    total = np.sqrt(sum(np.sum(np.square(s, dtype="float64")) for s in result))
    assert total == pytest.approx(2.0, rel=1e-5)


def test_every_example_has_its_own_dropout():
    model = keras.Sequential(
        [keras.Input((200,)), layers.Dropout(0.5), layers.Dense(1, use_bias=False)]
    )
    (kernel,) = sums(
        "loop",
        model,
        (tf.ones((2, 200)),),
        clip=1e6,
        loss=lambda model, x: model(x, training=True)[:, 0],
    )
    # A kept coordinate counts 2: kept by none, by one or by both examples.
    assert set(kernel.ravel()) == {0.0, 2.0, 4.0}


def float32(**limits):
    return st.floats(width=32, **limits)


@hypothesis.given(
    st.lists(float32(allow_nan=False, allow_infinity=False), min_size=1, max_size=9),
    st.floats(2.0**-60, 2.0**60),
)
@hypothesis.example([3.4e38] * 9, 2.0**-60)
@hypothesis.example([1e-45, 0.0, -1e-45], 1.0)
@hypothesis.example([0.1, 0.2, -0.3], 0.3)
def test_units_are_never_longer_than_the_clip_and_hardly_shorter(values, clip):
    engine = make_engine("loop", models.linear(), models.linear_loss, clip)
    values = np.array(values, np.float32)
    half = len(values) // 2
    parts = engine.to_units([tf.constant(values[:half]), tf.constant(values[half:])])
    assert {part.dtype for part in parts} == {tf.int64}
    units = np.concatenate(parts)
    length = sum(Fraction(int(x)) ** 2 for x in units) * Fraction(engine.unit) ** 2
    assert length <= Fraction(clip) ** 2
    norm = np.linalg.norm(values.astype("float64"))
    expected = values.astype("float64") * min(1.0, clip / max(norm, 1e-300))
    assert np.abs(units * engine.unit - expected).max() <= clip * 2.0**-21
    assert np.all(units * np.sign(values) >= 0)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_units_of_a_gradient_that_is_not_finite_are_zero(odd):
    engine = make_engine("loop", models.linear(), models.linear_loss, 1.0)
    units = engine.to_units([tf.constant([odd, 1.0]), tf.constant([[0.0, 2.0]])])
    assert not any(np.any(part) for part in units)


def test_the_rows_of_a_table_keep_to_the_clip_however_tokens_repeat():
    ids = keras.Input((6,), dtype="int32")
    embedded = layers.Embedding(5, 3)(ids)
    model = keras.Model(ids, layers.Dense(1)(layers.Flatten()(embedded)))
    rows = np.random.default_rng(0).integers(0, 5, (40, 6)).astype("int32")
    engine = make_engine("loop", model, lambda m, x: m(x)[:, 0] * 1e3, 0.7)
    run = tf.function(engine.clipped_sum, autograph=False)
    total = [np.zeros(v.shape) for v in engine.variables]
    for row in rows:
        alone = run((tf.constant(row[None]),), tf.constant([True]))
        flat = [
            Fraction(float(x)) for x in np.concatenate([np.ravel(s) for s in alone])
        ]
        assert 0.69**2 < sum(x * x for x in flat) <= Fraction(0.7) ** 2
        total = [a + b for a, b in zip(total, alone, strict=True)]
    together = run((tf.constant(rows),), tf.ones(40, bool))
    for a, b in zip(total, together, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not any(np.any(s) for s in run((tf.constant(rows),), tf.zeros(40, bool)))


def test_a_loss_over_the_batch_is_refused():
    def loss(model, x):
        return tf.reduce_mean(model(x))

    with pytest.raises(InputError, match="one loss an example"):
        sums("loop", models.linear(), (tf.ones((2, 2)),), loss=loss)


def test_batch_normalisation_is_refused_by_name():
    model = models.linear()
    model.add(layers.BatchNormalization(name="mixer"))
    with pytest.raises(InputError, match="mixer"):
        make_engine("loop", model, models.linear_loss, 1.0)


def test_a_model_that_is_not_built_is_refused():
    model = keras.Sequential([layers.Dense(1)])
    with pytest.raises(InputError, match="built model"):
        make_engine("loop", model, models.linear_loss, 1.0)


@pytest.mark.parametrize("clip", [0.0, -1.0, float("nan"), float("inf"), 1e-30, 1e30])
def test_a_clip_that_does_not_clip_is_refused(clip):
    with pytest.raises(InputError, match="l2_norm_clip"):
        make_engine("loop", models.linear(), models.linear_loss, clip)


def test_an_unknown_engine_is_refused_with_the_names_of_the_known():
    with pytest.raises(InputError, match="bookkeeping, jacobian, loop"):
        make_engine("ghost", models.linear(), models.linear_loss, 1.0)


def test_an_engine_can_be_added_under_a_name(monkeypatch):
    monkeypatch.setattr("tfpriv.dp_training.clipping._ENGINES", {})

    @register_engine("zero")
    class ZeroEngine(ClippingEngine):
        def clipped_sum(self, inputs, mask):
            return self.zeros()

    engine = make_engine("zero", models.linear(), models.linear_loss, 1.0)
    assert isinstance(engine, ZeroEngine)
    assert engine.name == "zero"
