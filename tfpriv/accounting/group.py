"""The price for several records at once: all those of one author, or a copied one."""

from __future__ import annotations

import math

from tfpriv._validation import integer
from tfpriv.accounting.composition import additive_delta, epsilon
from tfpriv.accounting.events import (
    Compose,
    Event,
    Gaussian,
    Parallel,
    PureDP,
    Repeat,
    flatten,
)

# Deltas below this are not asked for: the logarithms would leave double precision.
_SMALLEST_DELTA = 1e-290


def group_epsilon(
    event: Event, delta: float, size: int, accountant: str = "rdp"
) -> float:
    """Returns the epsilon of an event for data sets that differ in `size` records.

    The smaller of two bounds:

    - A group of k records moves a Gaussian sum k times as far as one of them, and a
      pure epsilon grows k times. Taken where an event has no other parts: its
      Gaussian noise multipliers are divided by k and it is priced again.
    - What is (epsilon, d)-private for one record is (k epsilon, f d)-private for k of
      them, f = (e^(k epsilon) - 1) / (e^epsilon - 1) (Vadhan 2017, "The complexity of
      differential privacy", lemma 2.2, with its sum written out). d is the largest
      found with f d <= delta. Single records are priced by the Renyi accountant here.

    >>> round(group_epsilon(PureDP(0.5), 1e-5, 3), 6)
    1.5
    >>> round(group_epsilon(Gaussian(10.0), 1e-5, 5), 3)  # as Gaussian(2.0)
    2.166

    Args:
        event: what was done.
        delta: strictly between 0 and 1, for the group.
        size: at least 1; records that may differ.
        accountant: "rdp" or "pld".

    Returns:
        Epsilon at `delta`; infinity if neither bound says anything.

    Raises:
        InputError: a bad size or delta, an unknown accountant or event.
    """
    integer(size=size)
    single = epsilon(event, delta, accountant)
    if size == 1 or math.isinf(single):
        return single
    bounds = [_converted(event, delta, size)]
    scaled = _scaled(event, size)
    if scaled is not None:
        bounds.append(epsilon(scaled, delta, accountant))
    return min(bounds)


def _scaled(event: Event, size: int) -> Event | None:
    """The event that a group of `size` records meets, if its parts show it."""
    parts: list[Event] = []
    for unit, count in flatten(event).items():
        if isinstance(unit, Gaussian):
            part: Event = Gaussian(unit.noise_multiplier / size)
        elif isinstance(unit, PureDP):
            part = PureDP(unit.epsilon * size)
        elif isinstance(unit, Parallel) and all(map(_is_gaussian, unit.events)):
            # Records k_1 + k_2 + ... = k in several parts: squares of the shifts add
            # up, and sum(k_i^2) <= k^2. So a group that keeps to one part is worst.
            part = Parallel(tuple(_scaled(event, size) for event in unit.events))
        else:
            return None
        parts.append(Repeat(part, count))
    return Compose(tuple(parts))


def _is_gaussian(event: Event) -> bool:
    return all(
        all(map(_is_gaussian, unit.events))
        if isinstance(unit, Parallel)
        else isinstance(unit, Gaussian)
        for unit in flatten(event)
    )


def _converted(event: Event, delta: float, size: int) -> float:
    def price(descent: float) -> tuple[float, bool]:
        """Epsilon for one record at delta / e^descent; whether the group fits."""
        value = epsilon(event, delta * math.exp(-descent))
        return value, _log_factor(value, size) <= descent

    # The smaller the delta for one record, the sooner the group's delta fits, and
    # the larger epsilon is: the search is for the first descent that fits.
    floor = max(additive_delta(event) * (1 + 1e-9), _SMALLEST_DELTA)
    last = math.log(delta / floor)
    low, high = 0.0, min(0.05, last)
    while not price(high)[1]:
        if high == last:
            return math.inf
        low, high = high, min(high * 1.1, last)
    for _ in range(40):
        middle = (low + high) / 2
        if price(middle)[1]:
            high = middle
        else:
            low = middle
    return size * price(high)[0]


def _log_factor(value: float, size: int) -> float:
    """Returns ln[(e^(k x) - 1) / (e^x - 1)], of the sum of e^(i x) over i < k."""
    if math.isinf(value):
        return math.inf
    if value < 1e-12:
        return math.log(size) + value * size
    return (
        (size - 1) * value
        + math.log(-math.expm1(-size * value))
        - math.log(-math.expm1(-value))
    )
