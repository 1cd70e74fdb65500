"""What every accountant must satisfy, and broken twins that must not pass.

An accountant here is a function (event, delta) -> epsilon. A new one is added to
ACCOUNTANTS; a new property is a `check_...` function, and a twin that breaks it.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import pytest
from scipy import optimize, stats

from tfpriv._errors import InputError
from tfpriv.accounting import (
    ApproxDP,
    Compose,
    Event,
    Gaussian,
    GaussianThreshold,
    NonPrivate,
    Parallel,
    PoissonGaussian,
    PureDP,
    Repeat,
    epsilon,
)
from tfpriv.accounting.events import flatten

DELTA = 1e-5


@pytest.fixture(autouse=True)
def _quick_distributions(monkeypatch):
    """Coarser loss distributions: still upper bounds, and much quicker."""
    monkeypatch.setattr("tfpriv.accounting.pld._FINEST_INTERVAL", 2e-3)


@dataclasses.dataclass(frozen=True)
class Unknown(Event):
    """A mechanism of somebody else's, with fields that look familiar."""

    noise_multiplier: float = 1.0
    count: int = 1


class Louder(Gaussian):
    """A subclass of a known event may mean anything."""


ACCOUNTANTS = {
    "rdp": functools.partial(epsilon, accountant="rdp"),
    "pld": functools.partial(epsilon, accountant="pld"),
}


def _nested(event):
    """The event at several depths, beside and inside known ones."""
    fine = Gaussian(3.0)
    yield event
    yield Compose((fine, event))
    yield Repeat(event, 3)
    yield Parallel((fine, event))
    yield Compose((fine, Parallel((fine, Repeat(Compose((event,)), 2)))))


def check_nothing_costs_nothing(account):
    for nothing in (Compose(()), Parallel(()), Repeat(Compose(()), 5), PureDP(0.0)):
        assert account(nothing, DELTA) == 0


def check_not_private_is_infinite_at_every_depth(account):
    for event in _nested(NonPrivate()):
        assert account(event, DELTA) == math.inf


def check_unknown_is_refused_at_every_depth(account):
    for stranger in (Unknown(), Louder(1.0)):
        for event in _nested(stranger):
            with pytest.raises(InputError):
                account(event, DELTA)


def check_more_use_costs_more(account):
    steps = [account(PoissonGaussian(0.05, 1.0, n), DELTA) for n in (10, 100, 1000)]
    noise = [account(PoissonGaussian(0.05, s, 100), DELTA) for s in (3.0, 1.0, 0.6)]
    rate = [account(PoissonGaussian(q, 1.0, 50), DELTA) for q in (0.01, 0.1, 0.9, 1.0)]
    delta = [account(Gaussian(1.0, 5), d) for d in (0.1, 1e-3, 1e-6, 1e-9)]
    for prices in (steps, noise, rate, delta):
        assert all(a < b for a, b in itertools.pairwise(prices)), prices


def check_composition_is_counted(account):
    once = PoissonGaussian(0.1, 1.0)
    ways = [
        PoissonGaussian(0.1, 1.0, 6),
        Compose((once,) * 6),
        Repeat(once, 6),
        Repeat(Compose((once, Repeat(once, 2))), 2),
        Parallel((Repeat(once, 6), once)),
    ]
    prices = [account(way, DELTA) for way in ways]
    assert prices == pytest.approx([prices[0]] * len(ways), rel=1e-9)
    # k Gaussians of sigma are one of sigma / sqrt(k).
    assert account(Gaussian(4.0, 16), DELTA) == pytest.approx(
        account(Gaussian(1.0), DELTA), rel=1e-3
    )
    assert account(Compose((Gaussian(1.0), once)), DELTA) > max(
        account(Gaussian(1.0), DELTA), account(once, DELTA)
    )


def check_parallel_is_the_dearest_part(account):
    cheap, dear, rest = Gaussian(5.0), PoissonGaussian(0.3, 1.0, 20), Gaussian(2.0)
    both = account(Compose((rest, Parallel((cheap, dear)))), DELTA)
    assert both >= account(Compose((rest, dear)), DELTA) * (1 - 1e-9)
    assert both < account(Compose((rest, cheap, dear)), DELTA)


