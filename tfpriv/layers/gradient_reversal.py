"""Gradient reversal."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfpriv._validation import finite


@keras.saving.register_keras_serializable(package="tfpriv")
class GradientReversal(keras.layers.Layer):
    """Passes its input on and sends -`weight` times the gradient back.

    What follows it learns its own task; what precedes it unlearns that task.

    Args:
        weight: float. Lambda in the papers. Read when a model is traced: set it
            before `compile`.

    Call arguments:
        inputs: float of any shape.

    Returns (call):
        The input.

    Raises:
        InputError: a weight that is not finite.

    References:
        Ganin and Lempitsky 2015, "Unsupervised domain adaptation by
        backpropagation", arXiv:1409.7495, equations 7 and 8.
    """

    def __init__(self, weight: float = 1.0, **kwargs: Any) -> None:
        finite(weight=weight)
        super().__init__(**kwargs)
        self.weight = float(weight)
        self.supports_masking = True

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The input, with its gradient reversed."""

        @tf.custom_gradient
        def reverse(values: tf.Tensor) -> tuple[tf.Tensor, Any]:
            return tf.identity(values), lambda upstream: -self.weight * upstream

        return reverse(tf.convert_to_tensor(inputs))

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """The shape of the input."""
        return tuple(input_shape)

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        config = super().get_config()
        config.update(weight=self.weight)
        return config
