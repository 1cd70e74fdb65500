"""What was said about the private records, in the words an accountant understands.

An event records how one mechanism used the records: everything its price depends
on, and nothing about the records themselves. Leaves are mechanisms; `Compose`,
`Parallel` and `Repeat` put them together. Every event is immutable, hashable,
checked when it is made, and goes through JSON and back unchanged.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from typing import Any

from tfpriv._errors import InputError
from tfpriv._validation import integer, non_negative, positive, probability, rate


class Event:
    """Base of all events.

    A new mechanism adds a dataclass here, its Renyi curve in `rdp.py` and its
    privacy loss distribution in `pld.py`. An event that an accountant does not
    know is refused, wherever in a composition it stands.
    """

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON: {"type": class name, one key a field}."""
        if _TYPES.get(type(self).__name__) is not type(self):
            raise InputError(
                f"Expected an event of {', '.join(_TYPES)}, received "
                f"{type(self).__name__}."
            )
        value: dict[str, Any] = {"type": type(self).__name__}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            part = getattr(self, field.name)
            if field.name in _LATER and part == field.default:
                continue
            if isinstance(part, Event):
                part = part.to_json()
            elif isinstance(part, tuple):
                part = [event.to_json() for event in part]
            elif part == math.inf:
                part = None  # JSON has no infinity
            value[field.name] = part
        return value

    @staticmethod
    def from_json(value: Any) -> Event:
        """Builds the event that `to_json` described.

        Args:
            value: what `json.loads` returned.

        Raises:
            InputError: an unknown type, a key too many or too few, or a value
                that the event itself refuses.
        """
        if not isinstance(value, dict):
            raise InputError(
                f"Expected an event as a JSON object, received {type(value).__name__}."
            )
        cls = _TYPES.get(str(value.get("type")))
        if cls is None:
            raise InputError(
                f"Expected an event of type {', '.join(_TYPES)}, received "
                f"type={value.get('type')!r}. A newer tfpriv may know it."
            )
        arguments = {key: part for key, part in value.items() if key != "type"}
        names = {field.name for field in dataclasses.fields(cls)}
        if not names - _LATER <= arguments.keys() <= names:
            raise InputError(
                f"Expected the fields {sorted(names)} of {cls.__name__}, received "
                f"{sorted(arguments)}."
            )
        if "event" in arguments:
            arguments["event"] = Event.from_json(arguments["event"])
        if "events" in arguments:
            if not isinstance(arguments["events"], list):
                raise InputError(f"Expected a list of events in {cls.__name__}.")
            arguments["events"] = tuple(map(Event.from_json, arguments["events"]))
        return cls(**arguments)

    def _store(self, **values: Any) -> None:
        """Sets fields of a frozen event to plain Python numbers."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclasses.dataclass(frozen=True)
class Gaussian(Event):
    """Gaussian noise on a sum over all records, `count` times.

    Attributes:
        noise_multiplier: standard deviation over L2 sensitivity, of every release.
        count: number of releases, each with noise of its own.
    """

    noise_multiplier: float
    count: int = 1

    def __post_init__(self) -> None:
        positive(noise_multiplier=self.noise_multiplier)
        _check_count(self.count)
        self._store(
            noise_multiplier=float(self.noise_multiplier), count=int(self.count)
        )


@dataclasses.dataclass(frozen=True)
class PoissonGaussian(Event):
    """Gaussian noise on a sum over a Poisson sample of the records, `count` times.

    Attributes:
        sampling_rate: probability of every record, independently, to be in a sample.
        noise_multiplier: standard deviation over L2 sensitivity.
        count: number of releases, each with a sample and noise of its own.
    """

    sampling_rate: float
    noise_multiplier: float
    count: int = 1

    def __post_init__(self) -> None:
        rate(sampling_rate=self.sampling_rate)
        positive(noise_multiplier=self.noise_multiplier)
        _check_count(self.count)
        self._store(
            sampling_rate=float(self.sampling_rate),
            noise_multiplier=float(self.noise_multiplier),
            count=int(self.count),
        )


@dataclasses.dataclass(frozen=True)
class GaussianThreshold(Event):
    """Gaussian counts of which only those above a threshold are named.

    Attributes:
        noise_multiplier: standard deviation over the L2 sensitivity of the counts.
        delta: probability that a name which one record alone brings in passes the
            threshold. It adds to the delta of everything else.
        max_contributions: most names that one record counts towards.
    """

    noise_multiplier: float
    delta: float
    max_contributions: int = 1

    def __post_init__(self) -> None:
        positive(noise_multiplier=self.noise_multiplier)
        probability(delta=self.delta)
        integer(max_contributions=self.max_contributions)
        self._store(
            noise_multiplier=float(self.noise_multiplier),
            delta=float(self.delta),
            max_contributions=int(self.max_contributions),
        )


@dataclasses.dataclass(frozen=True)
class PureDP(Event):
    """Any mechanism of pure epsilon-differential privacy, `count` times.

    Attributes:
        epsilon: of one release, with delta 0.
        count: number of releases.
    """

    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        non_negative(epsilon=self.epsilon)
        _check_count(self.count)
        self._store(epsilon=float(self.epsilon), count=int(self.count))


@dataclasses.dataclass(frozen=True)
class ApproxDP(Event):
    """Any mechanism of (epsilon, delta)-differential privacy, `count` times.

    It does no worse than one that tells all with probability delta and is
    epsilon-private otherwise (Kairouz, Oh & Viswanath 2015): so its delta adds to
    that of everything else.

    Attributes:
        epsilon: of one release.
        delta: of one release, strictly between 0 and 1; `PureDP` is for 0.
        count: number of releases.
    """

    epsilon: float
    delta: float
    count: int = 1

    def __post_init__(self) -> None:
        non_negative(epsilon=self.epsilon)
        probability(delta=self.delta)
        _check_count(self.count)
        self._store(
            epsilon=float(self.epsilon), delta=float(self.delta), count=int(self.count)
        )


@dataclasses.dataclass(frozen=True)
class NonPrivate(Event):
    """Private records were read without any guarantee: epsilon is infinite."""


@dataclasses.dataclass(frozen=True)
class Compose(Event):
    """Events one after the other on the same records.

    Later ones may depend on what earlier ones released. None at all cost nothing.

    Attributes:
        events: the events, in order.
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        self._store(events=_events(self.events))


