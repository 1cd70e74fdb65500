"""The plain clipping engine: one example after the other, any model."""

from __future__ import annotations

import tensorflow as tf

from tfpriv.dp_training.clipping import ClippingEngine, register_engine, wide_dtype

_Gradient = tf.Tensor | tf.IndexedSlices | None


@register_engine("loop")
class LoopEngine(ClippingEngine):
    """Takes one gradient an example in a graph loop and adds it where it belongs.

    It makes no assumption about the layers, so it is the engine that faster ones
    are compared with and fall back to. Inside a tf.function the loop is a graph
    loop: no Python runs per example. Padding costs nothing, since masked rows
    are never looked at. Gradients of embedding tables stay sparse: only the rows
    that the example's tokens name are normed and added, repeated tokens being
    summed before they are normed.
    """

    def clipped_sum(
        self, inputs: tuple[tf.Tensor, ...], mask: tf.Tensor
    ) -> list[tf.Tensor]:
        """See `ClippingEngine.clipped_sum`."""
        rows = tf.cast(tf.reshape(tf.where(mask), [-1]), tf.int32)
        count = tf.size(rows)

        def add_example(
            step: tf.Tensor, sums: list[tf.Tensor]
        ) -> tuple[tf.Tensor, list[tf.Tensor]]:
            example = tuple(x[rows[step]][tf.newaxis] for x in inputs)
            gradients = self._example_gradients(example)
            scale = self._scale(gradients)
            return step + 1, [
                _add_scaled(total, gradient, scale)
                for total, gradient in zip(sums, gradients, strict=True)
            ]

        _, sums = tf.while_loop(
            lambda step, _: step < count, add_example, (tf.constant(0), self.zeros())
        )
        return sums

    def _example_gradients(self, example: tuple[tf.Tensor, ...]) -> list[_Gradient]:
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self.variables)
            losses = self.losses(example)
        return [_widened(g) for g in tape.gradient(losses, self.variables)]

    def _scale(self, gradients: list[_Gradient]) -> tf.Tensor:
        squares = [_squared_norm(g) for g in gradients if g is not None]
        if not squares:
            return tf.constant(0.0)
        norm = tf.sqrt(tf.add_n([tf.cast(s, tf.float32) for s in squares]))
        scale = self.l2_norm_clip / tf.maximum(norm, self.l2_norm_clip)
        return tf.where(tf.math.is_finite(norm), scale, 0.0)


def _widened(gradient: _Gradient) -> _Gradient:
    # A norm taken in half precision would let an example be clipped too little.
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.cast(gradient.values, wide_dtype(gradient.dtype))
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    if gradient is None:
        return None
    return tf.cast(gradient, wide_dtype(gradient.dtype))


def _squared_norm(gradient: tf.Tensor | tf.IndexedSlices) -> tf.Tensor:
    if isinstance(gradient, tf.IndexedSlices):
        rows, position = tf.unique(gradient.indices)
        gradient = tf.math.unsorted_segment_sum(
            gradient.values, position, tf.size(rows)
        )
    return 2.0 * tf.nn.l2_loss(gradient)


def _add_scaled(total: tf.Tensor, gradient: _Gradient, scale: tf.Tensor) -> tf.Tensor:
    if gradient is None:
        return total
    scale = tf.cast(scale, total.dtype)
    # The scale of a gradient that is not finite is 0, and 0 * NaN must be 0.
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.math.multiply_no_nan(gradient.values, scale)
        return tf.tensor_scatter_nd_add(total, gradient.indices[:, tf.newaxis], values)
    return total + tf.math.multiply_no_nan(gradient, scale)