def check_additive_delta_is_spent(account):
    selection = GaussianThreshold(2.0, 4e-6)
    assert account(selection, DELTA) == pytest.approx(
        account(Gaussian(2.0), 6e-6), rel=1e-9
    )
    twice = account(Repeat(selection, 2), DELTA)
    assert twice == pytest.approx(account(Gaussian(2.0, 2), 2e-6), rel=1e-9)
    assert account(Repeat(selection, 3), DELTA) == math.inf
    assert account(Parallel((selection,) * 3), DELTA) < twice
    leak = ApproxDP(0.3, 1e-6, 5)
    assert account(leak, DELTA) == pytest.approx(
        account(PureDP(0.3, 5), 5e-6), rel=1e-9
    )
    assert account(Repeat(leak, 3), DELTA) == math.inf


def check_never_below_the_truth(account):
    for sigma, count in ((1.0, 1), (5.0, 40), (0.5, 2)):
        true = _gaussian_epsilon(sigma / math.sqrt(count), DELTA)
        assert account(Gaussian(sigma, count), DELTA) >= true * (1 - 1e-6)
    for base, count in ((0.5, 8), (2.0, 3), (0.1, 20)):
        true = _randomised_response_epsilon(base, count, DELTA)
        assert account(PureDP(base, count), DELTA) >= true * (1 - 1e-6)
        assert account(PureDP(base, count), DELTA) <= base * count * (1 + 1e-9)
        true = _leaking_response_epsilon(base, 1e-7, count, DELTA)
        assert account(ApproxDP(base, 1e-7, count), DELTA) >= true * (1 - 1e-6)
    for rate, sigma in ((0.2, 1.0), (0.5, 0.7), (0.01, 0.3)):
        true = _sampled_gaussian_epsilon(rate, sigma, DELTA)
        assert account(PoissonGaussian(rate, sigma), DELTA) >= true * (1 - 1e-6)


CHECKS = [value for name, value in globals().copy().items() if name[:6] == "check_"]


def _gaussian_epsilon(sigma, delta):
    """Exact epsilon of the Gaussian mechanism (Balle & Wang 2018, theorem 8)."""

    def excess(value):
        a, b = 0.5 / sigma - value * sigma, -0.5 / sigma - value * sigma
        return stats.norm.cdf(a) - math.exp(value + stats.norm.logcdf(b)) - delta

    return optimize.brentq(excess, 0, 500) if excess(0) > 0 else 0.0


def _sampled_gaussian_epsilon(rate, sigma, delta):
    """Exact epsilon of one sampled Gaussian release, a record removed.

    The likelihood ratio 1 - q + q exp((2x - 1) / (2 sigma^2)) grows with x, so the
    worst set is a half-line.
    """

    def excess(value):
        ratio = (math.exp(value) - 1 + rate) / rate
        edge = sigma**2 * math.log(ratio) + 0.5
        without = stats.norm.sf(edge / sigma)
        present = stats.norm.sf((edge - 1) / sigma)
        return (1 - rate) * without + rate * present - math.exp(value) * without - delta

    return optimize.brentq(excess, 1e-9, 100) if excess(1e-9) > 0 else 0.0


def _leaking_response_epsilon(base, leak, count, delta):
    """The same where each of them tells all with probability `leak`."""
    sound = (1 - leak) ** count
    return _randomised_response_epsilon(base, count, (delta - (1 - sound)) / sound)


def _randomised_response_epsilon(base, count, delta):
    """Exact epsilon of `count` randomised responses, by listing all outcomes."""
    yes = 1 / (1 + math.exp(-base))

    def excess(value):
        total = 0.0
        for k in range(count + 1):
            p = math.comb(count, k) * yes**k * (1 - yes) ** (count - k)
            q = math.comb(count, k) * yes ** (count - k) * (1 - yes) ** k
            total += max(0.0, p - math.exp(value) * q)
        return total - delta

    return optimize.brentq(excess, 0, base * count) if excess(0) > 0 else 0.0


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("name", ACCOUNTANTS)
def test_accountant(name, check):
    check(ACCOUNTANTS[name])


