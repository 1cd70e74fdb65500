"""Clipping of each record to an L1 ball."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfpriv._validation import positive
from tfpriv.layers._wide_layer import WideLayer


@keras.saving.register_keras_serializable(package="tfpriv")
class L1Clip(WideLayer):
    """Scales a record down so that its L1 norm is at most `radius`: x min(1, C/|x|_1).

    Never up; zeros stay zeros; NaN and infinities count as 0. The norm is right up
    to the rounding of the output's dtype: `LaplaceNoise` enforces its domain anew in
    whole numbers, so no guarantee hangs on that rounding.

    >>> values = tf.constant([[3.0, -1.0], [0.25, 0.5]])
    >>> L1Clip(radius=1.0)(values).numpy().tolist()
    [[0.75, -0.25], [0.25, 0.5]]

    Args:
        radius: float > 0. C, the largest L1 norm on the last axis.

    Call arguments:
        inputs: float (..., d).

    Returns (call):
        float32 (float64 under that policy) of the same shape.

    Raises:
        InputError: a radius that is not finite and positive.
    """

    def __init__(self, radius: float = 1.0, **kwargs: Any) -> None:
        positive(radius=radius)
        super().__init__(**kwargs)
        self.radius = float(radius)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The clipped records."""
        # In float64 the norm of float32 numbers cannot overflow.
        values = tf.cast(self.widen(inputs), tf.float64)
        norm = tf.reduce_sum(tf.abs(values), axis=-1, keepdims=True)
        clipped = values * (self.radius / tf.maximum(norm, self.radius))
        return tf.cast(clipped, self.output_dtype)

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        config = super().get_config()
        config.update(radius=self.radius)
        return config
