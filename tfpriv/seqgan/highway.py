"""A highway layer."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="tfpriv")
class Highway(keras.layers.Layer):
    """y = g * relu(W x + b) + (1 - g) * x with the gate g = sigmoid(V x + c).

    Args:
        gate_bias: float. Initial c; negative lets the input through at first.
        seed: int or None. Of the initial weights.

    Call arguments:
        inputs: float (batch, features).

    Returns (call):
        float (batch, features).

    References:
        Srivastava et al. 2015, "Highway Networks", arXiv:1505.00387, equation 3.
    """

    def __init__(
        self, gate_bias: float = -2.0, seed: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.gate_bias = gate_bias
        self.seed = seed

    def build(self, input_shape: tuple) -> None:
        """Makes both dense layers."""
        features = input_shape[-1]
        glorot = keras.initializers.GlorotUniform
        seeds = (None, None) if self.seed is None else (self.seed, self.seed + 1)
        self.transform = keras.layers.Dense(
            features,
            activation="relu",
            kernel_initializer=glorot(seed=seeds[0]),
            dtype=self.dtype_policy,
            name="transform",
        )
        self.gate = keras.layers.Dense(
            features,
            activation="sigmoid",
            kernel_initializer=glorot(seed=seeds[1]),
            bias_initializer=keras.initializers.Constant(self.gate_bias),
            dtype=self.dtype_policy,
            name="gate",
        )
        self.transform.build(input_shape)
        self.gate.build(input_shape)
        self.built = True

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The mix, of the input's shape."""
        gate = self.gate(inputs)
        return gate * self.transform(inputs) + (1 - gate) * inputs

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        config = super().get_config()
        config.update(gate_bias=self.gate_bias, seed=self.seed)
        return config