def _always(value):
    return lambda event, delta: value


def _clamps_infinity(event, delta):
    return min(epsilon(event, delta), 1e6)


def _skips_unknown(event, delta):
    def known(part):
        if isinstance(part, Compose | Parallel):
            return type(part)(tuple(map(known, part.events)))
        if isinstance(part, Repeat):
            return Repeat(known(part.event), part.count)
        return Compose(()) if isinstance(part, Unknown | Louder) else part

    return epsilon(known(event), delta)


def _charges_once(event, delta):
    try:
        units = tuple(flatten(event))
    except InputError:
        raise
    return epsilon(Compose(units), delta)


def _adds_parts(event, delta):
    def flat(part):
        if isinstance(part, Parallel):
            return Compose(tuple(map(flat, part.events)))
        if isinstance(part, Compose):
            return Compose(tuple(map(flat, part.events)))
        return part

    return epsilon(flat(event), delta)


def _takes_the_first_part(event, delta):
    def first(part):
        if isinstance(part, Parallel):
            return part.events[0] if part.events else Compose(())
        if isinstance(part, Compose):
            return Compose(tuple(map(first, part.events)))
        return part

    return epsilon(first(event), delta)


def _forgets_additive_delta(event, delta):
    def without(part):
        if isinstance(part, GaussianThreshold):
            return Gaussian(part.noise_multiplier)
        if isinstance(part, ApproxDP):
            return PureDP(part.epsilon, part.count)
        if isinstance(part, Compose | Parallel):
            return type(part)(tuple(map(without, part.events)))
        if isinstance(part, Repeat):
            return Repeat(without(part.event), part.count)
        return part

    return epsilon(without(event), delta)


TWINS = [
    (_always(1.0), check_nothing_costs_nothing),
    (_always(0.0), check_not_private_is_infinite_at_every_depth),
    (_always(0.0), check_more_use_costs_more),
    (_clamps_infinity, check_not_private_is_infinite_at_every_depth),
    (_skips_unknown, check_unknown_is_refused_at_every_depth),
    (_charges_once, check_composition_is_counted),
    (_charges_once, check_more_use_costs_more),
    (_adds_parts, check_parallel_is_the_dearest_part),
    (_takes_the_first_part, check_parallel_is_the_dearest_part),
    (_forgets_additive_delta, check_additive_delta_is_spent),
    (lambda event, delta: 0.8 * epsilon(event, delta), check_never_below_the_truth),
]


@pytest.mark.parametrize(
    ("twin", "check"),
    TWINS,
    ids=[f"{t.__name__}-{c.__name__[6:]}" for t, c in TWINS],
)
def test_a_broken_twin_is_rejected(twin, check):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(twin)


def test_rdp_is_never_below_pld_beyond_its_rounding():
    for event in (
        PoissonGaussian(64 / 1956, 1.0, 306),
        Gaussian(2.0, 10),
        Compose((GaussianThreshold(4.0, 1e-6), PoissonGaussian(0.2, 2.0, 40))),
        Compose((Gaussian(3.0), Parallel((Gaussian(2.0), PoissonGaussian(0.5, 1.0))))),
        PureDP(0.1, 30),
    ):
        assert epsilon(event, DELTA, "rdp") >= epsilon(event, DELTA, "pld") * 0.999


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize(
    "delta", [0, 0.0, 1, 1.0, 2, -1e-5, math.nan, math.inf, "1e-5", True, None]
)
def test_a_delta_that_is_no_probability_is_refused(accountant, delta):
    with pytest.raises(InputError, match="delta"):
        epsilon(Gaussian(1.0), delta, accountant)


@pytest.mark.parametrize(
    "event", [None, 1.0, "Gaussian", Gaussian, {"type": "Gaussian"}]
)
def test_what_is_no_event_is_refused(event):
    with pytest.raises(InputError):
        epsilon(event, DELTA)


@pytest.mark.parametrize("accountant", ["RDP", "zcdp", None, 1])
def test_an_unknown_accountant_is_refused(accountant):
    with pytest.raises(InputError, match="accountant"):
        epsilon(Gaussian(1.0), DELTA, accountant)
