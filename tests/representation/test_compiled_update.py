"""The update is the optimizer's own on whole gradients, compiled where it should be."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfpriv.representation import compiled_update
from tfpriv.representation.compiled_update import CompiledUpdate

OPTIMIZERS = {
    "adamw": lambda: keras.optimizers.AdamW(
        keras.optimizers.schedules.CosineDecay(0.1, 5), weight_decay=0.05
    ),
    "clipped": lambda: keras.optimizers.Adam(0.1, global_clipnorm=0.5),
    "accumulated": lambda: keras.optimizers.Adam(0.1, gradient_accumulation_steps=2),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True),
    "loss scale": lambda: keras.optimizers.LossScaleOptimizer(
        keras.optimizers.Adam(0.1)
    ),
}


def updated(monkeypatch, least: int, make):
    """Weights after five steps on the same gradients, and what updated them."""
    monkeypatch.setattr(compiled_update, "_LEAST_WEIGHTS", least)
    variables = new_variables()
    optimizer = make()
    optimizer.build(variables)
    update = CompiledUpdate(optimizer, variables)
    step = tf.function(lambda *gradients: update([*gradients, None]))
    for gradients in batches():
        step(*gradients)
    return [v.numpy() for v in variables], update


def reference(make, convert):
    """The same steps by the optimizer itself, eagerly."""
    variables = new_variables()
    optimizer = make()
    optimizer.build(variables)
    for rows, gradient in batches():
        optimizer.apply([convert(rows), gradient, tf.zeros([2])], variables)
    return [v.numpy() for v in variables]


def new_variables():
    shapes = ((6, 2), (3,), (2,))
    return [keras.Variable(np.ones(shape), dtype="float32") for shape in shapes]


def batches():
    """Gradients of a table, as rows of which some repeat, and of a vector."""
    rng = np.random.default_rng(0)
    for count in (3, 1, 4, 3, 2):
        words = tf.constant(rng.integers(0, 6, count))
        rows = tf.constant(rng.normal(size=(count, 2)), tf.float32)
        vector = tf.constant(rng.normal(size=3), tf.float32)
        yield tf.IndexedSlices(rows, words, tf.constant([6, 2], tf.int64)), vector


@pytest.mark.parametrize("least", [0, 1000])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_weights_are_those_of_the_optimizer_on_whole_gradients(
    monkeypatch, name, least
):
    got, _ = updated(monkeypatch, least, OPTIMIZERS[name])
    expected = reference(OPTIMIZERS[name], tf.convert_to_tensor)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-7)
    assert np.abs(got[1] - 1).min() > 1e-3


def test_rows_of_one_word_are_added_up_before_they_are_squared(monkeypatch):
    """Keras does it the other way round; were that mended, this would tell."""
    got, _ = updated(monkeypatch, 0, OPTIMIZERS["adamw"])
    twin = reference(OPTIMIZERS["adamw"], lambda rows: rows)
    assert np.abs(got[0] - twin[0]).max() > 0.01


@pytest.mark.parametrize(
    ("name", "least", "compiled"),
    [("adamw", 0, True), ("adamw", 1000, False), ("loss scale", 0, False)],
)
def test_large_models_are_compiled_once_whatever_rows_a_batch_has(
    monkeypatch, name, least, compiled
):
    _, update = updated(monkeypatch, least, OPTIMIZERS[name])
    assert update._compiled.experimental_get_tracing_count() == int(compiled)


def test_under_a_strategy_nothing_is_compiled(monkeypatch):
    monkeypatch.setattr(compiled_update, "_LEAST_WEIGHTS", 0)
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        weights = keras.Variable(np.ones(3), dtype="float32")
        optimizer = keras.optimizers.Adam(0.1)
        optimizer.build([weights])
    update = CompiledUpdate(optimizer, [weights])
    step = tf.function(lambda: update([tf.ones(3)]))
    strategy.run(step)
    np.testing.assert_allclose(weights.numpy(), 0.9, rtol=1e-5)
    assert update._compiled.experimental_get_tracing_count() == 0
