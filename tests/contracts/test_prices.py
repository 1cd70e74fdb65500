"""The price of every mechanism against exact figures, and twins that must not pass.

Finite mechanisms are listed outcome by outcome; the Gaussian ones have closed forms.
"""

from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pytest
from scipy import optimize, stats

from tfpriv.accounting import (
    Compose,
    DPSGDPlan,
    Gaussian,
    LaplaceCertificate,
    NonPrivate,
    PureDP,
    epsilon,
)
from tfpriv.mechanisms import (
    GaussianCounts,
    RandomizedResponse,
    select_partitions,
    selection_threshold,
)

DELTA = 1e-5

# Name -> (how much privacy is asked for -> event), the less private the later.
FAMILIES = {
    "counts": lambda x: GaussianCounts(2.0, 1 / x).event(),
    "response": lambda x: RandomizedResponse(("a", "b", "c"), x).event(),
    "selection": lambda x: select_partitions({}, 1 / x, 1e-6)[1],
    "ball": lambda x: LaplaceCertificate.from_epsilon(x, 8, radius=1.0).event(),
    "box": lambda x: LaplaceCertificate.nominal(x, 8).event(),
    "code": lambda x: LaplaceCertificate.from_epsilon(x, 3, "code").event(),
    "poisson": lambda x: DPSGDPlan(1000, 50, 60, 1 / x).event(),
    "once": lambda x: DPSGDPlan(1000, 50, 60, 1 / x, sampling="once_per_epoch").event(),
    "full": lambda x: DPSGDPlan(50, 50, 6, 1 / x, sampling="full_batch").event(),
    "none": lambda x: DPSGDPlan(1000, 50, 6, 1 / x, sampling="none").event(),
}


@pytest.fixture(autouse=True)
def _quick_distributions(monkeypatch):
    monkeypatch.setattr("tfpriv.accounting.pld._FINEST_INTERVAL", 2e-3)


@pytest.mark.parametrize("accountant", ["rdp", "pld"])
@pytest.mark.parametrize("name", FAMILIES)
def test_less_noise_costs_more(name, accountant):
    prices = [epsilon(FAMILIES[name](x), DELTA, accountant) for x in (0.3, 0.9, 2.0)]
    assert all(0 < a < b < math.inf for a, b in itertools.pairwise(prices))


@pytest.mark.parametrize("name", FAMILIES)
def test_composition_identities(name):
    event = FAMILIES[name](0.5)
    price = epsilon(event, DELTA)
    assert epsilon(Compose((event, Compose(()))), DELTA) == price
    twice = epsilon(Compose((event, event)), 2 * DELTA)
    assert price <= twice <= 2 * price * (1 + 1e-9)
    assert epsilon(Compose((event, NonPrivate())), DELTA) == math.inf


@pytest.mark.parametrize("name", FAMILIES)
def test_rdp_is_never_below_pld_beyond_its_rounding(name):
    for x in (0.3, 2.0):
        event = FAMILIES[name](x)
        assert epsilon(event, DELTA) >= epsilon(event, DELTA, "pld") * 0.999


# Finite mechanisms, every outcome listed.


def _response_table(mechanism):
    count = len(mechanism.labels)
    table = np.full((count, count), mechanism.change_probability)
    np.fill_diagonal(table, mechanism.keep_probability)
    return table


def _exact_epsilon(table, times, delta):
    """The epsilon of `times` releases of the worst pair of inputs, by all outcomes."""
    worst = 0.0
    for a, b in itertools.permutations(range(len(table)), 2):
        p, q = table[a], table[b]
        for _ in range(times - 1):
            p, q = np.outer(p, table[a]).ravel(), np.outer(q, table[b]).ravel()

        def excess(value, p=p, q=q):
            return np.maximum(p - math.exp(value) * q, 0).sum() - delta

        if excess(0.0) > 0:
            top = float(np.log(p / q).max())
            worst = max(worst, optimize.brentq(excess, 0.0, top + 1))
    return worst


def check_response(price):
    for labels, value, times in ((2, 1.0, 5), (3, 0.5, 4), (4, 2.0, 3), (2, 4.0, 2)):
        mechanism = RandomizedResponse(tuple(range(labels)), value)
        table = _response_table(mechanism)
        assert np.allclose(table.sum(1), 1)
        for delta in (1e-9, 1e-5, 0.01):
            true = _exact_epsilon(table, times, delta)
            for accountant in ("rdp", "pld"):
                found = price(PureDP(value, times), delta, accountant)
                assert true * (1 - 1e-9) <= found <= times * value * (1 + 1e-9)


def test_randomised_response_by_all_outcomes():
    check_response(epsilon)


def _advanced_composition_without_its_second_term(event, delta, accountant="rdp"):
    (value, count) = event.epsilon, event.count
    return min(count * value, value * math.sqrt(2 * count * math.log(1 / delta)) / 2)


def _once(event, delta, accountant="rdp"):
    return event.epsilon


@pytest.mark.parametrize("twin", [_once, _advanced_composition_without_its_second_term])
def test_a_twin_that_composes_too_cheaply_is_rejected(twin):
    with pytest.raises(AssertionError):
        check_response(twin)


# Partition selection.


def check_selection(threshold):
    for sigma, delta, names in ((1.0, 1e-6, 1), (5.0, 1e-5, 3), (20.0, 1e-9, 10)):
        edge = threshold(sigma, delta, max_contributions=names)
        deviation = sigma * math.sqrt(names)
        # All names of one record have a count of 1, and no other record has them.
        passes = -math.expm1(names * stats.norm.logcdf((edge - 1) / deviation))
        assert passes <= delta
        assert passes > 0.99 * delta


def test_a_name_of_one_record_passes_as_seldom_as_accounted():
    check_selection(selection_threshold)


@pytest.mark.parametrize(
    "twin",
    [
        lambda sigma, delta, max_contributions: (
            selection_threshold(sigma, delta, max_contributions=max_contributions) - 1
        ),
        lambda sigma, delta, max_contributions: selection_threshold(sigma, delta),
    ],
    ids=["forgets the count itself", "forgets the other names"],
)
def test_a_twin_with_a_lower_threshold_is_rejected(twin):
    with pytest.raises(AssertionError):
        check_selection(twin)


# Other people's accountants.


def test_prices_are_those_that_tf_privacy_states():
    # A hook of that package: without it, its import wants estimators.
    sys.skip_tf_privacy_import = True
    try:
        from tensorflow_privacy.privacy.analysis import (
            compute_dp_sgd_privacy_lib as lib,
        )
    finally:
        del sys.skip_tf_privacy_import
    stated = lib.compute_dp_sgd_privacy_statement(
        number_of_examples=1956,
        batch_size=64,
        num_epochs=10,
        noise_multiplier=1.0,
        delta=DELTA,
        used_microbatching=False,
    )
    poisson = DPSGDPlan(1956, 64, math.ceil(10 * 1956 / 64), 1.0)
    said = " ".join(stated.split())
    assert f"assuming Poisson sampling (*): {poisson.epsilon(DELTA):.3f}" in said
    # Ten whole passes: of the last step's batch, a few records would begin another.
    once = DPSGDPlan(1956, 64, 305, 1.0, sampling="once_per_epoch")
    assert f"occurring once per epoch: {once.epsilon(DELTA):.3f}" in said


def test_a_gaussian_is_priced_alike_by_mechanism_and_by_event():
    mechanism = GaussianCounts(10**0.5, 3.0)
    assert epsilon(mechanism.event(), DELTA) == epsilon(Gaussian(3.0), DELTA)
