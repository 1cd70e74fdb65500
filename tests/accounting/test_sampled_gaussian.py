"""Series of sampled Gaussian noise against an integral, dp_accounting, and twins."""

import math

import numpy as np
import pytest
from scipy import integrate

from tfpriv.accounting import PoissonGaussian, _sampled_gaussian, rdp

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


@pytest.mark.parametrize(("q", "sigma"), [(1e-9, 0.7), (1e-12, 5.0), (0.5, 1e-4)])
def test_curves_that_lost_their_digits_are_bounds_nevertheless(q, sigma):
    event = PoissonGaussian(q, sigma)
    values, orders = rdp.curve(event), np.array(rdp.default_orders())
    assert np.all(values >= 0)
    assert np.all(values <= orders / 2 / sigma / sigma)
    assert np.all(np.diff(values) >= 0)
