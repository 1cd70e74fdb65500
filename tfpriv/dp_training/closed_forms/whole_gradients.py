"""Gradients that are written out, one an example: biases, scales, small matrices."""

from __future__ import annotations

import math

import tensorflow as tf

from tfpriv.dp_training.clipping import wide_dtype
from tfpriv.dp_training.closed_forms.form import (
    GradientForm,
    Size,
    row_sums,
    scaled,
    sum_in_order,
    wide,
)

# Compiling takes longer than it saves for fewer numbers.
_WORTH_COMPILING = 2**20


class WholeGradients(GradientForm):
    """One gradient an example, as it is: rounded, before it is normed, in any way.

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
        none = tf.zeros_like(squares)
        return Size(squares, none, squares, none)

    def factors(self, scale: tf.Tensor, finite: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """See `GradientForm`."""
        return (scaled(self._flat(), scale, finite),)

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
    axes = tuple(axis for axis in range(1, rank) if view[axis] == 1)
    if other is None:
        large = axes and math.prod(delta.shape) > _WORTH_COMPILING
        gradients = (_compiled_sum if large else _wide_sum)(delta, axes)
    else:
        other = tf.broadcast_to(other, delta.shape)
        gradients = _wide_sum(wide(delta) * wide(other), axes)
    return WholeGradients(tf.reshape(gradients, [delta.shape[0], *shape]), shape)


def _wide_sum(tensor: tf.Tensor, axes: tuple[int, ...]) -> tf.Tensor:
    return tf.reduce_sum(wide(tensor), axis=axes) if axes else wide(tensor)


def _narrow_sum(tensor: tf.Tensor, axes: tuple[int, ...]) -> tf.Tensor:
    """Adds in float32: the sum is the gradient that is clipped, rounded or not."""
    return wide(tf.reduce_sum(tf.cast(tensor, wide_dtype(tensor.dtype)), axis=axes))


# In one go through memory, the terms of each number in the same order.
_compiled_sum = tf.function(_narrow_sum, autograph=False, jit_compile=True)


def added(forms: list[WholeGradients]) -> WholeGradients:
    """The gradient of a variable that is used several times."""
    return WholeGradients(
        sum_in_order([form.gradients for form in forms]), forms[0].shape
    )
