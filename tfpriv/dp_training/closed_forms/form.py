"""What a closed form of per-example gradients must do."""

from __future__ import annotations

import abc
from typing import NamedTuple

import tensorflow as tf

UNIT_BITS = 40
"""A clipped gradient is at most 2^40 units long."""

GROUP_ROWS = 240
"""Examples that are summed in one matrix product."""

# 240 examples of at most 2^45 each stay below 2^53, up to which float64 counts.
LARGEST_MASS = 2.0**45


class Rounded(NamedTuple):
    """Gradients of some examples, scaled and rounded to whole numbers.

    Attributes:
        factors: tensors (rows, ...) from which `GradientForm.total` makes the sum;
            the floating-point ones hold whole numbers in float64.
        squared_norms: float64 (rows,). At least the squared norms of the rounded
            gradients, save for a relative 2^-25 of floating-point error.
        mass: float64 (rows,). At least the sum of the absolute values of whatever
            `total` adds up for one example and coordinate.
    """

    factors: tuple[tf.Tensor, ...]
    squared_norms: tf.Tensor
    mass: tf.Tensor


class GradientForm(abc.ABC):
    """The gradients of `rows` examples by one variable.

    Args:
        shape: the variable's.
    """

    # How many factors `rounded` makes and `total` takes.
    num_factors = 2
    # How much shorter than the clip a gradient is made, relatively, so that its norm
    # hardly ever is above the clip when it was rounded.
    slack = 2.0**-22

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = tuple(shape)

    @property
    @abc.abstractmethod
    def raw(self) -> tuple[tf.Tensor, ...]:
        """What was taken from the graph of the loss, each (rows, ...)."""

    @abc.abstractmethod
    def squared_norms(self) -> tf.Tensor:
        """The squared L2 norm of each gradient, float64 (rows,)."""

    @abc.abstractmethod
    def rounded(self, scale: tf.Tensor) -> Rounded:
        """Rounds the gradients times `scale` (rows,) to whole numbers."""

    @abc.abstractmethod
    def total(self, factors: tuple[tf.Tensor, ...], unit: float) -> tf.Tensor:
        """Adds rounded gradients over their rows, in any number.

        Args:
            factors: of `Rounded`, at most `GROUP_ROWS` rows whose mass is at most
                `LARGEST_MASS`. Then nothing is rounded, whatever the order.
            unit: a power of two that the whole numbers are multiples of.

        Returns:
            float64, of the variable's shape.
        """


def per_row(vector: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Returns (rows,) as (rows, 1, ..., 1), to be broadcast over `like`."""
    return tf.reshape(vector, [-1] + [1] * (like.shape.rank - 1))


def wide(tensor: tf.Tensor) -> tf.Tensor:
    """Returns float64, which holds every narrower float exactly."""
    return tf.cast(tensor, tf.float64)


def row_sums(tensor: tf.Tensor) -> tf.Tensor:
    """Sums over everything but the first axis: (rows, ...) -> (rows,)."""
    return tf.reduce_sum(tensor, axis=list(range(1, tensor.shape.rank)))
