"""Gradients of matrices: sums of outer products, kept as their factors."""

from __future__ import annotations

import math

import tensorflow as tf

from tfpriv.dp_training.clipping import wide_dtype
from tfpriv.dp_training.closed_forms.form import (
    GradientForm,
    Size,
    only,
    row_sums,
    scaled,
    wide,
)
from tfpriv.dp_training.closed_forms.whole_gradients import WholeGradients

# Matrices of at most as many entries are written out for every example: always,
# and where that is less work than inner products of all pairs of positions.
_SMALL, _MEDIUM = 2**12, 2**17
# Compiling takes longer than it saves for fewer numbers.
_WORTH_COMPILING = 2**14


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

    def squares(self, inputs: tf.Tensor) -> tf.Tensor:
        """Squared lengths of windows, (rows, P)."""
        if not self._slides(inputs):
            return _squares(self.cut(inputs))
        tokens, size = _squares(inputs[:, 0]), self._size(inputs)
        return tf.add_n([tokens[:, k : k + size] for k in range(self.kernel[1])])

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

    If no column of an example's (P, m) deltas has more than k numbers other than
    0, a coordinate of the gradient adds up k products at most, and the sum of
    their absolute values is a matrix whose squared norm is at most k times the sum
    over p of |x_p|^2 |delta_p|^2 (Cauchy-Schwarz). Behind a maximum over time k is
    1: only the window that a filter took has a gradient.

    Args:
        x: (rows, P, n), or (rows, H, W, C) with `windows`.
        delta: (rows, P, m). Gradient of the loss by x_p^T W.
        shape: the variable's, of n * m entries in this order.
        windows: how `x` is cut into (rows, P, n), for a convolution.
    """

    def __init__(
        self,
        x: tf.Tensor,
        delta: tf.Tensor,
        shape: tuple[int, ...],
        windows: Windows | None = None,
    ) -> None:
        super().__init__(shape)
        self.x = tf.cast(x, wide_dtype(x.dtype))
        self.delta = tf.cast(delta, wide_dtype(delta.dtype))
        self.windows = windows
        self.positions = int(delta.shape[1])
        self.width = int(delta.shape[2])
        self.height = math.prod(self.shape) // self.width
        # Of many positions that all count there are too many products for float32.
        few = self.positions == 1 or windows is not None
        self.narrow = few and self.x.dtype == self.delta.dtype == tf.float32

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
        return WholeGradients(matrices, self.shape)

    def size(self) -> Size:
        """See `GradientForm`."""
        if self.positions == 1:
            x = self.windows.cut(self.x) if self.windows else self.x
            squares = row_sums(tf.square(wide(x))) * row_sums(
                tf.square(wide(self.delta))
            )
            return Size(squares, squares, tf.ones_like(squares))
        x = wide(self.x)
        x_squares = self.windows.squares(x) if self.windows else _squares(x)
        delta_squares, count = _column_statistics(self.delta)
        lengths = x_squares * delta_squares
        # Numbers below 2^-126 become 0 when x is scaled; see `BookkeepingEngine`.
        lost = tf.reduce_sum(delta_squares, axis=1)
        lost *= 2.0**-80 * self.positions * self.height
        energy = tf.reduce_sum(lengths, axis=1)
        if not self.narrow:
            mass = tf.square(tf.reduce_sum(tf.sqrt(lengths), axis=1))
            return Size(self._all_pairs(x, mass), mass + lost, tf.zeros_like(energy))
        # Where no two deltas share a column their inner product is 0.
        alone = count <= 1
        mass = count * energy * (1.0 + 2.0**-20) + lost
        squares = tf.cond(
            tf.reduce_all(alone),
            lambda: energy,
            lambda: tf.where(alone, energy, self._all_pairs(x, mass)),
        )
        return Size(squares, mass, count)

    def _all_pairs(self, x: tf.Tensor, mass: tf.Tensor) -> tf.Tensor:
        """Squared norms from inner products of all pairs of positions."""
        x_pairs = self.windows.gram(x) if self.windows else _gram(x)
        squares = tf.reduce_sum(x_pairs * _gram(wide(self.delta)), axis=[1, 2])
        # The error of a sum of N products is at most N * 2^-52 times the sum of
        # their absolute values (Higham 2002, section 3.1).
        terms = self.height + self.width + self.positions**2 + 16
        return tf.maximum(squares, 0.0) + terms * 2.0**-52 * mass

    def factors(self, scale: tf.Tensor, kept: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """See `GradientForm`."""
        return scaled(self.x, scale, kept), only(self.delta, kept)

    def total(self, factors: tuple[tf.Tensor, ...], narrow: bool) -> tf.Tensor:
        """See `GradientForm`."""
        a, b = factors if narrow else map(wide, factors)
        if self.windows:
            a = self.windows.cut(a)
        a = tf.reshape(a, [-1, self.height])
        b = tf.reshape(b, [-1, self.width])
        return tf.reshape(tf.matmul(a, b, transpose_a=True), self.shape)


def joined(forms: list[OuterProducts]) -> OuterProducts:
    """The gradient of a matrix that is used several times, as by an unrolled LSTM."""
    if len(forms) == 1:
        return forms[0]
    return OuterProducts(
        tf.concat([form.cut_x() for form in forms], axis=1),
        tf.concat([form.delta for form in forms], axis=1),
        forms[0].shape,
    )


def _gram(vectors: tf.Tensor) -> tf.Tensor:
    return tf.matmul(vectors, vectors, transpose_b=True)


def _squares(vectors: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.square(vectors), axis=-1)


def _column_statistics(delta: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Squared lengths (rows, P), and in how many positions a column is not 0 (rows,).

    Both float64; the latter of the column where it is most.
    """
    large = math.prod(delta.shape) > _WORTH_COMPILING
    return (_compiled_statistics if large else _statistics)(delta)


def _statistics(delta: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    nonzero = tf.reduce_sum(tf.cast(tf.not_equal(delta, 0), tf.int32), axis=1)
    return _squares(wide(delta)), wide(tf.reduce_max(nonzero, axis=1))


# In one go through memory.
_compiled_statistics = tf.function(_statistics, autograph=False, jit_compile=True)
