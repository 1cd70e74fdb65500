"""Gradients of embedding tables: the few rows that an example's tokens name."""

from __future__ import annotations

import tensorflow as tf

from tfpriv.dp_training.closed_forms.form import (
    GradientForm,
    Size,
    row_sums,
    scaled,
    wide,
)


class TableRows(GradientForm):
    """The rows of a table that P tokens of each example name.

    A token that comes several times in an example has one row, the sum of its
    gradients; it stands where the token comes first, zeros stand where it comes
    again. So the norm is that of the distinct rows.

    Args:
        ids: int (rows, P).
        delta: (rows, P, D). Gradient of the loss by the looked-up rows.
        shape: of the table, (V, D).
    """

    def __init__(
        self, ids: tf.Tensor, delta: tf.Tensor, shape: tuple[int, ...]
    ) -> None:
        super().__init__(shape)
        self.ids = ids
        self.positions = int(ids.shape[1])
        self.delta = delta
        equal = ids[:, :, tf.newaxis] == ids[:, tf.newaxis, :]
        places = tf.range(ids.shape[1])
        # A place is the first of its token if no earlier one is equal.
        earlier = equal & (places[tf.newaxis, :] < places[:, tf.newaxis])
        first = ~tf.reduce_any(earlier, axis=2)
        grouped = tf.matmul(tf.cast(equal, tf.float64), wide(delta))
        self._grouped = tf.where(first[:, :, tf.newaxis], grouped, 0.0)

    def size(self) -> Size:
        """See `GradientForm`."""
        squares = row_sums(tf.square(self._grouped))
        lengths = tf.norm(wide(self.delta), axis=2)
        mass = tf.square(tf.reduce_sum(lengths, axis=1))
        none = tf.zeros_like(squares)
        return Size(squares, none, mass, none)

    def factors(self, scale: tf.Tensor, finite: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """See `GradientForm`; ids are as they are."""
        return self.ids, scaled(wide(self.delta), scale, finite)

    def total(self, factors: tuple[tf.Tensor, ...], narrow: bool) -> tf.Tensor:
        """See `GradientForm`; always in float64."""
        del narrow
        ids, delta = factors
        size, width = self.shape
        return tf.math.unsorted_segment_sum(
            tf.reshape(delta, [-1, width]), tf.reshape(ids, [-1]), size
        )


def joined(forms: list[TableRows]) -> TableRows:
    """The gradient of a table that is looked up several times."""
    if len(forms) == 1:
        return forms[0]
    dtype = tf.float64
    return TableRows(
        tf.concat([tf.cast(form.ids, tf.int64) for form in forms], axis=1),
        tf.concat([tf.cast(form.delta, dtype) for form in forms], axis=1),
        forms[0].shape,
    )
