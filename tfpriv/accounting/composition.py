"""The price of an event, and the noise that meets a price."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from tfpriv._errors import InputError
from tfpriv._figures import rounded_up
from tfpriv._validation import one_of, positive, probability
from tfpriv.accounting import pld, rdp
from tfpriv.accounting.events import (
    ApproxDP,
    Event,
    GaussianThreshold,
    NonPrivate,
    Parallel,
    PureDP,
    flatten,
    leaves,
)

ACCOUNTANTS = ("rdp", "pld")

DELTA_HINT = "Delta is a probability; use one well below 1 over the number of records."


def epsilon(event: Event, delta: float, accountant: str = "rdp") -> float:
    """Returns the epsilon of an event at `delta`.

    Everything composed was an (epsilon, delta)-differentially private view of the
    records, for adding or removing one of them. Additive deltas, those of
    partition selection and `ApproxDP`, are taken off `delta` before the rest is
    converted.

    A result of 0 is possible and true: the whole event then moves the output by
    less than `delta` in total variation.

    Args:
        event: what was done.
        delta: strictly between 0 and 1.
        accountant: "rdp" (Renyi curves on the default orders of dp_accounting, and
            beyond them where the best order is at an end) or "pld" (privacy loss
            distributions: tighter, slower).

    Returns:
        Epsilon; infinity if a part is not private, or if additive deltas alone use
        up `delta`.

    Raises:
        InputError: delta outside (0, 1), an unknown accountant, or an event that
            the accountant does not know, at any depth.
    """
    probability(DELTA_HINT, delta=delta)
    one_of(ACCOUNTANTS, accountant=accountant)
    if not isinstance(event, Event):
        raise InputError(
            f"Expected an event of tfpriv.accounting, received {type(event).__name__}."
        )
    # Taken apart before anything else: what is unknown is refused here.
    flatten(event)
    if not is_private(event):
        return math.inf
    remaining = delta - additive_delta(event)
    if remaining <= 0:
        return math.inf
    if accountant == "rdp":
        value = rdp.price(event, remaining).epsilon
    else:
        value = pld.epsilon_of_event(event, remaining)
    if math.isnan(value):
        raise RuntimeError(f"The {accountant} accountant returned no number.")
    return min(value, _pure_epsilon(event))


# A budget is called epsilon as well, in the functions that take one.
_price = epsilon


def is_private(event: Event) -> bool:
    """Returns whether no part of the event is `NonPrivate`."""
    return not any(isinstance(unit, NonPrivate) for unit in leaves(event))


def additive_delta(event: Event) -> float:
    """Returns the delta that is spent beside all noise, by selections above all."""
    return math.fsum(
        count * _additive_delta(unit) for unit, count in flatten(event).items()
    )


def _additive_delta(unit: Event) -> float:
    if isinstance(unit, GaussianThreshold | ApproxDP):
        return unit.delta
    if isinstance(unit, Parallel):
        return max(map(additive_delta, unit.events), default=0.0)
    return 0.0


def _pure_epsilon(event: Event) -> float:
    """Basic composition beside additive deltas; infinity if a part has noise."""
    total = 0.0
    for unit, count in flatten(event).items():
        if isinstance(unit, PureDP | ApproxDP):
            total += count * unit.epsilon
        elif isinstance(unit, Parallel):
            total += count * max(map(_pure_epsilon, unit.events), default=0.0)
        else:
            return math.inf
    return total


def calibrate_scale(
    make_event: Callable[[float], Event],
    epsilon: float,
    delta: float,
    accountant: str = "rdp",
) -> float:
    """Finds the smallest scale, to four significant digits, that meets a budget.

    One scale may move the noise of a whole release: `make_event` then builds all
    its events from it, and the ratios inside are the split of the budget.

        >>> from tfpriv.accounting import Compose, Gaussian, calibrate_scale
        >>> calibrate_scale(
        ...     lambda s: Compose((Gaussian(s), Gaussian(2 * s))), 1.0, 1e-5)
        4.523

    Args:
        make_event: scale -> event. A larger scale must not cost more.
        epsilon: the budget.
        delta: strictly between 0 and 1.
        accountant: "rdp" or "pld".

    Returns:
        A scale s between 1e-6 and 1e6 with epsilon(make_event(s)) <= `epsilon`,
        which the next smaller four-digit number would exceed.

    Raises:
        InputError: a bad budget, or one that no scale meets, because a part that
            the scale does not move costs more already.
    """
    positive(epsilon=epsilon)
    probability(DELTA_HINT, delta=delta)

    def price(scale: float) -> float:
        return _price(make_event(scale), delta, accountant)

    scale = smallest_fitting(price, epsilon, FourDigits())
    if scale is None:
        cost = price(1e6)
        raise InputError(
            f"Expected parts that epsilon={epsilon} at delta={delta} can pay for, "
            f"received an event that costs {rounded_up(cost)} however much noise is "
            "added. Raise epsilon or delta, or take out what the scale does not move."
        )
    return scale


class FourDigits:
    """The numbers with four significant digits from 1e-6 to 1e6, 9000 a decade."""

    lowest, highest = -6 * 9000, 6 * 9000

    def value(self, step: int) -> float:
        """Returns the number that is `step` places above 1."""
        decade, place = divmod(step, 9000)
        return float(f"{1000 + place}e{decade - 3}")

    def step(self, value: float) -> int:
        """Returns the place of the last number up to `value`, or one beside it."""
        decade = math.floor(math.log10(value))
        return 9000 * decade + math.floor(value / 10.0 ** (decade - 3)) - 1000


class Decimals:
    """The positive numbers with `places` decimals, up to 1e6."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.lowest, self.highest = 1, 10 ** (6 + places)

    def value(self, step: int) -> float:
        """Returns the number that is `step` places above 0."""
        return round(step / 10**self.places, self.places)

    def step(self, value: float) -> int:
        """Returns the place of the last number up to `value`, or one beside it."""
        return math.floor(value * 10**self.places)


