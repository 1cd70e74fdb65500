"""What a closed form of per-example gradients must do."""

from __future__ import annotations

import abc
from typing import NamedTuple

import tensorflow as tf


class Size(NamedTuple):
    """How large the gradients of some examples are; floats (rows,) in float64.

    Attributes:
        squared_norm: at least the squared L2 norm of each gradient, save for a
            relative 2^-24 of rounding.
        squared_mass: at least the squared L2 norm of what each gradient becomes
            when every product it is a sum of is replaced by its absolute value.
            Rounding is proportional to it, and to how many products are added.
        terms: at most how many products other than 0 the float32 sum of
            `GradientForm.total` adds to one coordinate; 0 where it has none.
    """

    squared_norm: tf.Tensor
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
    # How many times an example uses the variable.
    positions = 1

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = tuple(shape)

    @abc.abstractmethod
    def size(self) -> Size:
        """Norms of the gradients and how far they may be from them."""

    @abc.abstractmethod
    def factors(self, scale: tf.Tensor, kept: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """What the gradients times `scale` are made of, each (rows, ...).

        Args:
            scale: (rows,), in float64, from 0 to 1.
            kept: bool (rows,). Where it is False all numbers are 0.
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


def scaled(tensor: tf.Tensor, scale: tf.Tensor, kept: tf.Tensor) -> tf.Tensor:
    """Returns `tensor` times a number a row, 0 where the row is not kept."""
    product = tensor * per_row(tf.cast(scale, tensor.dtype), tensor)
    return only(product, kept)


def only(tensor: tf.Tensor, kept: tf.Tensor) -> tf.Tensor:
    """Returns `tensor` with 0 in rows that are not kept, whatever they hold."""
    return tf.where(per_row(kept, tensor), tensor, tf.zeros([], tensor.dtype))


def wide(tensor: tf.Tensor) -> tf.Tensor:
    """Returns float64, which holds every narrower float exactly."""
    return tf.cast(tensor, tf.float64)


def row_sums(tensor: tf.Tensor) -> tf.Tensor:
    """Sums over everything but the first axis: (rows, ...) -> (rows,)."""
    return tf.reduce_sum(tensor, axis=list(range(1, tensor.shape.rank)))
