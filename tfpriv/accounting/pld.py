"""Privacy loss distributions: tighter than Renyi curves, slower, same events."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

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
# A loss distribution is an array over the whole range of losses: at the finest
# interval a noise multiplier of .01 would take tens of gigabytes.
_MAX_POINTS = 500_000
# From here on plain rounding up: dp_accounting's finer scheme takes exp(interval).
_COARSE_INTERVAL = 500.0
_MAX_CASES = 64
# A power of a Fourier transform loses a digit with every ten steps more; beyond this
# rounding could reach a small delta, and memory runs out.
_MAX_SAMPLED_STEPS = 10**6


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
    from dp_accounting.pld import privacy_loss_distribution

    uses = flatten(event)
    interval = _interval(event)
    if not math.isfinite(interval):
        return math.inf
    total = privacy_loss_distribution.identity(value_discretization_interval=interval)
    for unit, count in uses.items():
        if isinstance(unit, RepeatAndSelect):
            raise InputError(
                "Expected events with a privacy loss distribution for accountant='pld',"
                " received RepeatAndSelect, whose price is known by Renyi curves alone."
                " Use accountant='rdp'."
            )
        total = total.compose(_DISTRIBUTIONS[type(unit)](unit, count, interval))
    return float(total.get_epsilon_for_delta(delta))


def _interval(event: Event) -> float:
    """Chooses an interval that keeps the arrays within `_MAX_POINTS`."""
    # Losses beyond the epsilon of this delta are cut off by dp_accounting.
    span, _ = rdp.epsilon_of_curve(rdp.curve(event), 1e-15)
    for unit in flatten(event):
        sigma = getattr(unit, "noise_multiplier", math.inf)
        span = max(span, 0.5 / sigma / sigma + 10 / sigma)
    return max(_FINEST_INTERVAL, 2 * span / _MAX_POINTS)


def _gaussian(unit: Any, count: int, interval: float) -> Any:
    # So many releases are one with less noise.
    return _losses(unit.noise_multiplier / math.sqrt(count), 1.0, interval)


def _poisson_gaussian(unit: PoissonGaussian, count: int, interval: float) -> Any:
    if unit.sampling_rate == 1:
        return _gaussian(unit, count, interval)
    if count > _MAX_SAMPLED_STEPS:
        raise InputError(
            f"Expected at most {_MAX_SAMPLED_STEPS:,} sampled steps for "
            f"accountant='pld', received {count:,}. Use accountant='rdp'."
        )
    once = _losses(unit.noise_multiplier, unit.sampling_rate, interval)
    return once.self_compose(count)


def _losses(noise_multiplier: float, sampling_rate: float, interval: float) -> Any:
    if interval < _COARSE_INTERVAL:
        return gaussian_losses(noise_multiplier, sampling_rate, interval)
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution.from_gaussian_mechanism(
        standard_deviation=noise_multiplier,
        value_discretization_interval=interval,
        sampling_prob=sampling_rate,
        use_connect_dots=False,
    )


def _pure(unit: PureDP | ApproxDP, count: int, interval: float) -> Any:
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
