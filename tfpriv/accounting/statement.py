"""What a release guarantees, derived from the list of what read private records."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import math
import os
from collections.abc import Iterable
from typing import Any

from tfpriv._errors import InputError
from tfpriv._figures import rounded_up
from tfpriv._files import PUBLIC, write_json
from tfpriv._validation import one_of, probability
from tfpriv._version import __version__
from tfpriv.accounting.composition import ACCOUNTANTS, DELTA_HINT, epsilon, is_private
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
    combine,
    flatten,
)
from tfpriv.accounting.group import GroupBound, group_epsilon

SCHEMA_VERSION = 1

# Above this, one record shifts the odds of what an attacker sees by more than
# 20,000 to 1: a bound that rules out next to nothing.
_MEANINGFUL_EPSILON = 10.0


@dataclasses.dataclass(frozen=True)
class PrivateRead:
    """One thing that read private records on the way to a release.

    Attributes:
        name: what it was, in words that can follow "the": "token counts".
        event: how it used the records; `NonPrivate()` for anything without noise.
        note: what a reader should know; for `NonPrivate`, why there is no guarantee.
        part: the disjoint part of the records it saw, or None for all of them.
        released: False for internal work (evaluation, audits) that neither went
            into the release nor chose, filtered or tuned anything in it.
    """

    name: str
    event: Event
    note: str = ""
    part: str | None = None
    released: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InputError(f"Expected a name for a read, received {self.name!r}.")
        flatten(self.event)

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON."""
        return {
            "name": self.name,
            "part": self.part,
            "event": self.event.to_json(),
            "note": self.note,
            "released": self.released,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> PrivateRead:
        """Builds the read that `to_json` described."""
        event = Event.from_json(value["event"])
        return cls(
            value["name"], event, value["note"], value["part"], value["released"]
        )


class PrivacyStatement:
    """The guarantee of one release, computed from its lineage.

    Epsilon is that of everything that read private records for the release, in one
    composition; if any of it had no guarantee, there is none for the whole, however
    private the rest. So nobody has to remember what is not covered: it is covered,
    or it is listed.

    Args:
        reads: every read of private records, in order.
        delta: strictly between 0 and 1.
        accountant: "rdp" or "pld".
        unit: what one record is: "record", or the column that declares groups.
        adjacency: which data sets count as neighbours.
        public: inputs that are not private, for the reader.
        assumptions: what the figures rest on beside the events.
        group: GroupBound or None. What shares records, and how many at most; the
            statement then has the epsilon for all the records of one as well.

    Raises:
        InputError: a bad delta, accountant, unit or adjacency, or no list of
            `PrivateRead`.
    """

    def __init__(
        self,
        reads: Iterable[PrivateRead],
        *,
        delta: float,
        accountant: str = "rdp",
        unit: str = "record",
        adjacency: str = "add-or-remove-one",
        public: Iterable[str] = (),
        assumptions: Iterable[str] = (),
        group: GroupBound | None = None,
    ) -> None:
        probability(DELTA_HINT, delta=delta)
        one_of(ACCOUNTANTS, accountant=accountant)
        self.reads = tuple(reads)
        for read in self.reads:
            if not isinstance(read, PrivateRead):
                raise InputError(
                    f"Expected a list of PrivateRead, received {type(read).__name__}."
                )
        for name, word in (("unit", unit), ("adjacency", adjacency)):
            if not isinstance(word, str) or not word:
                raise InputError(f"Expected a name for {name}, received {word!r}.")
        self.delta = float(delta)
        self.accountant = accountant
        self.unit = unit
        self.adjacency = adjacency
        self.public = tuple(public)
        self.assumptions = tuple(assumptions)
        self.group = group
        self.epsilon = epsilon(self.event(), self.delta, accountant)

    def event(self) -> Event:
        """Returns the event of everything that went into the release."""
        return combine((read.event, read.part) for read in self._released())

    @property
    def covers(self) -> list[str]:
        """What the stated epsilon is about; empty if there is no guarantee."""
        if math.isinf(self.epsilon):
            return []
        return [f"{_label(read)}: {describe(read.event)}" for read in self._released()]

    @property
    def not_covered(self) -> list[str]:
        """What has no guarantee, or is not part of the release."""
        lines = [
            f"{_label(read)}: {_because(read)}"
            for read in self._released()
            if not is_private(read.event)
        ]
        if self.group is not None:
            lines.append(
                f"more than {self.group.size} records of one {self.group.unit}, and "
                "records that one person has under several names"
            )
        elif self.unit == "record":
            lines.append(
                "several records of one person: k of them together have more than k "
                "times this epsilon at this delta (group privacy)"
            )
        if not math.isinf(self.epsilon):
            lines.append(
                "other releases made from the same records, and the choice of this one "
                "among several: their epsilons add up"
            )
        lines += [
            f"{_label(read)}: internal, not part of the release"
            for read in self.reads
            if not read.released
        ]
        return lines

    def group_epsilon(self, size: int) -> float:
        """Returns the epsilon for `size` units at once, at the statement's delta.

        For all the records of one author, or a record that was copied. See
        `tfpriv.accounting.group_epsilon`.

        Args:
            size: how many units two neighbouring data sets differ in, at most.

        Returns:
            Epsilon; infinity if there is no guarantee for so many.

        Raises:
            InputError: a size that is no whole number of at least 1.
        """
        return group_epsilon(self.event(), self.delta, size, self.accountant)

    def to_json(self) -> dict[str, Any]:
        """Returns the contents of privacy.json.

        Keys: `schema_version`; `unit`; `adjacency`; `epsilon`, a number, or null
        with `epsilon_finite` false if there is no guarantee; `delta`; `accountant`;
        `group`, null or the `unit` that shares at most `size` records, with the
        `epsilon` for all of one's at the same delta; `events`, one a read, each with
        the `epsilon` it has alone; `covers`, `not_covered`, `public`, `assumptions`,
        lists of text; `versions`.

        Events hold sampling rates, noise multipliers, counts of steps and deltas:
        never a number of records.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "unit": self.unit,
            "adjacency": self.adjacency,
            "epsilon": _finite(self.epsilon),
            "epsilon_finite": math.isfinite(self.epsilon),
            "delta": self.delta,
            "accountant": self.accountant,
            "group": self._group(),
            "events": [
                read.to_json() | {"epsilon": _finite(self._alone(read))}
                for read in self.reads
            ],
            "covers": self.covers,
            "not_covered": self.not_covered,
            "public": list(self.public),
            "assumptions": list(self.assumptions),
            "versions": {
                "tfpriv": __version__,
                "dp-accounting": importlib.metadata.version("dp-accounting"),
            },
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> PrivacyStatement:
        """Builds the statement again from its events; epsilon is computed anew.

        Raises:
            InputError: another schema version, or a key or event that is missing,
                unknown or malformed.
        """
        try:
            if value["schema_version"] != SCHEMA_VERSION:
                raise InputError(
                    f"Expected a statement of version {SCHEMA_VERSION}, received "
                    f"version {value['schema_version']!r}."
                )
            return cls(
                map(PrivateRead.from_json, value["events"]),
                delta=value["delta"],
                accountant=value["accountant"],
                unit=value["unit"],
                adjacency=value["adjacency"],
                public=value["public"],
                assumptions=value["assumptions"],
                group=GroupBound.from_json(value.get("group")),
            )
        except (KeyError, TypeError) as error:
            raise InputError(
                f"Expected the JSON of a privacy statement, received none: {error}."
            ) from None

    def write(self, path: str | os.PathLike) -> None:
        """Writes `to_json` to a file that anyone may read."""
        write_json(path, self.to_json(), mode=PUBLIC)

    def __str__(self) -> str:
        lines = [*self._verdict(), ""]
        if self._released():
            lines.append("What read private records for this release:")
            lines += [f"  - {self._line(read)}" for read in self._released()]
        else:
            lines.append("No private record was read for this release.")
        for title, items in (
            ("Not covered:", self.not_covered),
            ("Public inputs:", self.public),
            ("Assumptions:", self.assumptions),
        ):
            if items:
                lines += [title, *(f"  - {item}" for item in items)]
        return "\n".join(lines)

    def _verdict(self) -> list[str]:
        neighbours = {
            "add-or-remove-one": f"adding or removing one {self.unit}",
            "zero-out-one": f"replacing one {self.unit} by an empty one",
        }.get(self.adjacency, self.adjacency)
        if math.isfinite(self.epsilon):
            lines = [
                f"Privacy guarantee of the whole release: epsilon = "
                f"{_figure(self.epsilon)} at delta = {self.delta:g} "
                f"({self.accountant.upper()} accountant), for {neighbours}."
            ]
            if self.epsilon > _MEANINGFUL_EPSILON:
                lines.append(
                    "An epsilon this large is true and protects next to nobody."
                )
            if self.group is not None:
                lines.append(self._group_line())
            return lines
        reasons = [
            f"the {_label(read)} ({_because(read)})"
            for read in self._released()
            if not is_private(read.event)
        ]
        if not reasons:
            return [
                "The whole release has NO privacy guarantee at delta = "
                f"{self.delta:g}: partition selections alone use up that delta."
            ]
        return [
            "The whole release has NO privacy guarantee (epsilon is infinite), since "
            f"private records were read without one by {' and by '.join(reasons)}."
        ]

    def _group(self) -> dict[str, Any] | None:
        if self.group is None:
            return None
        together = self.group_epsilon(self.group.size)
        return dataclasses.asdict(self.group) | {"epsilon": _finite(together)}

    def _group_line(self) -> str:
        together = self.group_epsilon(self.group.size)
        found = (
            f"epsilon = {_figure(together)}" if math.isfinite(together) else "no bound"
        )
        return (
            f"For all the records of one {self.group.unit}, {self.group.size} at most: "
            f"{found} at the same delta."
        )

    def _line(self, read: PrivateRead) -> str:
        alone = self._alone(read)
        price = (
            f"epsilon {_figure(alone)} at delta {self.delta:g} for this alone"
            if math.isfinite(alone)
            else "no guarantee"
        )
        note = f" ({read.note})" if read.note and is_private(read.event) else ""
        return f"{_label(read)}: {describe(read.event)}; {price}{note}"

    def _alone(self, read: PrivateRead) -> float:
        return epsilon(read.event, self.delta, self.accountant)

    def _released(self) -> list[PrivateRead]:
        return [read for read in self.reads if read.released]


def describe(event: Event) -> str:
    """Says in words what an event did; numbers to three digits.

    >>> describe(PoissonGaussian(0.055, 1.34, 1000))
    'Gaussian noise of multiplier 1.34 on Poisson samples at rate 0.055, 1,000 times'
    """
    parts = [_describe(unit, count) for unit, count in flatten(event).items()]
    return "; then ".join(parts) if parts else "nothing"


def _describe(unit: Event, count: int) -> str:
    times = "once" if count == 1 else f"{count:,} times"
    match unit:
        case Gaussian(noise_multiplier=sigma):
            text = f"Gaussian noise of multiplier {sigma:.3g} on all records"
        case PoissonGaussian(sampling_rate=rate, noise_multiplier=sigma):
            text = (
                f"Gaussian noise of multiplier {sigma:.3g} on Poisson samples at rate "
                f"{rate:.3g}"
            )
        case GaussianThreshold(noise_multiplier=sigma, delta=delta):
            text = (
                f"names whose count with Gaussian noise of multiplier {sigma:.3g} "
                f"passes a threshold (delta {rounded_up(delta, 3)})"
            )
        case PureDP(epsilon=value):
            text = f"a mechanism of epsilon {rounded_up(value, 3)} and delta 0"
        case ApproxDP(epsilon=value, delta=delta):
            text = (
                f"a mechanism of epsilon {rounded_up(value, 3)} and delta "
                f"{rounded_up(delta, 3)}"
            )
        case Parallel(events=events):
            parts = dict.fromkeys(map(describe, events))
            text = f"on {len(events)} disjoint parts: [{' | '.join(parts)}]"
        case RepeatAndSelect(event=run, mean=mean, shape=shape):
            law = (
                "a Poisson number of runs"
                if math.isinf(shape)
                else f"a random number of runs (negative binomial of shape {shape:g})"
            )
            text = f"the best of {law}, {mean:g} on average, each [{describe(run)}]"
        case NonPrivate():
            return "read without any noise"
        case _:
            text = type(unit).__name__
    return f"{text}, {times}"


def _because(read: PrivateRead) -> str:
    return read.note or "it read private records without noise"


def _label(read: PrivateRead) -> str:
    return read.name if read.part is None else f"{read.name} [{read.part}]"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _figure(value: float) -> str:
    if value < 1000:
        return rounded_up(value)
    return f"about {value:.0e} ({value:,.0f})".replace("e+0", "e").replace("e+", "e")
