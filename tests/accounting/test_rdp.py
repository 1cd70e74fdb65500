import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from tfpriv.accounting import Gaussian, PoissonGaussian, PureDP, epsilon, rdp

EXTREME = [
    Gaussian(0.001, 727),
    Gaussian(0.001, 56_700),
    Gaussian(0.02, 3),
    Gaussian(1e3),
    Gaussian(1e4, 3),
    PoissonGaussian(0.03, 0.1, 1000),
    PoissonGaussian(0.2, 0.1, 30),
    PoissonGaussian(0.01, 100.0),
]


@pytest.mark.parametrize("event", EXTREME, ids=str)
def test_a_best_order_at_an_end_of_the_grid_widens_it(event):
    orders = rdp.default_orders()
    default, order = rdp.epsilon_of_curve(rdp.curve(event), 1e-5)
    assert order in (orders[0], orders[-1])
    price = rdp.price(event, 1e-5)
    assert price.widened
    assert price.order not in orders
    assert price.default_epsilon == default
    assert price.epsilon < default
    assert epsilon(event, 1e-5) == price.epsilon


@pytest.mark.parametrize(
    "event", [PoissonGaussian(64 / 1956, 1.0, 306), Gaussian(2.0, 3), PureDP(0.1, 40)]
)
def test_a_best_order_inside_the_grid_leaves_it_as_it_is(event):
    price = rdp.price(event, 1e-5)
    assert not price.widened
    assert price.epsilon == price.default_epsilon


def _exact_gaussian(sigma, delta):
    # Balle & Wang 2018, theorem 8; divided by delta and in logarithms where it can
    # be: epsilon may be 3e10.
    def excess(value):
        a, b = 0.5 / sigma - value * sigma, -0.5 / sigma - value * sigma
        gain = value + stats.norm.logcdf(b) - stats.norm.logcdf(a)
        return stats.norm.logcdf(a) + np.log1p(-math.exp(min(gain, -1e-16)))

    top = 0.5 / sigma / sigma + 40 / sigma
    return optimize.brentq(lambda v: excess(v) - math.log(delta), 0, top)


@pytest.mark.parametrize("sigma", [0.001 / 727**0.5, 0.01, 0.1, 1.0, 10.0, 1e3])
def test_a_wide_grid_is_never_below_the_truth_and_near_it(sigma):
    for delta in (1e-5, 1e-9):
        true = _exact_gaussian(sigma, delta)
        found = epsilon(Gaussian(sigma), delta)
        assert true <= found * (1 + 1e-9)
        assert found <= true * 1.5


def test_the_ends_of_the_grid_do_not_jump():
    # Just inside and just outside of where the grid is widened.
    for events in (
        [Gaussian(sigma) for sigma in np.geomspace(0.02, 0.2, 40)],
        [Gaussian(sigma) for sigma in np.geomspace(50, 2000, 40)],
        [PoissonGaussian(0.1, sigma, 100) for sigma in np.geomspace(0.08, 0.5, 4)],
    ):
        prices = [epsilon(event, 1e-5) for event in events]
        assert all(a > b for a, b in itertools.pairwise(prices))


def test_near_one_a_sampled_divergence_is_bounded_from_above():
    event = PoissonGaussian(0.05, 0.2)
    values = rdp.curve(event, rdp._LOW_ORDERS)
    series = [order >= 1.01 for order in rdp._LOW_ORDERS]
    first = series.index(True)
    assert np.all(np.diff(values[first:]) >= 0)
    assert np.all(values[:first] >= values[first])
    assert np.all(values <= rdp.curve(Gaussian(0.2), rdp._LOW_ORDERS))


def test_a_twin_that_takes_the_series_everywhere_would_lose_its_digits():
    # At 1 + 1e-6 a relative error of 1e-12 in the series is one of 1e-6 in the
    # divergence: the bound that stands in for it is not below the next sound value.
    event = PoissonGaussian(0.05, 0.2)
    near, sound = rdp.curve(event, (1 + 1e-6, 1.5))
    assert near == rdp.curve(event)[0]
    assert near < sound
