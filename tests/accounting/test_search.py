"""A search with a random number of runs: against the library, and exact figures."""

from __future__ import annotations

import json
import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import dp_event, rdp
from scipy import optimize

from tfpriv._errors import InputError
from tfpriv.accounting import (
    ApproxDP,
    Compose,
    Event,
    Gaussian,
    NonPrivate,
    Parallel,
    PoissonGaussian,
    PureDP,
    Repeat,
    RepeatAndSelect,
    epsilon,
    group_epsilon,
)
from tfpriv.accounting.statement import describe

DELTA = 1e-5
LAWS = [(5, 1.0), (10, 0.0), (3, 0.5), (20, math.inf), (1.5, 2.0)]


@pytest.mark.parametrize(("mean", "shape"), LAWS)
def test_the_price_is_that_of_dp_accounting(mean, shape):
    sampled = dp_accounting.PoissonSampledDpEvent(
        0.05, dp_accounting.GaussianDpEvent(1.0)
    )
    for ours, theirs in (
        (Gaussian(2.0), dp_accounting.GaussianDpEvent(2.0)),
        (
            PoissonGaussian(0.05, 1.0, 200),
            dp_accounting.SelfComposedDpEvent(sampled, 200),
        ),
    ):
        accountant = rdp.RdpAccountant()
        accountant.compose(dp_event.RepeatAndSelectDpEvent(theirs, mean, shape))
        expected = accountant.get_epsilon(DELTA)
        found = epsilon(RepeatAndSelect(ours, mean, shape), DELTA)
        assert expected * (1 - 1e-9) <= found <= expected * (1 + 1e-6)


def _generating_function(mean, shape):
    """E[x^K], and the probability that nothing is shown."""
    if math.isinf(shape):
        return (lambda x: np.exp(mean * (x - 1))), math.exp(-mean)

    def mean_of(log_gamma):
        gamma = math.exp(log_gamma)
        if shape == 0:
            return (1 / gamma - 1) / -log_gamma
        return shape * (1 - gamma) / (gamma * (1 - gamma**shape))

    gamma = math.exp(optimize.brentq(lambda x: mean_of(x) - mean, -20, -1e-6))
    if shape == 0:
        return (lambda x: np.log1p(-(1 - gamma) * x) / math.log(gamma)), 0.0
    return (lambda x: ((1 - (1 - gamma) * x) ** -shape - 1) / (gamma**-shape - 1)), 0.0


def _best_of(run, mean, shape):
    """Outcome probabilities of the largest of K draws from `run`, then of nothing."""
    generating, nothing = _generating_function(mean, shape)
    below = generating(np.concatenate([[0.0], np.cumsum(run)]))
    return np.append(np.diff(below), nothing)


def check_never_below_the_truth(price):
    for value, outcomes in ((1.0, 2), (0.5, 4), (2.0, 3)):
        for mean, shape in LAWS:
            kept = math.exp(value) / (math.exp(value) + outcomes - 1)
            table = np.full((outcomes, outcomes), (1 - kept) / (outcomes - 1))
            np.fill_diagonal(table, kept)
            for a in range(outcomes):
                for b in range(outcomes):
                    p = _best_of(table[a], mean, shape)
                    q = _best_of(table[b], mean, shape)
                    assert p.sum() == pytest.approx(1)
                    found = price(RepeatAndSelect(PureDP(value), mean, shape), DELTA)
                    assert np.maximum(p - math.exp(found) * q, 0).sum() <= DELTA


def test_a_search_costs_at_least_what_all_outcomes_show():
    check_never_below_the_truth(epsilon)


@pytest.mark.parametrize("share", [1.0, 1.2])
def test_a_twin_that_takes_a_search_for_about_one_run_is_rejected(share):
    with pytest.raises(AssertionError):
        check_never_below_the_truth(lambda search, delta: share * search.event.epsilon)


def test_what_is_not_private_or_unknown_stays_so_inside():
    class Louder(Gaussian):
        pass

    search = RepeatAndSelect(NonPrivate(), 5)
    for event in (search, Compose((search, Gaussian(1.0))), Parallel((search,))):
        assert epsilon(event, DELTA) == math.inf
    with pytest.raises(InputError, match="Louder"):
        RepeatAndSelect(Compose((Louder(1.0),)), 5)


def test_it_composes_like_any_event():
    search = RepeatAndSelect(PoissonGaussian(0.05, 2.0, 50), 8)
    twice = epsilon(Repeat(search, 2), DELTA)
    assert epsilon(search, DELTA) < twice < 2 * epsilon(search, DELTA)
    assert epsilon(Compose((search, search)), DELTA) == twice
    assert epsilon(Parallel((search, Gaussian(50.0))), DELTA) == epsilon(search, DELTA)
    assert group_epsilon(search, DELTA, 2) >= 2 * epsilon(search, DELTA)


@pytest.mark.parametrize(("mean", "shape"), LAWS)
def test_it_goes_through_json_and_is_said_in_words(mean, shape):
    search = RepeatAndSelect(PureDP(0.5), mean, shape)
    text = json.dumps(search.to_json(), allow_nan=False)
    assert Event.from_json(json.loads(text)) == search
    assert f"{mean:g} on average" in describe(search)


def test_pld_has_no_price():
    with pytest.raises(InputError, match="Use accountant='rdp'"):
        epsilon(RepeatAndSelect(Gaussian(1.0), 5), DELTA, "pld")


@pytest.mark.parametrize("shape", [0.0, 1e-12, 0.5, 1.0, 1e12, math.inf])
@pytest.mark.parametrize("mean", [1 + 1e-15, 1.0001, 1e6, 1e15])
def test_extreme_laws_have_a_price_and_more_runs_cost_more(mean, shape):
    once = epsilon(PureDP(0.1), DELTA)
    found = epsilon(RepeatAndSelect(PureDP(0.1), mean, shape), DELTA)
    more = epsilon(RepeatAndSelect(PureDP(0.1), min(1.5 * mean, 1e15), shape), DELTA)
    assert once <= found <= more


@pytest.mark.parametrize("mean", [1, 0.5, 0, -1, math.nan, math.inf, "5", None])
def test_a_mean_that_is_none_is_refused(mean):
    with pytest.raises(InputError, match="mean"):
        RepeatAndSelect(Gaussian(1.0), mean)


@pytest.mark.parametrize("shape", [-1, math.nan, -math.inf, "1"])
def test_a_shape_that_is_none_is_refused(shape):
    with pytest.raises(InputError, match="shape"):
        RepeatAndSelect(Gaussian(1.0), 5, shape)


def test_runs_with_an_additive_delta_are_refused():
    with pytest.raises(InputError, match="additive delta"):
        RepeatAndSelect(Compose((Gaussian(1.0), ApproxDP(1.0, 1e-6))), 5)
