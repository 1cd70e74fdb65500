"""Laplace noise on a grid: what makes a representation a release."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import keras
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv._validation import integer, one_of, positive
from tfpriv.layers._discrete_laplace import DiscreteLaplace
from tfpriv.layers._wide_layer import WideLayer

DOMAINS = ("l1_ball", "unit_box")
_RESOLUTION_BITS = 20
_LARGEST_RATIO = 512.0  # of radius to scale
_SMALLEST_RATIO = 2.0**-20
_LARGEST_EXPONENT = 60


@keras.saving.register_keras_serializable(package="tfpriv")
class LaplaceNoise(WideLayer):
    """Rounds records to a grid, enforces their domain, adds two-sided geometric noise.

    Guarantee: the output for one record is (`epsilon(d)`, `tail_delta(d)`)-
    differentially private for any two inputs of dimension d whatever, for one call.
    epsilon(d) is at most d / scale on the unit box and at most 2 radius / scale on
    the L1 ball, up to a million coordinates and beyond; the delta is below 1e-37 for
    each coordinate.

    How, in whole numbers from the second step on:

    1. y = round(x / g) for the grid step g, a power of two (`grid`). NaN and
       infinities are 0.
    2. R = floor(radius / g) - 1. "unit_box": y is clipped to [0, R]. "l1_ball": if
       S = sum |y| is above R, |y| becomes |y| R // S. So two inputs differ by at
       most d R, or 2 R, in L1 norm (`integer_sensitivity`): no rounding of a
       floating-point sum is in that. The one step less than would fit pays for the
       rounded probabilities of step 3.
    3. Each coordinate of each record gets its own draw K on each call, P(K = k)
       proportional to exp(-|k| g / scale): see `DiscreteLaplace`.
    4. The output is g (y + K). Its low bits say nothing about x, as those of
       floating-point Laplace noise do (Mironov 2012). From 2^24 g on float32 rounds
       once more, which is post-processing.

    The gradient is straight-through: the identity inside the domain; outside it,
    that of clipping on the box, and a scaling by radius / |x|_1 on the ball.

    The noise is fresh on each call, in training and inference alike, after every
    reload of a SavedModel, and whatever seed is set; there is no seed argument. Each
    call is a release and has to be paid for. See `RANDOMNESS_ASSUMPTION` for where
    the bits come from. XLA cannot compile it, and Keras is told so.

    >>> layer = LaplaceNoise(scale=0.5, domain="l1_ball", radius=1.0)
    >>> layer(tf.constant([[0.25, -0.75], [0.0, 1.0]])).shape
    TensorShape([2, 2])
    >>> round(layer.epsilon(dimension=2), 4)
    4.0

    Args:
        scale: float > 0. Of the noise, in the unit of x. Its variance is 2 scale^2,
            but for the grid.
        domain: str. "l1_ball" or "unit_box".
        radius: float > 0. Of the ball; 1 on the box.

    Call arguments:
        inputs: float (..., d).

    Returns (call):
        float32 (float64 under that policy) of the same shape.

    Raises:
        InputError: a bad value; a scale below radius/512 (an epsilon beyond 1,000 is
            no protection) or above 2^20 radius.
    """

    def __init__(
        self,
        scale: float,
        *,
        domain: str = "l1_ball",
        radius: float = 1.0,
        **kwargs: Any,
    ) -> None:
        positive(scale=scale, radius=radius)
        one_of(DOMAINS, domain=domain)
        if domain == "unit_box" and radius != 1:
            raise InputError(
                f"Expected radius=1 for domain='unit_box', received radius={radius}. "
                "Use domain='l1_ball' for a radius."
            )
        if not _SMALLEST_RATIO <= radius / scale <= _LARGEST_RATIO:
            raise InputError(
                f"Expected radius/512 <= scale <= 2**20 * radius, received "
                f"scale={scale} and radius={radius}."
            )
        if abs(math.log2(radius)) > _LARGEST_EXPONENT:
            raise InputError(
                f"Expected 2**-60 <= radius <= 2**60, received radius={radius}."
            )
        super().__init__(**kwargs)
        self.supports_jit = False
        self.scale = float(scale)
        self.domain = domain
        self.radius = float(radius)
        smaller = min(self.scale, self.radius)
        # frexp: smaller = m 2^e with m in [1/2, 1), so 2^(e-1) <= smaller.
        self.grid = math.ldexp(1.0, math.frexp(smaller)[1] - 1 - _RESOLUTION_BITS)
        self._reach = math.floor(Fraction(self.radius) / Fraction(self.grid)) - 1
        shift = self._reach * (1 if domain == "unit_box" else 2)
        self.noise = DiscreteLaplace(Fraction(self.scale) / Fraction(self.grid), shift)

    def integer_sensitivity(self, dimension: int) -> int:
        """Most that two inputs differ, in L1 norm and in steps of the grid.

        Args:
            dimension: int. d, the length of the last axis.
        """
        integer(dimension=dimension)
        return self._reach * (int(dimension) if self.domain == "unit_box" else 2)

    def epsilon(self, dimension: int) -> float:
        """Epsilon of one release of one record, for any two inputs; rounded up.

        Args:
            dimension: int. d, the length of the last axis.
        """
        exact = Fraction(self.integer_sensitivity(dimension)) / self.noise.steps
        return _round_up(exact + self.noise.slack(dimension))

    def tail_delta(self, dimension: int) -> float:
        """Delta of one release of one record, for any two inputs; rounded up.

        Args:
            dimension: int. d, the length of the last axis.
        """
        integer(dimension=dimension)
        return _round_up(self.noise.tail_delta(dimension))

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """The noisy records."""
        # Not x + stop_gradient(noisy - x): in floating point that is not noisy, and
        # its low bits are those of x.
        return self._release(tf.convert_to_tensor(inputs))

    def _release(self, inputs: tf.Tensor) -> tf.Tensor:
        @tf.custom_gradient
        def release(values: tf.Tensor) -> tuple[tf.Tensor, Any]:
            wide = tf.cast(values, tf.float64)
            finite = tf.math.is_finite(wide)
            wide = tf.where(finite, wide, tf.zeros_like(wide))
            steps, slope = self._enforce(wide)
            noisy = steps + self.noise.draw(tf.shape(values))
            noisy = tf.cast(tf.cast(noisy, tf.float64) * self.grid, self.output_dtype)

            def gradient(upstream: tf.Tensor) -> tf.Tensor:
                passed = tf.cast(upstream, tf.float64) * slope
                return tf.cast(
                    tf.where(finite, passed, tf.zeros_like(passed)), values.dtype
                )

            return noisy, gradient

        return release(inputs)

    def _enforce(self, values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Whole steps inside the domain, and the gradient's factor."""
        if self.domain == "unit_box":
            inside = tf.clip_by_value(values, 0.0, 1.0)
            steps = tf.cast(tf.round(inside / self.grid), tf.int64)
            slope = tf.cast(tf.equal(inside, values), tf.float64)
            return tf.clip_by_value(steps, 0, self._reach), slope
        norm = tf.reduce_sum(tf.abs(values), axis=-1, keepdims=True)
        # This brings the steps into the range of int64; the bound is not its task.
        slope = self.radius / tf.maximum(norm, self.radius)
        steps = tf.cast(tf.round(values * slope / self.grid), tf.int64)
        steps = tf.clip_by_value(steps, -self._reach, self._reach)
        size = tf.abs(steps)
        total = tf.reduce_sum(size, axis=-1, keepdims=True)
        shrunk = size * self._reach // tf.maximum(total, 1)
        return tf.sign(steps) * tf.where(total > self._reach, shrunk, size), slope

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        config = super().get_config()
        config.update(scale=self.scale, domain=self.domain, radius=self.radius)
        return config


def _round_up(value: Fraction) -> float:
    """The least float that is not below `value`."""
    nearest = float(value)
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)
