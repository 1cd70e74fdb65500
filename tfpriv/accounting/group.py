"""The price for several records at once: all those of one author, or a copied one."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer
from tfpriv.accounting.composition import additive_delta, epsilon
from tfpriv.accounting.events import (
    Compose,
    Event,
    Gaussian,
    GaussianThreshold,
    Parallel,
    PureDP,
    Repeat,
    flatten,
)

# What it costs stays in double precision, and in the counts of events.
_LARGEST_GROUP = 10**9


@dataclasses.dataclass(frozen=True)
class GroupBound:
    """At most so many records belong together.

    Attributes:
        unit: what shares records, in one word: "author".
        size: the most records of one of them.
    """

    unit: str
    size: int

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise InputError(
                f"Expected a name for what shares records, received {self.unit!r}."
            )
        integer(group_size=self.size)
        if self.size > _LARGEST_GROUP:
            raise InputError(
                f"Expected group_size <= {_LARGEST_GROUP:,}, received group_size="
                f"{self.size}. Nobody wrote so many records."
            )
        object.__setattr__(self, "size", int(self.size))

    @classmethod
    def from_json(cls, value: Any) -> GroupBound | None:
        """Builds the bound that a statement or a charge holds; None if it has none."""
        return None if value is None else cls(value["unit"], value["size"])

    def check(self, groups: Sequence[str]) -> None:
        """Refuses records of which more than `size` are of one group.

        Args:
            groups: the group of each record, in order.

        Raises:
            InputError: names the first record that is too many, not its group.
        """
        seen: Counter[str] = Counter()
        for number, group in enumerate(groups, 1):
            seen[group] += 1
            if seen[group] > self.size:
                raise InputError(
                    f"Expected at most {self.size} records of one {self.unit!r}, "
                    f"received more: record {number} is one too many. Give a larger "
                    "group size, or leave records out."
                )


# Deltas below this are not asked for: the logarithms would leave double precision.
_SMALLEST_DELTA = 1e-290
# Of one name, that are tried; no selection has a threshold near to half of it.
_MOST_COUNTS = 10**6


def group_epsilon(
    event: Event, delta: float, size: int, accountant: str = "rdp"
) -> float:
    """Returns the epsilon of an event for data sets that differ in `size` records.

    The smaller of two bounds:

    - A group of k records moves a Gaussian sum k times as far as one of them, and a
      pure epsilon grows k times. Taken where an event has no other parts: its
      Gaussian noise multipliers are divided by k and it is priced again. A partition
      selection among them passes a name that the group alone brings in more often:
      see `_group_threshold`.
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
    scaled = group_event(event, size)
    if scaled is not None:
        bounds.append(epsilon(scaled, delta, accountant))
    return min(bounds)


def group_event(event: Event, size: int) -> Event | None:
    """Returns the event that a group of `size` records meets, if its parts show it.

    The first bound of `group_epsilon`, as an event that composes with others.

    Args:
        event: any event on all the records together.
        size: at least 1.

    Returns:
        An event; None where a part does not show how far a group moves it.
    """
    parts: list[Event] = []
    for unit, count in flatten(event).items():
        if isinstance(unit, Gaussian):
            part: Event = Gaussian(unit.noise_multiplier / size)
        elif isinstance(unit, GaussianThreshold):
            selection = _group_threshold(unit, size)
            if selection is None:
                return None
            part = selection
        elif isinstance(unit, PureDP):
            part = PureDP(unit.epsilon * size)
        elif isinstance(unit, Parallel) and all(map(_is_gaussian, unit.events)):
            # Records k_1 + k_2 + ... = k in several parts: squares of the shifts add
            # up, and sum(k_i^2) <= k^2. So a group that keeps to one part is worst.
            part = Parallel(tuple(group_event(event, size) for event in unit.events))
        else:
            return None
        parts.append(Repeat(part, count))
    return Compose(tuple(parts))


def _group_threshold(unit: GaussianThreshold, size: int) -> GaussianThreshold | None:
    """A partition selection as a group of `size` records meets it.

    One record brings in at most m names, each with a count of 1, and the threshold is
    1 + s z, where s = sqrt(m) times the noise multiplier and a standard normal passes
    z with probability delta / m. The names that a group of k alone brings in have
    counts c_1, c_2, ... of at most k that sum to at most k m; one of count c passes
    with probability g(c) = Pr[N > z - (c - 1) / s]. By the union bound any passes with
    probability sum g(c_i) <= k m max g(c) / c, over c = 1 to k. None if that is no
    probability.
    """
    from scipy import stats

    names = unit.max_contributions
    tail = float(stats.norm.isf(unit.delta / names))
    deviation = unit.noise_multiplier * math.sqrt(names)
    # At c = 1 + s z, g is 1/2; so behind twice that g(c) / c is smaller than there.
    last = min(size, 2 * math.ceil(1 + deviation * max(tail, 0.0)))
    if last > _MOST_COUNTS:
        return None
    counts = np.arange(1, last + 1)
    passes = stats.norm.sf(tail - (counts - 1) / deviation)
    delta = size * names * float(np.max(passes / counts))
    if not 0 < delta < 1:
        return None
    return GaussianThreshold(unit.noise_multiplier / size, delta, names)


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
