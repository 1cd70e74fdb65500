"""Gradients of matrices: sums of outer products, kept as their factors."""

from __future__ import annotations

import functools
import math

import tensorflow as tf

from tfpriv.dp_training.closed_forms.form import (
    GradientForm,
    Rounded,
    per_row,
    row_sums,
    wide,
)
from tfpriv.dp_training.closed_forms.whole_gradients import WholeGradients

# Matrices of at most as many entries are written out for every example: always,
# and where that is less work than inner products of all pairs of positions.
_SMALL, _MEDIUM = 2**12, 2**17
# So few outer products are rarely 2^5 times as long together as their sum.
_FEW = 2**8


class Windows:
    """How a convolution cuts its input (rows, H, W, C) into windows.

    Args:
        kernel: int pair. Height and width of the kernel.
        strides: int pair.
        rates: int pair. Dilation.
        padding: "VALID" or "SAME".
    """

    def __init__(
        self,
        kernel: tuple[int, int],
        strides: tuple[int, int],
        rates: tuple[int, int],
        padding: str,
    ) -> None:
        self.kernel = kernel
        self.strides = strides
        self.rates = rates
        self.padding = padding

    def cut(self, inputs: tf.Tensor) -> tf.Tensor:
        """(rows, H, W, C) -> (rows, P, kernel height * kernel width * C)."""
        if self._slides(inputs):
            line, size = inputs[:, 0], self._size(inputs)
            width = range(self.kernel[1])
            return tf.concat([line[:, k : k + size] for k in width], axis=2)
        patches = tf.image.extract_patches(
            inputs,
            [1, *self.kernel, 1],
            [1, *self.strides, 1],
            [1, *self.rates, 1],
            self.padding,
        )
        return tf.reshape(
            patches, [-1, patches.shape[1] * patches.shape[2], patches.shape[3]]
        )

    def gram(self, inputs: tf.Tensor) -> tf.Tensor:
        """Inner products of all pairs of windows, (rows, P, P)."""
        if not self._slides(inputs):
            return _gram(self.cut(inputs))
        # Two windows' inner product is the sum over a diagonal of the tokens'.
        tokens, size = _gram(inputs[:, 0]), self._size(inputs)
        width = range(self.kernel[1])
        return tf.add_n([tokens[:, k : k + size, k : k + size] for k in width])

    def _slides(self, inputs: tf.Tensor) -> bool:
        return (
            inputs.shape[1] == self.kernel[0] == 1
            and self.strides == self.rates == (1, 1)
            and self.padding == "VALID"
        )

    def _size(self, inputs: tf.Tensor) -> int:
        return inputs.shape[2] - self.kernel[1] + 1


