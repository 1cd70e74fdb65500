"""Renyi curves: the default accountant.

A curve holds, for every order of a grid, the Renyi divergence that an event may
show. Curves of a sequence add up, of disjoint parts the larger value counts at
every order, and `dp_accounting` turns the sum into epsilon. Every order gives a
bound; where the best one is at an end of the grid, a better one may lie beyond it,
and the grid is widened at that end.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np

from tfpriv.accounting._sampled_gaussian import sampled_gaussian_curve
from tfpriv.accounting.events import (
    ApproxDP,
    Event,
    Gaussian,
    GaussianThreshold,
    NonPrivate,
    Parallel,
    PoissonGaussian,
    PureDP,
    RepeatAndSelect,
    flatten,
)

Orders = tuple[float, ...]

# 1 + x for x from .08 down to 1e-6: for noise that is next to none.
_LOW_ORDERS: Orders = tuple(1 + 10 ** (-1 - k / 10) for k in range(50, 0, -1))
# Up to 2^14: for noise that hides nearly everything.
_HIGH_ORDERS: Orders = (1536.0, 2048.0, 3072.0, 4096.0, 6144.0, 8192.0, 16384.0)
# Sampled releases: the series go over all whole numbers up to the order.
_LARGEST_SAMPLED = 3072.0
# Below this dp_accounting converts nothing.
_LEAST_CONVERTED = 1.01


@dataclasses.dataclass(frozen=True)
class RenyiPrice:
    """An epsilon by Renyi curves, and where it came from.

    Attributes:
        epsilon: the bound.
        order: the order that gave it.
        widened: whether that order is not on `default_orders()`.
        default_epsilon: what `default_orders()` alone give, as published figures do.
    """

    epsilon: float
    order: float
    widened: bool
    default_epsilon: float


@functools.cache
def default_orders() -> Orders:
    """Returns the grid of `dp_accounting`, which all quoted figures use."""
    from dp_accounting.rdp import rdp_privacy_accountant

    return tuple(float(x) for x in rdp_privacy_accountant.DEFAULT_RDP_ORDERS)


def curve(event: Event, orders: Orders | None = None) -> np.ndarray:
    """Bounds the Renyi divergence of an event.

    Args:
        event: any event.
        orders: Renyi orders above 1; `default_orders()` unless given.

    Returns:
        float64 array (len(orders),); infinite where there is no bound.
    """
    orders = orders or default_orders()
    total = np.zeros(len(orders))
    for unit, count in flatten(event).items():
        total = total + count * _unit_curve(unit, orders)
    return total


def price(event: Event, delta: float) -> RenyiPrice:
    """Returns the epsilon of an event, on a grid that is wide enough.

    Args:
        event: any event.
        delta: in (0, 1), checked by the caller; additive deltas taken off.
    """
    orders = default_orders()
    found, order = epsilon_of_curve(curve(event, orders), delta, orders)
    more: Orders = ()
    if 0 < found < math.inf:
        more = {orders[0]: _LOW_ORDERS, orders[-1]: _HIGH_ORDERS}.get(order, ())
    if more:
        better, place = epsilon_of_curve(curve(event, more), delta, more)
        if better < found:
            return RenyiPrice(better, place, True, found)
    return RenyiPrice(found, order, False, found)


def epsilon_of_curve(
    values: np.ndarray, delta: float, orders: Orders | None = None
) -> tuple[float, float]:
    """Converts a curve (Canonne, Kamath & Steinke 2020, proposition 12).

    Args:
        values: float64 array (len(orders),), as `curve` returns it.
        delta: in (0, 1), checked by the caller.
        orders: the grid of `values`.

    Returns:
        (epsilon, the order that gave it).
    """
    from dp_accounting import rdp

    orders = orders or default_orders()
    best, order = rdp.compute_epsilon(orders, values, delta)
    for near, value in zip(orders, values, strict=True):
        if near > _LEAST_CONVERTED:
            continue
        x = near - 1
        found = value + math.log(x) - math.log(near)
        found -= (math.log(delta) + math.log(near)) / x
        if found < best:
            best, order = max(0.0, found), near
    return float(best), float(order)


@functools.lru_cache(maxsize=4096)
def _unit_curve(event: Event, orders: Orders) -> np.ndarray:
    values = _CURVES[type(event)](event, orders)
    values.flags.writeable = False
    return values


def _gaussian(noise_multiplier: float, orders: Orders) -> np.ndarray:
    # alpha / (2 sigma^2): Mironov 2017, corollary 3. Divided twice, so that no
    # square can overflow.
    with np.errstate(over="ignore"):
        return np.asarray(orders) / 2 / noise_multiplier / noise_multiplier


def _poisson_gaussian(event: PoissonGaussian, orders: Orders) -> np.ndarray:
    bound = _gaussian(event.noise_multiplier, orders)
    if event.sampling_rate == 1:
        return bound
    near = sum(order < _LEAST_CONVERTED for order in orders)
    far = sum(order > _LARGEST_SAMPLED for order in orders)
    if near or far:
        # So near to 1 the series have few digits left, and divergences grow with the
        # order: that of the lowest usual one is a bound. So far from it they take a
        # second a curve.
        lowest = _unit_curve(event, default_orders())[0] if near else 0.0
        end = len(orders) - far
        middle = _poisson_gaussian(event, orders[near:end]) if near < end else []
        low = np.minimum(bound[:near], lowest)
        return np.concatenate([low, middle, bound[end:]])
    values = sampled_gaussian_curve(event.sampling_rate, event.noise_multiplier, orders)
    # Sampling never adds to a divergence, which is quasi-convex; the series lose all
    # digits for extreme noise and may then leave these limits. What a larger order
    # shows is a bound as well.
    sane = np.isfinite(values) & (values >= 0) & (values <= bound)
    values = np.where(sane, values, bound)
    falling = np.argsort(orders)[::-1]
    values[falling] = np.minimum.accumulate(values[falling])
    return values


def _pure(event: PureDP | ApproxDP, orders: Orders) -> np.ndarray:
    # Randomised response dominates every epsilon-DP mechanism (Kairouz, Oh &
    # Viswanath 2015); its curve is Mironov 2017, proposition 5.
    epsilon, alpha = event.epsilon, np.asarray(orders)
    log_p = -math.log1p(math.exp(-epsilon))
    log_not_p = log_p - epsilon
    terms = np.logaddexp(
        alpha * log_p + (1 - alpha) * log_not_p,
        alpha * log_not_p + (1 - alpha) * log_p,
    )
    return np.clip(terms / (alpha - 1), 0, epsilon)


def _parallel(event: Parallel, orders: Orders) -> np.ndarray:
    parts = [curve(part, orders) for part in event.events]
    return np.max(parts, axis=0) if parts else np.zeros(len(orders))


def _repeat_and_select(event: RepeatAndSelect, orders: Orders) -> np.ndarray:
    # Papernot & Steinke 2022 (arXiv:2110.03620v2): theorem 6 where the number of runs
    # is Poisson, else theorem 2, with what any order of the grid gives for its second
    # order; then a divergence is at most that of a larger order.
    values, alpha = curve(event.event, orders), np.asarray(orders)
    cost = values + math.log(event.mean) / (alpha - 1)
    if math.isinf(event.shape):
        from dp_accounting.rdp import rdp_privacy_accountant

        for i, order in enumerate(orders):
            near = math.log1p(1 / (order - 1))
            delta, _ = rdp_privacy_accountant.compute_delta(orders, values, near)
            cost[i] += event.mean * delta
    else:
        log_gamma = _log_gamma(event.shape, event.mean)
        cost += (1 + event.shape) * np.min((1 - 1 / alpha) * values - log_gamma / alpha)
    return np.minimum.accumulate(cost[::-1])[::-1]


def _log_gamma(shape: float, mean: float) -> float:
    """Parameter of the truncated negative binomial law with this mean, from below."""
    from scipy import optimize

    def excess(log_gamma: float) -> float:
        rest = -math.expm1(log_gamma)
        if shape < 1e-9:
            found = rest * math.exp(-log_gamma) / -log_gamma
        else:
            found = shape * rest * math.exp(-log_gamma)
            found /= -math.expm1(shape * log_gamma)
        return math.log(found / mean)

    # The smaller gamma, the larger the mean and the price.
    lowest, highest = -700.0, -1e-9
    if excess(highest) >= 0:
        return highest
    found = optimize.brentq(excess, lowest, highest, xtol=1e-13)
    return found - 1e-9 * (1 + abs(found))


_CURVES: dict[type[Event], Callable[..., np.ndarray]] = {
    Gaussian: lambda event, orders: _gaussian(event.noise_multiplier, orders),
    GaussianThreshold: lambda event, orders: _gaussian(event.noise_multiplier, orders),
    PoissonGaussian: _poisson_gaussian,
    PureDP: _pure,
    # But for its delta, which is taken off before any conversion.
    ApproxDP: _pure,
    NonPrivate: lambda event, orders: np.full(len(orders), np.inf),
    Parallel: _parallel,
    RepeatAndSelect: _repeat_and_select,
}
