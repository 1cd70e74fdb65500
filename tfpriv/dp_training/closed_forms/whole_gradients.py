"""Gradients that are written out, one an example: biases, scales, small matrices."""

from __future__ import annotations

import tensorflow as tf

from tfpriv.dp_training.closed_forms.form import (
    GradientForm,
    Rounded,
    per_row,
    row_sums,
    wide,
)


class WholeGradients(GradientForm):
    """One gradient an example, as it is.

    Args:
        gradients: float64 (rows, *shape).
        raw: what they were made of, (rows, ...) each.
        shape: the variable's.
    """

    num_factors = 1

    def __init__(
        self,
        gradients: tf.Tensor,
        raw: tuple[tf.Tensor, ...],
        shape: tuple[int, ...],
    ) -> None:
        super().__init__(shape)
        self.gradients = gradients
        self._raw = raw

    @property
    def raw(self) -> tuple[tf.Tensor, ...]:
        """See `GradientForm`."""
        return self._raw

    def squared_norms(self) -> tf.Tensor:
        """See `GradientForm`."""
        return row_sums(tf.square(self._flat()))

    def rounded(self, scale: tf.Tensor) -> Rounded:
        """See `GradientForm`."""
        flat = self._flat()
        units = tf.round(flat * per_row(scale, flat))
        squares = row_sums(tf.square(units))
        # A coordinate is no longer than the gradient.
        return Rounded((units,), squares, tf.sqrt(squares))

    def total(self, factors: tuple[tf.Tensor, ...], unit: float) -> tf.Tensor:
        """See `GradientForm`."""
        (units,) = factors
        return tf.reshape(tf.reduce_sum(units, axis=0), self.shape) * unit

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
    raw = [delta]
    if other is not None:
        other = tf.broadcast_to(other, delta.shape)
        raw.append(other)
        product *= wide(other)
    axes = [axis for axis in range(1, rank) if view[axis] == 1]
    gradients = tf.reduce_sum(product, axis=axes) if axes else product
    gradients = tf.reshape(gradients, [delta.shape[0], *shape])
    return WholeGradients(gradients, tuple(raw), shape)


def added(forms: list[WholeGradients]) -> WholeGradients:
    """The gradient of a variable that is used several times."""
    raw = tuple(tensor for form in forms for tensor in form.raw)
    return WholeGradients(
        tf.add_n([form.gradients for form in forms]), raw, forms[0].shape
    )
