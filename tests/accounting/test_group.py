"""The price of a group, against the exact trade-off of the worst data sets."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tfpriv._errors import InputError
from tfpriv.accounting import (
    ApproxDP,
    Compose,
    Gaussian,
    GaussianThreshold,
    NonPrivate,
    Parallel,
    PoissonGaussian,
    PrivacyStatement,
    PrivateRead,
    PureDP,
    epsilon,
    group_epsilon,
)

DELTA = 1e-5


def _gaussian_delta(value, shift):
    """Exact delta of N(shift, 1) against N(0, 1) (Balle & Wang 2018, theorem 8)."""
    far = stats.norm.cdf(shift / 2 - value / shift)
    return far - math.exp(value + stats.norm.logcdf(-shift / 2 - value / shift))


def _sampled_delta(value, rate, sigma, size):
    """Exact delta of one Poisson sample, `size` records more or fewer."""
    grid = np.linspace(-12 * sigma, size + 12 * sigma, 400_001)
    without = stats.norm.pdf(grid, 0, sigma)
    chances = stats.binom.pmf(np.arange(size + 1), size, rate)
    present = sum(c * stats.norm.pdf(grid, i, sigma) for i, c in enumerate(chances))
    e, step = math.exp(value), grid[1] - grid[0]
    return max(
        np.maximum(present - e * without, 0).sum() * step,
        np.maximum(without - e * present, 0).sum() * step,
    )


def check_gaussian(price):
    for sigma, count, size in ((10.0, 1, 5), (2.0, 3, 2), (1.0, 1, 8)):
        shift = size * math.sqrt(count) / sigma
        assert _gaussian_delta(price(Gaussian(sigma, count), size), shift) <= DELTA


def check_sampled(price):
    for rate, sigma, size in ((0.2, 1.0, 2), (0.5, 2.0, 3), (0.05, 0.8, 4)):
        value = price(PoissonGaussian(rate, sigma), size)
        assert value < math.inf
        assert _sampled_delta(value, rate, sigma, size) <= DELTA


def check_pure(price):
    for value, size in ((0.5, 3), (2.0, 4)):
        assert price(PureDP(value), size) >= value * size * (1 - 1e-12)


def check_selection(price):
    for sigma, delta, names, size in (
        (10.0, 1e-6, 1, 3),
        (30.0, 1e-6, 1, 8),
        (5.0, 1e-8, 3, 2),
        (4.0, 1e-6, 1, 6),
    ):
        value = price(GaussianThreshold(sigma, delta, names), size)
        if math.isinf(value):
            continue
        deviation = sigma * math.sqrt(names)
        tail = stats.norm.isf(delta / names)
        # All of the group's records have the same new names, or each has its own.
        same = -math.expm1(names * stats.norm.logcdf(tail - (size - 1) / deviation))
        others = -math.expm1(size * names * stats.norm.logcdf(tail))
        assert max(same, others) <= DELTA
        # Or all have names that others have as well.
        assert _gaussian_delta(value, size / sigma) <= DELTA


CHECKS = [check_gaussian, check_sampled, check_pure, check_selection]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_never_below_the_truth(check):
    check(lambda event, size: group_epsilon(event, DELTA, size))


def _k_times_epsilon_at_the_same_delta(event, size):
    return size * epsilon(event, DELTA)


def _of_one_record(event, size):
    return epsilon(event, DELTA)


def _of_which_the_delta_stays(event, size):
    sigma = event.noise_multiplier / size
    return epsilon(GaussianThreshold(sigma, event.delta), DELTA)


def _square_root(event, size):
    return epsilon(event, DELTA) * math.sqrt(size)


@pytest.mark.parametrize(
    ("twin", "check"),
    [
        (_k_times_epsilon_at_the_same_delta, check_gaussian),
        (_of_one_record, check_gaussian),
        (_of_which_the_delta_stays, check_selection),
        (_of_one_record, check_sampled),
        (_of_one_record, check_pure),
        (_square_root, check_pure),
    ],
)
def test_a_broken_twin_is_rejected(twin, check):
    with pytest.raises(AssertionError):
        check(twin)


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
def test_gaussian_parts_are_priced_at_their_noise_over_the_size(
    accountant, monkeypatch
):
    monkeypatch.setattr("tfpriv.accounting.pld._FINEST_INTERVAL", 2e-3)
    event = Compose((Gaussian(20.0, 3), Parallel((Gaussian(8.0), Gaussian(9.0, 2)))))
    alone = Compose((Gaussian(4.0, 3), Parallel((Gaussian(1.6), Gaussian(1.8, 2)))))
    assert group_epsilon(event, DELTA, 5, accountant) == pytest.approx(
        epsilon(alone, DELTA, accountant), rel=1e-9
    )


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(5.0),
        PureDP(0.3, 2),
        ApproxDP(0.3, 1e-9),
        PoissonGaussian(0.1, 2.0, 20),
        Compose((GaussianThreshold(20.0, 1e-9), Gaussian(10.0))),
        Compose((PureDP(0.1), Parallel((Gaussian(9.0), PureDP(0.2))))),
    ],
)
def test_a_larger_group_costs_more_and_one_record_the_same(event):
    prices = [group_epsilon(event, DELTA, size) for size in (1, 2, 3, 5)]
    assert prices[0] == epsilon(event, DELTA)
    assert all(a < b < math.inf for a, b in itertools.pairwise(prices))


def test_pure_epsilons_grow_as_the_group_does():
    event = Compose((PureDP(0.5, 2), PureDP(0.25)))
    assert group_epsilon(event, 1e-200, 4) == pytest.approx(5.0)


def test_parts_that_are_not_all_gaussian_are_converted():
    """Half the group in either part: 2 + 2 times .2, which is 4 times .2."""
    event = Parallel((PureDP(0.2), PureDP(0.2)))
    assert group_epsilon(event, DELTA, 4) >= 0.8 * (1 - 1e-9)


def test_additive_delta_has_to_fit_for_the_group():
    assert group_epsilon(GaussianThreshold(5.0, 4e-6), DELTA, 50) == math.inf
    assert group_epsilon(ApproxDP(0.1, 9e-6), DELTA, 2) == math.inf
    # The sum of e^(i / 10) over i < 2 is 2.105.
    fits = group_epsilon(ApproxDP(0.1, 4.7e-6), DELTA, 2)
    assert fits == pytest.approx(0.2, rel=1e-6)


def test_no_guarantee_for_one_is_none_for_several():
    assert group_epsilon(Compose((NonPrivate(), Gaussian(1.0))), DELTA, 3) == math.inf
    assert group_epsilon(Gaussian(1.0), DELTA, 10**6) > 1e9


@pytest.mark.parametrize("size", [0, -1, 1.5, 2.0, math.nan, "2", True, None])
def test_a_size_that_is_no_whole_number_from_1_is_refused(size):
    with pytest.raises(InputError, match="size"):
        group_epsilon(Gaussian(1.0), DELTA, size)
    with pytest.raises(InputError, match="size"):
        PrivacyStatement([], delta=DELTA).group_epsilon(size)


def test_a_statement_prices_groups_and_its_json_is_as_before():
    reads = [PrivateRead("counts", Gaussian(10.0), part=p) for p in ("spam", "ham")]
    statement = PrivacyStatement(reads, delta=DELTA)
    assert statement.group_epsilon(1) == statement.epsilon
    assert statement.group_epsilon(5) == pytest.approx(epsilon(Gaussian(2.0), DELTA))
    assert statement.to_json()["group"] is None


def test_a_selection_has_a_price_for_a_group():
    event = Compose((GaussianThreshold(20.0, 1e-6), Gaussian(3.0)))
    found = group_epsilon(event, DELTA, 3)
    assert 3 * epsilon(event, DELTA) < found < math.inf
    # Its own bound alone says nothing: one record's delta grows with e^(k epsilon).
    assert group_epsilon(GaussianThreshold(2.0, 1e-6), DELTA, 10**9) == math.inf
    assert group_epsilon(GaussianThreshold(1e9, 1e-6), DELTA, 10**9) == math.inf
