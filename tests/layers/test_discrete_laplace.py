"""Two-sided geometric noise: its exact law, computed from the thresholds."""

import decimal
import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from tfpriv.layers._discrete_laplace import _EDGE, DiscreteLaplace

SMALL = [(Fraction(3, 2), 4), (Fraction(1), 1), (Fraction(7, 2), 30)]


def exact_law(noise):
    """P(K = k) for k = -M..M as whole numbers over one denominator."""
    whole = 2**noise.threshold_bits
    digits = [(whole - threshold, threshold) for threshold in noise.thresholds]
    geometric = [1]
    for no, yes in digits:  # digit j doubles the support
        geometric = [p * no for p in geometric] + [p * yes for p in geometric]
    size = len(geometric)
    law = [
        sum(geometric[n] * geometric[n + k] for n in range(size - k))
        for k in range(size)
    ]
    return law[:0:-1] + law, whole ** (2 * len(digits))


def check_law(noise):
    """The guarantee of the docstring, in whole numbers and for every output."""
    law, total = exact_law(noise)
    assert sum(law) == total
    largest = noise.largest
    assert len(law) == 2 * largest + 1
    edge = int(_EDGE * noise.steps) + 1
    inner = largest - edge - noise.max_shift
    with decimal.localcontext() as context:
        context.prec = 120
        t = decimal.Decimal(noise.steps.numerator) / noise.steps.denominator
        slack = noise.slack(1)
        slack = decimal.Decimal(slack.numerator) / slack.denominator
        for shift in {1, noise.max_shift}:
            bound = (shift / t + slack).exp()
            for k, sign in itertools.product(range(-inner, inner + 1), (-1, 1)):
                here = law[largest + k]
                there = law[largest + k + sign * shift]
                assert here <= there * bound
        outside = total - sum(law[largest - inner : largest + inner + 1])
        assert Fraction(outside, total) <= noise.tail_delta(1)
        # The other direction: it is no noisier than it says.
        variance = Fraction(
            sum(p * (k - largest) ** 2 for k, p in enumerate(law)), total
        )
        alpha = (-1 / t).exp()
        claimed = float(2 * alpha / (1 - alpha) ** 2)
        assert float(variance) == pytest.approx(claimed, rel=1e-12)


@pytest.mark.parametrize(("steps", "max_shift"), SMALL)
def test_the_exact_law_keeps_to_epsilon_and_delta(steps, max_shift):
    noise = DiscreteLaplace(steps, max_shift)
    check_law(noise)
    assert 0 < noise.slack(1000) < Fraction(1, 10**33)
    assert noise.tail_delta(1000) == 1000 * noise.tail_delta(1) < Fraction(1, 10**34)


class CoarseThresholds(DiscreteLaplace):
    """Rounds its probabilities to 16 bits and forgets to pay for it."""

    def _round(self):
        thresholds, error = super()._round()
        drop = self.threshold_bits - 16
        return tuple(threshold >> drop << drop for threshold in thresholds), error


class TwoThirds(DiscreteLaplace):
    def _round(self):
        other = DiscreteLaplace(self.steps * 2 / 3, self.max_shift)
        shift = self.threshold_bits - other.threshold_bits
        kept = [
            int(threshold * Fraction(2) ** shift)
            for threshold in other.thresholds[: self.num_digits]
        ]
        kept += [0] * (self.num_digits - len(kept))
        return tuple(kept), super()._round()[1]


class ThreeHalves(DiscreteLaplace):
    def _round(self):
        other = DiscreteLaplace(self.steps * 3 / 2, self.max_shift)
        shift = self.threshold_bits - other.threshold_bits
        kept = [
            int(threshold * Fraction(2) ** shift)
            for threshold in other.thresholds[: self.num_digits]
        ]
        return tuple(kept), super()._round()[1]


class TooFewDigits(DiscreteLaplace):
    def __init__(self, steps, max_shift):
        super().__init__(steps, max_shift)
        self.num_digits -= 3
        self.thresholds = self.thresholds[: self.num_digits]


class ForgetsTheShift(DiscreteLaplace):
    """Cuts off where the noise ends and not where the shifted noise does."""

    def __init__(self, steps, max_shift):
        super().__init__(steps, 0)
        self.max_shift = max_shift


@pytest.mark.parametrize(
    ("twin", "max_shift"),
    [
        (CoarseThresholds, 4),
        (TwoThirds, 4),
        (ThreeHalves, 4),
        (TooFewDigits, 4),
        (ForgetsTheShift, 100),
    ],
)
def test_a_broken_twin_is_rejected(twin, max_shift):
    with pytest.raises((AssertionError, IndexError)):
        check_law(twin(Fraction(3, 2), max_shift))


@pytest.mark.parametrize("steps", [2**20, 2**21 - 1, Fraction(2**41, 3)])
def test_each_digit_of_a_fine_grid_is_right_within_its_bound(steps):
    noise = DiscreteLaplace(steps, 2**21)
    whole = 2**noise.threshold_bits
    error = decimal.Decimal(0)
    with decimal.localcontext() as context:
        context.prec = 400
        t = decimal.Decimal(noise.steps.numerator) / noise.steps.denominator
        for j, threshold in enumerate(noise.thresholds):
            assert 0 < threshold <= whole // 2
            p = decimal.Decimal(threshold) / whole
            exact = 1 / (1 + (decimal.Decimal(2**j) / t).exp())
            error += max(abs((p / exact).ln()), abs(((1 - p) / (1 - exact)).ln()))
    assert 4 * Fraction(error) < noise.slack(1) < Fraction(1, 10**37)
    assert noise.largest > 134 * steps


def test_draws_follow_the_exact_law():
    noise = DiscreteLaplace(Fraction(3, 2), 4)
    size = 200_000
    draws = noise.draw(tf.constant([size // 4, 4])).numpy().ravel()
    law, total = exact_law(noise)
    middle = range(-9, 10)
    observed = [np.sum(draws == k) for k in middle]
    expected = [size * (law[noise.largest + k] / total) for k in middle]
    observed += [np.sum(draws < -9), np.sum(draws > 9)]
    tail = size * (sum(law[noise.largest + 10 :]) / total)
    expected += [tail, tail]
    statistic = np.sum((np.array(observed) - expected) ** 2 / expected)
    assert statistic < scipy.stats.chi2.isf(1e-10, len(expected) - 1)