class OuterProducts(GradientForm):
    """The sum over P positions of outer products x_p (x) delta_p.

    Its squared norm is the sum over p, q of (x_p . x_q)(delta_p . delta_q)
    (Goodfellow 2015, arXiv:1510.01799, for one position; Li et al. 2021,
    arXiv:2110.05679, section 4, for several), and the sum over examples one
    product of matrices (Bu et al. 2023, arXiv:2210.00038).

    Rounded, a gradient is the sum of outer products of the ROUNDED factors: whole
    numbers, so that products and sums of them are exact as long as they stay below
    2^53. How the scale is shared between the factors changes nothing but the size
    of the rounding error, which is smallest where both factors add as much to it.

    Args:
        x: (rows, P, n), or (rows, H, W, C) with `windows`.
        delta: (rows, P, m). Gradient of the loss by x_p^T W.
        shape: the variable's, of n * m entries in this order.
        windows: how `x` is cut into (rows, P, n), for a convolution.
    """

    # Rounding moves the norm by about 2^-21 of the clip.
    slack = 2.0**-18

    def __init__(
        self,
        x: tf.Tensor,
        delta: tf.Tensor,
        shape: tuple[int, ...],
        windows: Windows | None = None,
    ) -> None:
        super().__init__(shape)
        self.x = x
        self.delta = delta
        self.windows = windows
        self.positions = int(delta.shape[1])
        self.width = int(delta.shape[2])
        self.height = math.prod(self.shape) // self.width

    @property
    def raw(self) -> tuple[tf.Tensor, ...]:
        """See `GradientForm`."""
        return self.x, self.delta

    @property
    def is_small(self) -> bool:
        """Whether gradients are cheaper written out than in factors."""
        entries = self.height * self.width
        pairs = self.positions * (self.height + self.width)
        if self.positions == 1:
            return entries <= _SMALL
        return entries <= max(_SMALL, min(pairs, _MEDIUM))

    def cut_x(self) -> tf.Tensor:
        """The factor x as (rows, P, n)."""
        return self.windows.cut(self.x) if self.windows else self.x

    def written_out(self) -> WholeGradients:
        """The same gradients as matrices."""
        matrices = tf.matmul(wide(self.cut_x()), wide(self.delta), transpose_a=True)
        return WholeGradients(matrices, self.raw, self.shape)

    def squared_norms(self) -> tf.Tensor:
        """See `GradientForm`."""
        return _squared_norms(*self._pairs)

    @functools.cached_property
    def _pairs(self) -> tuple[tf.Tensor, tf.Tensor]:
        return self._grams(wide(self.x), wide(self.delta))

    def rounded(self, scale: tf.Tensor) -> Rounded:
        """See `GradientForm`."""
        x, delta = wide(self.x), wide(self.delta)
        # |x| sqrt(m) and |delta| sqrt(n) are what the rounding of the other factor
        # is multiplied by.
        ours, theirs = (tf.linalg.trace(pairs) for pairs in self._pairs)
        ours, theirs = tf.sqrt(ours * self.width), tf.sqrt(theirs * self.height)
        share = tf.sqrt(tf.where((ours > 0) & (theirs > 0), theirs / ours, 1.0))
        root = tf.sqrt(scale)
        a = tf.round(x * per_row(root * share, x))
        b = tf.round(delta * per_row(root / share, delta))
        pairs = self._grams(a, b)
        squares = _squared_norms(*pairs)
        if self.positions == 1:
            # A coordinate is no longer than the gradient.
            return Rounded((a, b), squares, tf.sqrt(squares))
        # The sum over p of |a_p||b_p|: at least that of absolute values.
        lengths = (tf.sqrt(tf.linalg.diag_part(one)) for one in pairs)
        crude = tf.reduce_sum(math.prod(lengths), axis=1)
        # The error of a sum of N products is at most N * 2^-52 times the sum of
        # their absolute values (Higham 2002, section 3.1).
        terms = self.height + self.width + self.positions**2 + 16
        squares += terms * 2.0**-52 * tf.square(crude)
        if self.positions <= _FEW:
            return Rounded((a, b), squares, crude)
        return Rounded((a, b), squares, self._mass(a, b))

    def total(self, factors: tuple[tf.Tensor, ...], unit: float) -> tf.Tensor:
        """See `GradientForm`."""
        a, b = factors
        if self.windows:
            a = self.windows.cut(a)
        a = tf.reshape(a, [-1, self.height])
        b = tf.reshape(b, [-1, self.width]) * unit
        return tf.reshape(tf.matmul(a, b, transpose_a=True), self.shape)

    def _grams(self, x: tf.Tensor, delta: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Inner products of the x_p and of the delta_p, (rows, P, P) each."""
        if self.positions == 1:
            x = self.windows.cut(x) if self.windows else x
            squares = (row_sums(tf.square(factor)) for factor in (x, delta))
            return tuple(square[:, tf.newaxis, tf.newaxis] for square in squares)
        return self.windows.gram(x) if self.windows else _gram(x), _gram(delta)

    def _mass(self, x: tf.Tensor, delta: tf.Tensor) -> tf.Tensor:
        """The sum over p of the largest |x_p| times the largest |delta_p|."""
        axes = list(range(1, x.shape.rank)) if self.windows else [2]
        largest = tf.reduce_max(tf.abs(x), axis=axes)
        if self.windows:
            largest = largest[:, tf.newaxis]
        return row_sums(largest * tf.reduce_max(tf.abs(delta), axis=2))


def joined(forms: list[OuterProducts]) -> OuterProducts:
    """The gradient of a matrix that is used several times, as by an unrolled LSTM."""
    if len(forms) == 1:
        return forms[0]
    return OuterProducts(
        tf.concat([form.cut_x() for form in forms], axis=1),
        tf.concat([form.delta for form in forms], axis=1),
        forms[0].shape,
    )


def _squared_norms(x_pairs: tf.Tensor, delta_pairs: tf.Tensor) -> tf.Tensor:
    return tf.maximum(tf.reduce_sum(x_pairs * delta_pairs, axis=[1, 2]), 0.0)


def _gram(vectors: tf.Tensor) -> tf.Tensor:
    return tf.matmul(vectors, vectors, transpose_b=True)
