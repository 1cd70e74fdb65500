"""The interval of a loss distribution: coarse where that shows in no digit."""

import math

import pytest

from tfpriv.accounting import Compose, Gaussian, PoissonGaussian, epsilon, pld

DELTA = 1e-5
FINEST = pld._FINEST_INTERVAL
PLANS = [
    PoissonGaussian(64 / 1956, 1.0, 306),
    PoissonGaussian(0.2, 3.0, 200),
    Gaussian(1.0, 10),
    Compose((Gaussian(2.0), PoissonGaussian(0.05, 0.9, 50))),
]


def check_rounding(rounding, monkeypatch):
    coarser = 0
    for event in PLANS:
        monkeypatch.setattr(pld, "_ROUNDING", rounding)
        coarser += pld._interval(event, DELTA) > 1.3 * FINEST
        found = pld.epsilon_of_event(event, DELTA)
        monkeypatch.setattr(pld, "_ROUNDING", 0.0)
        assert pld._interval(event, DELTA) < 1.3 * FINEST
        finest = pld.epsilon_of_event(event, DELTA)
        assert finest * (1 - 1e-9) <= found <= finest * (1 + 2e-6)
    assert coarser >= 3


def test_a_coarser_grid_adds_two_millionths_at_most_and_takes_nothing(monkeypatch):
    check_rounding(pld._ROUNDING, monkeypatch)


@pytest.mark.parametrize("twin", [1e-4, 1e-9])
def test_a_twin_that_is_too_coarse_or_never_coarser_is_rejected(twin, monkeypatch):
    with pytest.raises(AssertionError):
        check_rounding(twin, monkeypatch)


def _one_direction(event, added):
    uses = pld.flatten(event)
    return pld._epsilon_one_way(uses, DELTA, 1e-3, added=added)


def test_the_dearer_direction_is_the_price(monkeypatch):
    """Also where the one that is tried roughly decides."""
    monkeypatch.setattr(pld, "_FINEST_INTERVAL", 1e-3)
    event = PoissonGaussian(0.2, 1.0, 30)
    ways = [_one_direction(event, added) for added in (False, True)]
    assert ways[0] > ways[1]
    assert pld._epsilon_of_case(event, DELTA) == ways[0]
    one_way = pld._epsilon_one_way

    def swapped(uses, delta, interval, *, added):
        return one_way(uses, delta, interval, added=not added)

    monkeypatch.setattr(pld, "_epsilon_one_way", swapped)
    assert pld._epsilon_of_case(event, DELTA) == ways[0]


@pytest.mark.parametrize("delta", [1e-9, 1e-12])
def test_what_rounding_hides_is_taken_off_delta(delta):
    """So many sampled steps are one release of as much noise, or a little dearer."""
    rate, sigma, steps = 0.1, 30.0, 10**5
    one = sigma / rate / math.sqrt(steps)
    found = epsilon(PoissonGaussian(rate, sigma, steps), delta, "pld")
    true = epsilon(Gaussian(one), delta, "pld")
    assert 0.999 * true <= found <= epsilon(PoissonGaussian(rate, sigma, steps), delta)


def test_a_twin_that_adds_it_is_rejected(monkeypatch):
    """As rounding does on some processors where nothing is taken off."""
    monkeypatch.setattr(pld, "_LOST_DELTA", -pld._LOST_DELTA)
    with pytest.raises(AssertionError):
        test_what_rounding_hides_is_taken_off_delta(1e-12)
