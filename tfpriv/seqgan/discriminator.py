"""The discriminator: a TextCNN that tells real sequences from generated ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv._validation import integer, non_negative
from tfpriv.seqgan.highway import Highway

SEQGAN_WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20)
SEQGAN_FILTERS = (100, 200, 200, 200, 200, 100, 100, 100, 100, 100, 160, 160)


@keras.saving.register_keras_serializable(package="tfpriv")
class Discriminator(keras.Model):
    """Embedding, convolutions, maximum over time, optional highway, two logits.

    Args:
        vocabulary_size: int V.
        max_length: int T.
        embedding_dim: int.
        widths: ints. Tokens under each kind of filter, none above `max_length`.
        filters: int, or one int a width.
        highway: bool. One highway layer behind the pooling.
        dropout: float in [0, 1). Before the output layer, in training only.
        output_l2: float. Weight of half the squared norm of the output layer.
        seed: int or None. Of the initial weights and of dropout.

    Call arguments:
        ids: int (batch, max_length).
        training: bool.

    Returns (call):
        float32 (batch, 2). Logits of generated (0) and real (1).

    Raises:
        InputError: a width above `max_length`, or filters that do not match widths.

    References:
        Kim 2014, arXiv:1408.5882; Yu et al. 2017, arXiv:1609.05473, section 3.3.
    """

    def __init__(
        self,
        vocabulary_size: int,
        max_length: int,
        embedding_dim: int = 64,
        widths: Sequence[int] = (3, 4, 5),
        filters: int | Sequence[int] = 100,
        *,
        highway: bool = False,
        dropout: float = 0.0,
        output_l2: float = 0.0,
        seed: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        # === Layers ===
        super().__init__(name=name, **kwargs)
        integer(
            vocabulary_size=vocabulary_size,
            max_length=max_length,
            embedding_dim=embedding_dim,
        )
        non_negative(dropout=dropout, output_l2=output_l2)
        widths = tuple(int(x) for x in widths)
        if isinstance(filters, int):
            filters = (filters,) * len(widths)
        filters = tuple(int(x) for x in filters)
        if not widths or len(widths) != len(filters):
            raise InputError(
                "Expected as many filters as widths, at least one, received "
                f"widths={widths} and filters={filters}."
            )
        if min(widths) < 1 or max(widths) > max_length:
            raise InputError(
                f"Expected widths from 1 to max_length={max_length}, "
                f"received widths={widths}."
            )
        seeds = iter(_seeds(seed, len(widths) + 5))
        initializers = keras.initializers
        self.embedding = keras.layers.Embedding(
            vocabulary_size,
            embedding_dim,
            embeddings_initializer=initializers.RandomUniform(-1, 1, seed=next(seeds)),
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.convolutions = [
            keras.layers.Conv1D(
                count,
                width,
                kernel_initializer=initializers.TruncatedNormal(
                    stddev=0.1, seed=next(seeds)
                ),
                bias_initializer=initializers.Constant(0.1),
                dtype=self.dtype_policy,
                name=f"width_{width}",
            )
            for width, count in zip(widths, filters, strict=True)
        ]
        self.highway_layer = (
            Highway(seed=next(seeds), dtype=self.dtype_policy, name="highway")
            if highway
            else None
        )
        self.dropout_layer = keras.layers.Dropout(
            dropout, seed=next(seeds), dtype=self.dtype_policy, name="dropout"
        )
        penalty = keras.regularizers.L2(output_l2 / 2) if output_l2 else None
        self.head = keras.layers.Dense(
            2,
            kernel_initializer=initializers.GlorotUniform(seed=next(seeds)),
            kernel_regularizer=penalty,
            bias_regularizer=penalty,
            dtype=self.dtype_policy,
            name="head",
        )
        self.embedding.build((None, max_length))
        for layer in self.convolutions:
            layer.build((None, max_length, embedding_dim))
        if self.highway_layer is not None:
            self.highway_layer.build((None, sum(filters)))
        self.head.build((None, sum(filters)))
        self.built = True

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.max_length = max_length
        self.embedding_dim = embedding_dim
        self.widths = widths
        self.filters = filters
        self.highway = highway
        self.dropout = dropout
        self.output_l2 = output_l2
        self.seed = seed

    @classmethod
    def seqgan(
        cls, vocabulary_size: int = 5000, max_length: int = 20, **kwargs: Any
    ) -> Discriminator:
        """SeqGAN's full discriminator: 12 widths, 1,720 filters, one highway layer.

        Widths above `max_length` are left out.

        Args:
            vocabulary_size: int V.
            max_length: int T.
            **kwargs: whatever is to differ.
        """
        fitting = [
            pair
            for pair in zip(SEQGAN_WIDTHS, SEQGAN_FILTERS, strict=True)
            if pair[0] <= max_length
        ]
        settings: dict[str, Any] = {
            "embedding_dim": 64,
            "widths": [width for width, _ in fitting],
            "filters": [count for _, count in fitting],
            "highway": True,
            "dropout": 0.25,
            "output_l2": 0.2,
        }
        return cls(vocabulary_size, max_length, **{**settings, **kwargs})

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: weights exist from the start."""

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """(batch, length) -> (batch, 2)."""
        return (input_shape[0], 2)

    def call(self, ids: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Logits, float32 (batch, 2)."""
        return self.classify(self.pooled(self.embedding(ids)), training=training)

    def pooled(self, embedded: tf.Tensor) -> tf.Tensor:
        """Features from embedded tokens (batch, T, dim): (batch, sum of filters)."""
        # The maximum commutes with ReLU; ReLU behind it touches T times less.
        features = [
            tf.nn.relu(tf.reduce_max(layer(embedded), axis=1))
            for layer in self.convolutions
        ]
        return tf.concat(features, axis=1)

    def classify(self, features: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Logits from pooled features, float (batch, sum of filters)."""
        if self.highway_layer is not None:
            features = self.highway_layer(features)
        features = self.dropout_layer(features, training=training)
        return tf.cast(self.head(features), tf.float32)

    def real_probability(self, ids: tf.Tensor) -> tf.Tensor:
        """Probability that each sequence is real: int (batch, T) -> float (batch,)."""
        return probability(self(ids, training=False))

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        config = super().get_config()
        config.update(
            vocabulary_size=self.vocabulary_size,
            max_length=self.max_length,
            embedding_dim=self.embedding_dim,
            widths=list(self.widths),
            filters=list(self.filters),
            highway=self.highway,
            dropout=self.dropout,
            output_l2=self.output_l2,
            seed=self.seed,
        )
        return config


def probability(logits: tf.Tensor) -> tf.Tensor:
    """Of real (1), from logits (batch, 2): float (batch,)."""
    return tf.sigmoid(logits[:, 1] - logits[:, 0])


def _seeds(seed: int | None, count: int) -> list[int | None]:
    if seed is None:
        return [None] * count
    states = np.random.SeedSequence(seed).generate_state(count)
    return [int(x) % 2**31 for x in states]
