"""What the layers share whose arithmetic must not be narrower than float32."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf


class WideLayer(keras.layers.Layer):
    """A layer that takes its inputs as they are and answers in float32 or wider.

    Under "mixed_float16" or "bfloat16" Keras would cast inputs to half precision
    first. Clipping and noise need more, so such a layer is not autocast; it computes
    and answers in the compute dtype of its policy, or in float32 where that is
    narrower.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "autocast": False})
        self.supports_masking = True

    @property
    def output_dtype(self) -> str:
        """The dtype of what `call` returns: "float32" or "float64"."""
        return "float64" if self.compute_dtype == "float64" else "float32"

    def widen(self, inputs: Any) -> tf.Tensor:
        """Returns `inputs` in the output's dtype, NaN and infinities as 0.

        A gradient does not pass an entry that was replaced.
        """
        values = tf.cast(inputs, self.output_dtype)
        return tf.where(tf.math.is_finite(values), values, tf.zeros_like(values))

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """The shape of the input."""
        return tuple(input_shape)

    def compute_output_spec(self, inputs: Any, **kwargs: Any) -> keras.KerasTensor:
        """Shape and dtype of the output, for functional models."""
        shape = self.compute_output_shape(inputs.shape)
        return keras.KerasTensor(shape, self.output_dtype)
