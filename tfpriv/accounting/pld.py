"""Privacy loss distributions: tighter than Renyi curves, slower, same events."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv.accounting import rdp
from tfpriv.accounting._gaussian_losses import gaussian_losses
from tfpriv.accounting.events import (
    ApproxDP,
    Compose,
    Event,
    Gaussian,
    GaussianThreshold,
    Parallel,
    PoissonGaussian,
    PureDP,
    Repeat,
    RepeatAndSelect,
    collapse,
    flatten,
)

# dp_accounting's own interval. Below it nothing is gained.
_FINEST_INTERVAL = 1e-4
# A coarser one is taken where it adds less than this to epsilon, as a share of it;
# beyond the coarsest nothing is saved.
_ROUNDING = 2e-6
_COARSEST_INTERVAL = 1e-3
# How much coarser the direction is tried that is not expected to decide.
_ROUGH = 10
# A loss distribution is an array over the whole range of losses: at the finest
# interval a noise multiplier of .01 would take tens of gigabytes.
_MAX_POINTS = 500_000
# From here on plain rounding up: dp_accounting's finer scheme takes exp(interval).
_COARSE_INTERVAL = 500.0
_MAX_CASES = 64
# A power of a Fourier transform loses a digit with every ten steps more; beyond this
# rounding could reach a small delta, and memory runs out.
_MAX_SAMPLED_STEPS = 10**6
# Of delta, that rounding may hide for each release beyond the first: a transform and
# its powers err by less than a tenth of this, so that a smaller delta is noise.
_LOST_DELTA = 1e-15


def epsilon_of_event(event: Event, delta: float) -> float:
    """Composes the loss distributions of an event that has no non-private part.

    Args:
        event: without `NonPrivate` at any depth and without additive deltas to
            account for (the caller has taken them off `delta`).
        delta: in (0, 1), checked by the caller.

    Returns:
        The smallest epsilon the distributions show at `delta`, rounded up, coarser
        where the losses span a wide range; never above that of the Renyi curve.

    Raises:
        InputError: too many combinations of disjoint parts, or sampled steps.
    """
    value = max(_epsilon_of_case(case, delta) for case in cases(event))
    # Both bound the same event. Where losses are tiny or span a wide range, rounding
    # to the interval can take the distributions above the curve.
    return min(value, rdp.price(event, delta).epsilon)


def cases(event: Event) -> list[Event]:
    """Lists what one record may have met: an event without `Parallel` for each part.

    A loss distribution cannot take the maximum over parts, as a curve can; so every
    part is composed with the rest, and the dearest case is the price.

    Raises:
        InputError: more than 64 cases, or a repeated choice between parts.
    """
    fixed: list[Event] = []
    choices: list[list[Event]] = []
    for unit, count in flatten(event).items():
        if not isinstance(unit, Parallel):
            fixed += [collapse(_times(unit, count))]
            continue
        options = list(
            dict.fromkeys(case for part in unit.events for case in cases(part))
        )
        if len(options) == 1:
            fixed.append(collapse(_times(options[0], count)))
        elif options:
            choices += [options] * count
        if math.prod(map(len, choices)) > _MAX_CASES:
            raise InputError(
                f"Expected at most {_MAX_CASES} combinations of disjoint parts for "
                "accountant='pld'. Use accountant='rdp'."
            )
    return [
        collapse(Compose((*fixed, *choice))) for choice in itertools.product(*choices)
    ]


def _times(event: Event, count: int) -> Event:
    return event if count == 1 else Repeat(event, count)


def _epsilon_of_case(event: Event, delta: float) -> float:
    interval = _interval(event, delta)
    if not math.isfinite(interval):
        return math.inf
    uses = flatten(event)
    taken_out = _epsilon_one_way(uses, delta, interval, added=False)
    if all(getattr(unit, "sampling_rate", 1) == 1 for unit in uses):
        return taken_out  # the other way round it is the same
    # Rounded up more, and mostly still less: then it decides nothing.
    added = _epsilon_one_way(uses, delta, _ROUGH * interval, added=True)
    if added > taken_out:
        added = _epsilon_one_way(uses, delta, interval, added=True)
    return max(taken_out, added)


def _epsilon_one_way(
    uses: Mapping[Event, int], delta: float, interval: float, *, added: bool
) -> float:
    """Prices what happens if a record comes to the data, or is taken out of them."""
    total = None
    for unit, count in uses.items():
        if isinstance(unit, RepeatAndSelect):
            raise InputError(
                "Expected events with a privacy loss distribution for accountant='pld',"
                " received RepeatAndSelect, whose price is known by Renyi curves alone."
                " Use accountant='rdp'."
            )
        part = _DISTRIBUTIONS[type(unit)](unit, count, interval, added)
        total = part if total is None else total.compose(part)
    if total is None:
        return 0.0
    delta -= _LOST_DELTA * (sum(map(_convolved, uses, uses.values())) - 1)
    return float(total.get_epsilon_for_delta(delta)) if delta > 0 else math.inf


def _convolved(unit: Event, count: int) -> int:
    """How many distributions `count` uses of a mechanism are put together from."""
    sampled = getattr(unit, "sampling_rate", 1) < 1
    return count if sampled or isinstance(unit, PureDP | ApproxDP) else 1


def _interval(event: Event, delta: float) -> float:
    """Chooses the interval: precise, and arrays within `_MAX_POINTS`."""
    # Losses beyond the epsilon of this delta are cut off by dp_accounting.
    curve = rdp.curve(event)
    span, _ = rdp.epsilon_of_curve(curve, 1e-15)
    for unit in flatten(event):
        sigma = getattr(unit, "noise_multiplier", math.inf)
        span = max(span, 0.5 / sigma / sigma + 10 / sigma)
    return max(_precise_interval(event, curve, delta), 2 * span / _MAX_POINTS)


def _precise_interval(event: Event, curve: np.ndarray, delta: float) -> float:
    """The largest interval that adds about `_ROUNDING` to epsilon, as a share.

    Connecting the dots over an interval h puts each loss at its two neighbours: that
    adds up to h^2 / 4 to the variance of one distribution, h^2 / 6 on average, and half
    of that to its mean. k of them, with a mean m and a standard deviation s = sqrt(2 m)
    of the sum, move epsilon = m + z s by k h^2 / 12 (1 + z / s). Only how coarse the
    upper bound is depends on it.
    """
    count = 0
    for unit, times in flatten(event).items():
        if isinstance(unit, PureDP | ApproxDP):
            return _FINEST_INTERVAL  # rounded up by up to h itself
        count += times if getattr(unit, "sampling_rate", 1) < 1 else 1
    value, _ = rdp.epsilon_of_curve(curve, delta)
    mean = float(curve[0])  # of the lowest order: a little more
    if not count or not value * mean > 0:
        return _FINEST_INTERVAL
    moved = count / 12 * (value + mean) / (2 * mean)
    interval = math.sqrt(_ROUNDING * value / moved)
    return max(_FINEST_INTERVAL, min(interval, _COARSEST_INTERVAL))


def _gaussian(unit: Any, count: int, interval: float, added: bool = False) -> Any:
    # So many releases are one with less noise.
    return _losses(unit.noise_multiplier / math.sqrt(count), 1.0, interval)


def _poisson_gaussian(
    unit: PoissonGaussian, count: int, interval: float, added: bool
) -> Any:
    if unit.sampling_rate == 1:
        return _gaussian(unit, count, interval)
    if count > _MAX_SAMPLED_STEPS:
        raise InputError(
            f"Expected at most {_MAX_SAMPLED_STEPS:,} sampled steps for "
            f"accountant='pld', received {count:,}. Use accountant='rdp'."
        )
    once = _losses(unit.noise_multiplier, unit.sampling_rate, interval, added)
    return once.self_compose(count)


def _losses(
    noise_multiplier: float,
    sampling_rate: float,
    interval: float,
    added: bool = False,
) -> Any:
    if interval < _COARSE_INTERVAL:
        return gaussian_losses(noise_multiplier, sampling_rate, interval, added=added)
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution.from_gaussian_mechanism(
        standard_deviation=noise_multiplier,
        value_discretization_interval=interval,
        sampling_prob=sampling_rate,
        use_connect_dots=False,
    )


def _pure(
    unit: PureDP | ApproxDP, count: int, interval: float, added: bool = False
) -> Any:
    from dp_accounting.pld import common, privacy_loss_distribution

    return privacy_loss_distribution.from_privacy_parameters(
        common.DifferentialPrivacyParameters(unit.epsilon, 0),
        value_discretization_interval=interval,
    ).self_compose(count)


_DISTRIBUTIONS: dict[type[Event], Callable[..., Any]] = {
    Gaussian: _gaussian,
    GaussianThreshold: _gaussian,
    PoissonGaussian: _poisson_gaussian,
    PureDP: _pure,
    ApproxDP: _pure,
}
