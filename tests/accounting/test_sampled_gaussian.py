"""Series of sampled Gaussian noise against an integral, dp_accounting, and twins."""

import math

import numpy as np
import pytest
from scipy import integrate

from tfpriv.accounting import (
    Gaussian,
    PoissonGaussian,
    _sampled_gaussian,
    epsilon,
    rdp,
)

ORDERS = (1.1, 1.5, 2.0, 2.7, 5.9, 17.0, 64.0, 256.0)
CASES = [
    (64 / 1956, 1.0),
    (256 / 60000, 1.1),
    (0.5, 1.0),
    (0.9, 2.0),
    (0.999, 1.0),
    (0.3, 20.0),
    (0.01, 0.3),
    (0.01, 0.1),
    (0.2, 0.01),
    (1e-6, 1.0),
]


def _integral(q, sigma, order):
    """ln E[(mixture / noise)^order] under the noise, by quadrature."""

    def integrand(x):
        ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / 2 / sigma**2)
        log_density = -x * x / 2 / sigma**2 - math.log(sigma * math.sqrt(2 * math.pi))
        return math.exp(order * ratio + log_density)

    found, _ = integrate.quad(
        integrand, -12 * sigma, order + 12 * sigma, points=[0, 1, order], epsabs=1e-13
    )
    return math.log(found) / (order - 1)


@pytest.mark.parametrize("order", [1.1, 1.5, 2.0, 2.7, 5.9])
@pytest.mark.parametrize(("q", "sigma"), [(0.03, 1.0), (0.5, 1.0), (0.9, 2.0)])
def test_the_series_is_the_integral(q, sigma, order):
    (found,) = _sampled_gaussian.sampled_gaussian_curve(q, sigma, [order])
    assert found == pytest.approx(_integral(q, sigma, order), rel=1e-8, abs=1e-11)


def check_against_dp_accounting(curve):
    import dp_accounting
    from dp_accounting import rdp as theirs

    for q, sigma in CASES:
        accountant = theirs.RdpAccountant(ORDERS)
        accountant.compose(
            dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma))
        )
        # Both leave out terms below e^-30, over (order - 1).
        np.testing.assert_allclose(
            curve(q, sigma, ORDERS), accountant.rdp, rtol=1e-9, atol=5e-12
        )


def test_figures_are_those_of_dp_accounting():
    check_against_dp_accounting(_sampled_gaussian.sampled_gaussian_curve)


def _without_the_upper_tail(q, sigma, orders):
    whole = _sampled_gaussian._log_normal_cdf
    try:
        _sampled_gaussian._log_normal_cdf = lambda x: np.where(
            x < -3, -np.inf, whole(x)
        )
        return _sampled_gaussian.sampled_gaussian_curve(q, sigma, orders)
    finally:
        _sampled_gaussian._log_normal_cdf = whole


def _with_interpolated_orders(q, sigma, orders):
    whole = [float(math.ceil(order)) for order in orders]
    return _sampled_gaussian.sampled_gaussian_curve(q, sigma, whole)


@pytest.mark.parametrize("twin", [_without_the_upper_tail, _with_interpolated_orders])
def test_a_twin_with_other_series_is_rejected(twin):
    with pytest.raises(AssertionError):
        check_against_dp_accounting(twin)


def check_tiny_divergences(curve):
    """With positive terms alone: q^2 (e^(1/sigma^2) - 1) at order 2, and its like."""
    for q, sigma in ((1e-8, 1.0), (2e-8, 12.0), (1e-5, 1e6), (1e-12, 0.7)):
        second, third = (math.expm1(k / sigma**2) for k in (1, 3))
        moments = q * q * second, 3 * q * q * (1 - q) * second + q**3 * third
        found = curve(q, sigma, (2.0, 2.5, 3.0))
        np.testing.assert_allclose(found[::2], moments / np.array([1, 2]), rtol=1e-9)
        # Convex in the order, and never below what a lower one shows.
        assert found[0] <= found[1] <= (moments[0] + moments[1]) / 2 / 1.5 * (1 + 1e-9)


def test_tiny_divergences_keep_their_digits():
    check_tiny_divergences(_sampled_gaussian.sampled_gaussian_curve)
    # A billion steps and more are made of them: nearly Gaussian noise, to the last.
    event = PoissonGaussian(1e-8, 1.0, 10**15)
    one = Gaussian(1 / math.sqrt(1e-16 * math.expm1(1) * 1e15))
    assert epsilon(event, 1e-5) == pytest.approx(epsilon(one, 1e-5), rel=1e-5)


def _with_terms_of_both_signs(q, sigma, orders):
    from scipy import special

    found = []
    for order in orders:
        i = np.arange(math.ceil(order) + 1)
        terms = special.binom(order, i) * q**i * (1 - q) ** (order - i)
        found.append(np.sum(terms * np.exp((i * i - i) / 2 / sigma**2)))
    return np.log(found) / (np.array(orders) - 1)


def test_a_twin_whose_sum_begins_with_1_is_rejected():
    with pytest.raises(AssertionError):
        check_tiny_divergences(_with_terms_of_both_signs)


@pytest.mark.parametrize(("q", "sigma"), [(1e-9, 0.7), (1e-12, 5.0), (0.5, 1e-4)])
def test_curves_that_lost_their_digits_are_bounds_nevertheless(q, sigma):
    event = PoissonGaussian(q, sigma)
    values, orders = rdp.curve(event), np.array(rdp.default_orders())
    assert np.all(values >= 0)
    assert np.all(values <= orders / 2 / sigma / sigma)
    assert np.all(np.diff(values) >= 0)
