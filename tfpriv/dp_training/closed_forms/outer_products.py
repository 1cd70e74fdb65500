"""Gradients of matrices: sums of outer products, kept as their factors."""

from __future__ import annotations

import math

import tensorflow as tf

from tfpriv.dp_training.clipping import wide_dtype
from tfpriv.dp_training.closed_forms.form import (
    MOST_ROWS,
    GradientForm,
    Size,
    only,
    row_sums,
    scaled,
    sum_in_order,
    wide,
)
from tfpriv.dp_training.closed_forms.whole_gradients import WholeGradients

# Matrices of at most as many entries are written out for every example: always,
# and where that is less work than inner products of all pairs of positions.
_SMALL, _MEDIUM = 2**12, 2**17
# Compiling takes longer than it saves for fewer numbers.
_WORTH_COMPILING = 2**14
# Matrices that are wider are normed and summed in float64.
_WIDEST = 2**18
# Products that are added up in one float32 sum, where there are many.
_MOST_PRODUCTS = 128


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
        return sum_in_order([tokens[:, k : k + size, k : k + size] for k in width])

    def squares(self, inputs: tf.Tensor) -> tf.Tensor:
        """Squared lengths of windows, (rows, P)."""
        if not self._slides(inputs):
            return _squares(self.cut(inputs))
        tokens, size = _squares(inputs[:, 0]), self._size(inputs)
        return sum_in_order([tokens[:, k : k + size] for k in range(self.kernel[1])])

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

    Otherwise the squared norm of that matrix is at most the sum over columns v of
    (sum over p of |x_p| |delta_pv|)^2, the triangle inequality in each column; where
    few deltas share a column, as those of a softmax's targets, this is near the
    squared norm of the gradient itself.

    Float32 inner products of N numbers are off by at most N u / (1 - N u) times the
    sum of their absolute values, u = 2^-24, in any order (Higham 2002, section 3.1),
    and by N 2^-126 more where products are too small for float32. Times the inner
    products of x, and summed over p and q, the former is at most that share of the
    bound above; together they are `Size.doubt`. Products too large for float32 make
    the norm infinite, and the example adds nothing.

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
        self.narrow = self.x.dtype == self.delta.dtype == tf.float32
        if self.width > _WIDEST:
            self.delta, self.narrow = wide(self.delta), False
        if self.positions > 1 and windows is None:
            # Of many positions that all count there are too many products for one
            # sum in float32: sums of some rows, then the sum of those.
            rows = self._rows_at_once
            self.narrow_terms = rows * self.positions + MOST_ROWS // rows + 8

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
            squares = row_sums(tf.square(wide(self.cut_x()))) * row_sums(
                tf.square(wide(self.delta))
            )
            none = tf.zeros_like(squares)
            return Size(squares, none, squares, tf.ones_like(squares))
        x = wide(self.x)
        x_squares = self.windows.squares(x) if self.windows else _squares(x)
        if self.windows and self.narrow:
            return self._size_of_windows(x, x_squares)
        lengths = tf.sqrt(x_squares)
        gram, mass = _pairs(self.delta, tf.cast(lengths, self.delta.dtype))
        mass = wide(mass)
        mass *= 1.0 + _relative_error(self.width + 2 * self.positions + 8)
        mass += self._lost(tf.linalg.diag_part(gram))
        squares, doubt = self._all_pairs(x, lengths, wide(gram), mass)
        return Size(squares, doubt, mass, tf.zeros_like(mass))

    def _size_of_windows(self, x: tf.Tensor, x_squares: tf.Tensor) -> Size:
        nonzero = tf.cast(tf.not_equal(self.delta, 0), self.delta.dtype)
        count = wide(tf.reduce_max(tf.reduce_sum(nonzero, axis=1), axis=1))
        delta_squares = wide(_squares(self.delta))
        energy = tf.reduce_sum(x_squares * delta_squares, axis=1)
        mass = count * energy * (1.0 + _relative_error(self.width))
        mass += self._lost(delta_squares)
        lengths = tf.sqrt(x_squares)
        # Where no two deltas share a column their inner product is 0.
        alone = energy, self._doubt(lengths, energy)

        def with_pairs() -> tuple[tf.Tensor, ...]:
            pairs = self._all_pairs(x, lengths, wide(_gram(self.delta)), mass)
            return tuple(
                tf.where(count <= 1, one, other)
                for one, other in zip(alone, pairs, strict=True)
            )

        squares, doubt = tf.cond(tf.reduce_all(count <= 1), lambda: alone, with_pairs)
        return Size(squares, doubt, mass, count)

    def _all_pairs(
        self, x: tf.Tensor, lengths: tf.Tensor, gram: tf.Tensor, mass: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Squared norms from inner products of all pairs of positions; their doubt."""
        x_pairs = self.windows.gram(x) if self.windows else _gram(x)
        squares = tf.reduce_sum(x_pairs * gram, axis=[1, 2])
        return tf.maximum(squares, 0.0), self._doubt(lengths, mass)

    def _doubt(self, lengths: tf.Tensor, absolute: tf.Tensor) -> tf.Tensor:
        """How far off a squared norm is whose absolute products add up to so much."""
        small = self.width * 2.0**-125 * tf.square(tf.reduce_sum(lengths, axis=1))
        # What float64 rounds is less than one term of float32.
        return _relative_error(self.width + 1) * absolute + small

    def _lost(self, delta_squares: tf.Tensor) -> tf.Tensor:
        """What numbers below 2^-126 take from a squared mass, becoming 0.

        Those of x when it is scaled (see `BookkeepingEngine`), and small squares.
        """
        lost = tf.reduce_sum(wide(delta_squares), axis=1)
        return lost * 2.0**-80 * self.positions * self.height + self.width * 2.0**-120

    def factors(self, scale: tf.Tensor, finite: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """See `GradientForm`."""
        delta = tf.cond(
            # Then nothing is to be taken out of the larger factor: x is scaled by 0.
            tf.reduce_all(finite),
            lambda: self.delta,
            lambda: only(self.delta, finite),
        )
        return scaled(self.x, scale, finite), delta

    def total(self, factors: tuple[tf.Tensor, ...], narrow: bool) -> tf.Tensor:
        """See `GradientForm`."""
        a, b = factors if narrow else map(wide, factors)
        if self.windows:
            a = self.windows.cut(a)
        if narrow and self.narrow_terms:
            products = self._rows_at_once * self.positions
            a = tf.reshape(a, [-1, products, self.height])
            b = tf.reshape(b, [-1, products, self.width])
            parts = tf.matmul(a, b, transpose_a=True)
            return tf.reshape(tf.reduce_sum(parts, axis=0), self.shape)
        a = tf.reshape(a, [-1, self.height])
        b = tf.reshape(b, [-1, self.width])
        return tf.reshape(tf.matmul(a, b, transpose_a=True), self.shape)

    @property
    def _rows_at_once(self) -> int:
        """How many rows are added up in one float32 product; divides every block."""
        rows = int(self.delta.shape[0])
        fitting = (
            n
            for n in (6, 4, 3, 2)
            if rows % n == 0 and n * self.positions <= _MOST_PRODUCTS
        )
        return next(fitting, 1)


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


def _pairs(delta: tf.Tensor, lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Inner products of pairs (rows, P, P); squared lengths (rows,) of weighted sums.

    The sums are over p of lengths_p |delta_p|, for (rows, P, m) and (rows, P).
    """
    large = math.prod(delta.shape) > _WORTH_COMPILING
    return (_compiled_pairs if large else _plain_pairs)(delta, lengths)


def _plain_pairs(delta: tf.Tensor, lengths: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    columns = tf.reduce_sum(tf.abs(delta) * lengths[:, :, tf.newaxis], axis=1)
    return _gram(delta), _squares(columns)


# In one go through memory, and small matrix products without copies.
_compiled_pairs = tf.function(_plain_pairs, autograph=False, jit_compile=True)


def _relative_error(terms: int) -> float:
    """By what share of itself a float32 sum of so many squares may be off.

    At most N u / (1 - N u) of the exact sum, which is N u / (1 - 2 N u) of this one.
    """
    return terms * 2.0**-24 / (1.0 - terms * 2.0**-23)
