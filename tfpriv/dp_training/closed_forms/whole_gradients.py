"""Gradients that are written out, one an example: biases, scales, small matrices."""

from __future__ import annotations

import tensorflow as tf

from tfpriv.dp_training.closed_forms.form import (
    GradientForm,
    Size,
    row_sums,
    scaled,
    wide,
)


class WholeGradients(GradientForm):
    """One gradient an example, as it is.

    Args:
        gradients: float64 (rows, *shape).
        shape: the variable's.
    """

    num_factors = 1

    def __init__(self, gradients: tf.Tensor, shape: tuple[int, ...]) -> None:
        super().__init__(shape)
        self.gradients = gradients

    def size(self) -> Size:
        """See `GradientForm`."""
        squares = row_sums(tf.square(self._flat()))
        return Size(squares, squares, tf.zeros_like(squares))

    def factors(self, scale: tf.Tensor, kept: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """See `GradientForm`."""
        return (scaled(self._flat(), scale, kept),)

    def total(self, factors: tuple[tf.Tensor, ...], narrow: bool) -> tf.Tensor:
        """See `GradientForm`; always in float64."""
        del narrow
        (gradients,) = factors
        return tf.reshape(tf.reduce_sum(gradients, axis=0), self.shape)

    def _flat(self) -> tf.Tensor:
        return tf.reshape(self.gradients, [self.gradients.shape[0], -1])


def elementwise_gradients(
    delta: tf.Tensor,
    other: tf.Tensor | None,
    view: tuple[int, ...],
    shape: tuple[int, ...],
) -> WholeGradients:
    """The gradient of w in out = x + w or out = x * w, w broadcast.

    Args:
        delta: (rows, ...). Gradient of the loss by `out`.
        other: x of the product, to be broadcast to `delta`; None for a sum.
        view: shape in which w enters, aligned with the last axes of `delta`; no
            axis of it lies on the rows, unless of size 1.
        shape: the variable's.
    """
    rank = delta.shape.rank
    view = (1,) * (rank - len(view)) + tuple(view)
    product = wide(delta)
    if other is not None:
        other = tf.broadcast_to(other, delta.shape)
        product *= wide(other)
    axes = [axis for axis in range(1, rank) if view[axis] == 1]
    gradients = tf.reduce_sum(product, axis=axes) if axes else product
    gradients = tf.reshape(gradients, [delta.shape[0], *shape])
    return WholeGradients(gradients, shape)


def added(forms: list[WholeGradients]) -> WholeGradients:
    """The gradient of a variable that is used several times."""
    return WholeGradients(tf.add_n([form.gradients for form in forms]), forms[0].shape)
