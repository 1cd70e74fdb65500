"""What a closed form of per-example gradients must do."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

# Rows that `GradientForm.total` adds up at once, at most, but for rows of zeros.
MOST_ROWS = 128


class Size(NamedTuple):
    """How large the gradients of some examples are; floats (rows,) in float64.

    Attributes:
        squared_norm: the squared L2 norm of each gradient as it was computed, save
            for a relative 2^-24 of rounding.
        doubt: by how much the squared norm may be larger, at most.
        squared_mass: at least the squared L2 norm of what each gradient becomes
            when every product it is a sum of is replaced by its absolute value.
            Rounding is proportional to it, and to how many products are added.
        terms: at most how many products other than 0 the float32 sum of
            `GradientForm.total` adds to one coordinate; 0 where it has none, or
            where `GradientForm.narrow_terms` says how many in all.
    """

    squared_norm: tf.Tensor
    doubt: tf.Tensor
    squared_mass: tf.Tensor
    terms: tf.Tensor


class GradientForm(abc.ABC):
    """The gradients of `rows` examples by one variable.

    Args:
        shape: the variable's.
    """

    # How many factors `factors` makes and `total` takes.
    num_factors = 2
    # Whether `total` can sum in float32, which is worth it for large variables.
    narrow = False
    # How many numbers such a sum adds to one coordinate, at most, however many rows
    # it is over; 0 where that is counted by `Size.terms`.
    narrow_terms = 0
    # How many times an example uses the variable.
    positions = 1

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = tuple(shape)

    @abc.abstractmethod
    def size(self) -> Size:
        """Norms of the gradients and how far they may be from them."""

    @abc.abstractmethod
    def factors(self, scale: tf.Tensor, finite: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """What the gradients times `scale` are made of, each (rows, ...).

        Args:
            scale: (rows,), in float64, from 0 to 1; 0 where a row is to add nothing.
            finite: bool (rows,). Where it is False the scale is 0 and factors may
                hold anything, which must not come through.
        """

    @abc.abstractmethod
    def total(self, factors: tuple[tf.Tensor, ...], narrow: bool) -> tf.Tensor:
        """Adds gradients over their rows, in any number.

        Args:
            factors: as `factors` made them.
            narrow: whether to sum in the factors' own precision and not in float64.

        Returns:
            A tensor of the variable's shape.
        """


def per_row(vector: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Returns (rows,) as (rows, 1, ..., 1), to be broadcast over `like`."""
    return tf.reshape(vector, [-1] + [1] * (like.shape.rank - 1))


def scaled(tensor: tf.Tensor, scale: tf.Tensor, finite: tf.Tensor) -> tf.Tensor:
    """Returns `tensor` times a number a row, 0 where the row is not finite."""
    product = tensor * per_row(tf.cast(scale, tensor.dtype), tensor)
    return only(product, finite)


def only(tensor: tf.Tensor, finite: tf.Tensor) -> tf.Tensor:
    """Returns `tensor` with 0 in rows that are not finite, whatever they hold."""
    return tf.where(per_row(finite, tensor), tensor, tf.zeros([], tensor.dtype))


def wide(tensor: tf.Tensor) -> tf.Tensor:
    """Returns float64, which holds every narrower float exactly."""
    return tf.cast(tensor, tf.float64)


def row_sums(tensor: tf.Tensor) -> tf.Tensor:
    """Sums over everything but the first axis: (rows, ...) -> (rows,)."""
    return tf.reduce_sum(tensor, axis=list(range(1, tensor.shape.rank)))


def sum_in_order(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    """The sum of tensors of one shape, to the same last bit whenever it is computed.

    `tf.add_n` begins with the first tensor whose memory nobody else reads any more:
    which one that is hangs on how far other threads are.
    """
    return tf.reduce_sum(tf.stack(tensors), axis=0)
