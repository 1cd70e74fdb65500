"""Per-record scaling to [0, 1]."""

from __future__ import annotations

import keras
import tensorflow as tf

from tfpriv.layers._wide_layer import WideLayer

# Half a range below this is none: its reciprocal would overflow float32.
_SMALLEST = 2.0**-100


@keras.saving.register_keras_serializable(package="tfpriv")
class MinMaxScale(WideLayer):
    """Scales each record to [0, 1]: (x - min x) / (max x - min x) on the last axis.

    A record whose entries are all alike becomes .5 everywhere, with a gradient of 0.
    NaN and infinities count as 0. The output's L1 diameter is its dimension d, not
    1: Laplace noise of scale b on every coordinate is (d/b)-differentially private
    (Dwork, McSherry, Nissim and Smith 2006).

    >>> values = tf.constant([[1.0, 3.0, 2.0], [7.0, 7.0, 7.0]])
    >>> MinMaxScale()(values).numpy().tolist()
    [[0.0, 1.0, 0.5], [0.5, 0.5, 0.5]]

    Call arguments:
        inputs: float (..., d).

    Returns (call):
        float32 (float64 under that policy) of the same shape.
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The scaled records."""
        # Of halves, so that the range of the largest numbers is still finite.
        values = self.widen(inputs) / 2
        low = tf.reduce_min(values, axis=-1, keepdims=True)
        span = tf.reduce_max(values, axis=-1, keepdims=True) - low
        constant = span < _SMALLEST
        # Both branches of a `where` are differentiated: none may divide by zero.
        scaled = (values - low) / tf.where(constant, tf.ones_like(span), span)
        return tf.where(constant, 0.5, tf.clip_by_value(scaled, 0.0, 1.0))
