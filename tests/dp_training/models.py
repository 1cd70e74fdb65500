"""Small models and losses that the tests of dp_training share."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers


def linear(dimension: int = 2) -> keras.Model:
    """A linear form without activation: the gradient of its output is (x, 1)."""
    return keras.Sequential([keras.Input((dimension,)), layers.Dense(1)])


def linear_loss(model: keras.Model, x: tf.Tensor) -> tf.Tensor:
    return model(x)[:, 0]


def logistic(dimension: int = 3) -> keras.Model:
    return keras.Sequential([keras.Input((dimension,)), layers.Dense(2)])


def text_cnn(vocabulary: int = 12, length: int = 6) -> keras.Model:
    """SeqGAN's discriminator in small: embedding, widths, max, highway, softmax."""
    ids = keras.Input((length,), dtype="int32")
    x = layers.Embedding(vocabulary, 4)(ids)
    x = layers.Concatenate()(
        [
            layers.GlobalMaxPooling1D()(layers.Conv1D(3, width, activation="tanh")(x))
            for width in (1, 2)
        ]
    )
    gate = layers.Dense(6, activation="sigmoid")(x)
    x = gate * layers.Dense(6, activation="tanh")(x) + (1.0 - gate) * x
    return keras.Model(ids, layers.Dense(2)(x))


def lstm(vocabulary: int = 12, length: int = 3) -> keras.Model:
    ids = keras.Input((length,), dtype="int32")
    x = layers.LSTM(2, unroll=True)(layers.Embedding(vocabulary, 2)(ids))
    return keras.Model(ids, layers.Dense(2)(x))


def cross_entropy(model: keras.Model, x: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return keras.losses.sparse_categorical_crossentropy(
        labels, model(x), from_logits=True
    )
