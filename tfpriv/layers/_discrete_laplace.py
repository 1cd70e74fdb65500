"""Two-sided geometric noise on the whole numbers, by exact binary digits."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import tensorflow as tf

from tfpriv.layers import _coins

# exp(-_TAIL) and exp(-_EDGE) are below 2**-128; see `DiscreteLaplace`.
_TAIL = Fraction(89)
_EDGE = Fraction(45)


class DiscreteLaplace:
    """Noise K with P(K = k) proportional to exp(-|k| / t), drawn without a logarithm.

    K is the difference of two independent geometric variables G, P(G = n)
    proportional to alpha^n with alpha = exp(-1/t). Let n have the binary digits n_j.
    Then alpha^n is the product over j of alpha^(2^j n_j), so the digits of G are
    independent, and digit j is 1 with probability
    alpha^(2^j) / (1 + alpha^(2^j)) = 1 / (1 + exp(2^j / t)). Each digit is one coin
    of `fresh_coins`; floating-point numbers have no part in it.

    Guarantee: let two vectors of whole numbers differ by at most Delta in L1 norm
    and by at most `max_shift` in each of d coordinates. Adding independent draws to
    each coordinate is (Delta / t + slack(d), tail_delta(d))-differentially private.
    Two approximations pay for that:

    - A threshold is a rounded probability p_j. With W bits it is off by less than
      2^-W, so P(n_j = 1) and, since p_j <= 1/2, P(n_j = 0) are off by a factor
      within exp(+-2^(1-W) / p_j). Both G's, in numerator and denominator, make four
      times the sum of 2^(1-W) / p_j over j. W is chosen to make that tiny.
    - Digits end at J, so |K| <= M = 2^(J+1) - 1 and P(K = k) is proportional to
      alpha^|k| (1 - alpha^(2(M - |k| + 1))). Up to |k| <= M - L - max_shift, with
      alpha^(2L) < 2^-128, a shift by s changes that by a factor of at most
      exp(s / t) / (1 - 2^-128). Larger draws have a probability below 2^-126 a
      coordinate, for J is the least with M >= 89 t + 45 t + max_shift + 2; that is
      the delta.

    Args:
        steps: Fraction or int. t, the scale in steps of the grid; at least 1.
        max_shift: int. Most that one coordinate of two inputs differs.

    References:
        Ghosh, Roughgarden and Sundararajan 2009, "Universally utility-maximizing
        privacy mechanisms" (the two-sided geometric mechanism).
        Mironov 2012, "On significance of the least significant bits for
        differential privacy" (what a logarithm of floating-point uniforms leaks).
    """

    def __init__(self, steps: Fraction | int, max_shift: int) -> None:
        self.steps = Fraction(steps)
        self.max_shift = int(max_shift)
        reach = math.ceil((_TAIL + _EDGE) * self.steps) + self.max_shift + 3
        self.num_digits = (reach - 1).bit_length()
        # The rarest digit has probability above exp(-2^J / t) / 2; 128 bits below
        # that are kept.
        rarest = Fraction(2 ** (self.num_digits - 1)) / self.steps
        bits = math.ceil(rarest * Fraction(1443, 1000)) + 1 + 128
        self.num_words = max(2, -(-bits // _coins.WORD_BITS))
        self.thresholds, self._relative_error = self._round()

    @property
    def threshold_bits(self) -> int:
        """How many random bits a digit is worth: W."""
        return self.num_words * _coins.WORD_BITS

    @property
    def largest(self) -> int:
        """M, the largest draw."""
        return 2**self.num_digits - 1

    def slack(self, dimension: int) -> Fraction:
        """What rounding and the last digit add to epsilon, for `dimension` draws."""
        return dimension * (4 * self._relative_error + Fraction(1, 2**127))

    def tail_delta(self, dimension: int) -> Fraction:
        """The delta of the digits that are cut off, for `dimension` draws."""
        return min(Fraction(1), dimension * Fraction(1, 2**126))

    def draw(self, shape: tf.Tensor) -> tf.Tensor:
        """Draws one independent K for every entry of `shape`.

        Args:
            shape: int32 or int64 (rank,).

        Returns:
            int64 of that shape, on the CPU.
        """
        with tf.device("/CPU:0"):
            shape = tf.cast(shape, tf.int64)
            digits = _coins.fresh_coins(
                self.thresholds, self.num_words, tf.concat([shape, [2]], axis=0)
            )
            places = tf.constant([2**j for j in range(self.num_digits)], tf.int64)
            geometric = tf.reduce_sum(tf.cast(digits, tf.int64) * places, axis=-1)
            return geometric[..., 0] - geometric[..., 1]

    def _round(self) -> tuple[tuple[int, ...], Fraction]:
        """The thresholds, and the sum over digits of 2^(1-W) / p_j."""
        thresholds = []
        error = Fraction(0)
        bits = self.threshold_bits
        with decimal.localcontext() as context:
            # Far more digits than W bits: what they lose is within the bound, which
            # counts a whole unit where rounding costs half.
            context.prec = bits // 3 + 40
            context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
            t = decimal.Decimal(self.steps.numerator) / self.steps.denominator
            for j in range(self.num_digits):
                odds_against = (decimal.Decimal(2**j) / t).exp()
                exact = 2**bits / (1 + odds_against)
                thresholds.append(int(exact.to_integral_value(decimal.ROUND_HALF_EVEN)))
                error += Fraction(2) / int(exact)
        return tuple(thresholds), error
