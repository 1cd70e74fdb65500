"""What every Keras layer of this package must do, and bits that can be replayed."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tfpriv.layers import _randomness


def flat(outputs):
    return [np.asarray(output) for output in tf.nest.flatten(outputs)]


def run_layer_test(layer, inputs, folder):
    """Config, symbolic shapes and dtypes, and a model that loads from a file."""
    config = layer.get_config()
    again = type(layer).from_config(config)
    assert again.get_config() == config
    registered = keras.saving.get_registered_name(type(layer))
    assert registered == f"tfpriv>{type(layer).__name__}"
    outputs = tf.nest.flatten(layer(inputs))

    def symbol_of(value, name=None):
        return keras.Input(value.shape[1:], dtype=value.dtype.name, name=name)

    symbols = (
        {name: symbol_of(value, name) for name, value in inputs.items()}
        if isinstance(inputs, dict)
        else symbol_of(inputs)
    )
    spec = layer(symbols)
    for symbol, output in zip(tf.nest.flatten(spec), outputs, strict=True):
        assert symbol.shape == (None, *output.shape[1:])
        assert symbol.dtype == output.dtype.name
    shapes = layer.compute_output_shape(
        {name: value.shape for name, value in inputs.items()}
        if isinstance(inputs, dict)
        else inputs.shape
    )
    assert tf.nest.flatten(shapes) == [
        size for output in outputs for size in output.shape
    ]

    model = keras.Model(symbols, spec)
    path = folder / "model.keras"
    model.save(path)
    loaded = keras.models.load_model(path)  # no custom_objects
    for ours, theirs in zip(outputs, flat(loaded(inputs)), strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
    assert loaded.layers[-1].get_config() == layer.get_config()
    return model, loaded


def replay_bits(monkeypatch, seed=0):
    """Makes every draw start from the same bits, for tests that compare two inputs."""

    def words(shape):
        bits = np.random.default_rng(seed).integers(
            2**32, size=tuple(np.asarray(shape)), dtype=np.uint32
        )
        return tf.constant(bits)

    monkeypatch.setattr(_randomness, "fresh_words", words)