def smallest_fitting(
    price: Callable[[float], float], budget: float, grid: FourDigits | Decimals
) -> float | None:
    """Finds the smallest number of a grid whose price is within a budget.

    Prices take up to seconds and fall about like a power of the noise: so this is
    a false-position search on logarithms, which ends after some eight prices, and
    turns to bisection where a price behaves otherwise.

    Args:
        price: noise -> price; falling.
        budget: positive.
        grid: the numbers to choose among.

    Returns:
        A number whose price was found to be within the budget and that of the
        number before it over it; None if the largest number is not enough.
    """

    def excess(step: int) -> float:
        value = price(grid.value(step))
        if value <= budget:
            return max(-20.0, math.log(value / budget)) if value > 0 else -20.0
        return min(20.0, math.log(value / budget)) if value < math.inf else 20.0

    # The largest step known not to fit, the smallest known to fit; their excesses.
    below, above = grid.lowest - 1, grid.highest + 1
    over, under = math.nan, math.nan
    step, stride, side = grid.step(1.0), 0.02, 0
    for turn in itertools.count():
        found = excess(step)
        if found > 0:
            below, over = step, found
            # One end that stays put too long would spoil the interpolation.
            under = under / 2 if side > 0 else under
            side = 1
        else:
            above, under = step, found
            over = over / 2 if side < 0 else over
            side = -1
        if above - below == 1:
            return grid.value(above) if above <= grid.highest else None
        if math.isnan(over) or math.isnan(under):
            # Price goes like one over noise, so `found` is the way to go.
            way = math.copysign(abs(found) + stride, found)
            stride *= 2
            guess = grid.value(step) * math.exp(way)
            guess = min(max(guess, grid.value(grid.lowest)), grid.value(grid.highest))
            step = grid.step(guess)
        elif turn < 20:
            ends = math.log(grid.value(below)), math.log(grid.value(above))
            share = over / (over - under)
            step = grid.step(math.exp(ends[0] + share * (ends[1] - ends[0])))
        else:
            step = (below + above) // 2
        step = min(max(step, below + 1), above - 1)
    raise AssertionError("unreachable")