@dataclasses.dataclass(frozen=True)
class Parallel(Event):
    """Events on disjoint parts of the records: the dearest part is the price.

    Holds for adding or removing one record where the part a record belongs to
    depends on that record alone, a class label for instance. If a label may change
    instead, both parts count and this event must not be used.

    Attributes:
        events: one event a part.
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        self._store(events=_events(self.events))


@dataclasses.dataclass(frozen=True)
class Repeat(Event):
    """One event `count` times in sequence, each time with noise of its own.

    Attributes:
        event: what is repeated.
        count: how often.
    """

    event: Event
    count: int

    def __post_init__(self) -> None:
        _check_count(self.count)
        self._store(event=_events((self.event,))[0], count=int(self.count))


@dataclasses.dataclass(frozen=True)
class RepeatAndSelect(Event):
    """One event run K times, of which the best run alone is shown, K drawn at random.

    For a search over settings. It holds only if K was drawn from this distribution
    before the search began and is not told, every run uses its own noise, the setting
    of a run is drawn independently of the others, and the score by which the best is
    chosen is part of what a run releases. A search over K settings that were written
    down beforehand costs K times instead: `Repeat(event, K)`.

    K follows the truncated negative binomial distribution on 1, 2, ... of this shape
    (1 is the geometric, 0 the logarithmic distribution), or the Poisson distribution
    where the shape is infinite; there K may be 0, and then nothing is shown.

    Attributes:
        event: of one run; no part of it may have an additive delta.
        mean: expected K, above 1.
        shape: of the distribution, at least 0; `math.inf` for Poisson.

    References:
        Papernot & Steinke 2022, "Hyperparameter tuning with Renyi differential
        privacy", arXiv:2110.03620.
    """

    event: Event
    mean: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        (event,) = _events((self.event,))
        positive(mean=self.mean)
        if not 1 < self.mean <= _LARGEST_COUNT:
            raise InputError(
                f"Expected a mean above 1 run and up to {_LARGEST_COUNT:.0e}, received "
                f"{self.mean!r}."
            )
        shape = math.inf if self.shape in (None, math.inf) else self.shape
        if shape != math.inf:
            non_negative(shape=shape)
        if any(
            isinstance(unit, GaussianThreshold | ApproxDP) for unit in leaves(event)
        ):
            raise InputError(
                "Expected runs without an additive delta in a search, received a "
                "selection or an (epsilon, delta) mechanism in them: do that once, "
                "before the search."
            )
        self._store(event=event, mean=float(self.mean), shape=float(shape))


# Fields that events had not at first; in JSON they are there if they say something.
_LATER = frozenset({"max_contributions"})

_TYPES: dict[Any, type[Event]] = {
    cls.__name__: cls
    for cls in (
        Gaussian,
        PoissonGaussian,
        GaussianThreshold,
        PureDP,
        ApproxDP,
        NonPrivate,
        Compose,
        Parallel,
        Repeat,
        RepeatAndSelect,
    )
}


# No run takes more; a count that no float can hold would end in an overflow.
_LARGEST_COUNT = 10**15


def _check_count(count: Any) -> None:
    integer(count=count)
    if count > _LARGEST_COUNT:
        raise InputError(f"Expected count <= {_LARGEST_COUNT:.0e}, received more.")


def _events(events: Iterable[Any]) -> tuple[Event, ...]:
    if isinstance(events, Event):
        raise InputError(f"Expected a list of events, received {events!r}.")
    events = tuple(events)
    for event in events:
        if not isinstance(event, Event):
            raise InputError(
                f"Expected an event of tfpriv.accounting, received "
                f"{type(event).__name__}."
            )
    return events


def flatten(event: Event) -> dict[Event, int]:
    """Takes sequential composition apart.

    Args:
        event: any event.

    Returns:
        Mechanisms used once (and `Parallel` events as they are) -> how often each
        was used, in the order in which they were met first.

    Raises:
        InputError: an event of a type unknown here, at any depth.
    """
    tally: dict[Event, int] = {}
    _flatten(event, 1, tally)
    return tally


def _flatten(event: Event, times: int, tally: dict[Event, int]) -> None:
    cls = type(event)
    if cls not in _TYPES.values():
        raise InputError(
            f"Expected an event of {', '.join(_TYPES)}, received {cls.__name__}: "
            "what it costs is not known."
        )
    if cls is Compose:
        for part in event.events:
            _flatten(part, times, tally)
    elif cls is Repeat:
        _flatten(event.event, times * event.count, tally)
    else:
        for part in parts_of(event):
            _flatten(part, 1, {})
        count = getattr(event, "count", 1)
        unit = dataclasses.replace(event, count=1) if count != 1 else event
        tally[unit] = tally.get(unit, 0) + count * times


def parts_of(unit: Event) -> tuple[Event, ...]:
    """Returns the events inside one of those that `flatten` leaves as they are."""
    if isinstance(unit, Parallel):
        return unit.events
    if isinstance(unit, RepeatAndSelect):
        return (unit.event,)
    return ()


def leaves(event: Event) -> Iterator[Event]:
    """Yields the mechanisms in an event, at every depth."""
    for unit in flatten(event):
        inside = parts_of(unit)
        if not inside and not isinstance(unit, Parallel):
            yield unit
        for part in inside:
            yield from leaves(part)


def collapse(event: Event) -> Event:
    """Returns an event of the same price with equal mechanisms counted together."""
    parts = []
    for unit, count in flatten(event).items():
        if count == 1:
            parts.append(unit)
        elif hasattr(unit, "count"):
            parts.append(dataclasses.replace(unit, count=count))
        else:
            parts.append(Repeat(unit, count))
    return parts[0] if len(parts) == 1 else Compose(tuple(parts))


def combine(uses: Iterable[tuple[Event, str | None]]) -> Event:
    """Composes events some of which saw one part of the records only.

    Args:
        uses: (event, part) pairs. Events of the same part, and events without a
            part, compose in sequence; different parts compose in parallel.

    Returns:
        One collapsed event.
    """
    whole: list[Event] = []
    parts: dict[str, list[Event]] = {}
    for event, part in uses:
        (whole if part is None else parts.setdefault(part, [])).append(event)
    if len(parts) == 1:
        whole += next(iter(parts.values()))
    elif parts:
        disjoint = (collapse(Compose(tuple(events))) for events in parts.values())
        whole.append(Parallel(tuple(disjoint)))
    return collapse(Compose(tuple(whole)))
