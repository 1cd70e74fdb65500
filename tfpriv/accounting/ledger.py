"""A privacy budget on disk: charged before each use, never overrun, never forgotten."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import BudgetExceeded, InputError
from tfpriv._figures import rounded_up
from tfpriv._validation import positive, probability
from tfpriv.accounting._sealed_lines import SealedLines
from tfpriv.accounting.composition import DELTA_HINT, epsilon
from tfpriv.accounting.events import Event, Repeat, collapse, combine, flatten

if TYPE_CHECKING:
    from tfpriv.accounting.data_budget import DataBudget

# Version 1 had charges alone; it is still read.
SCHEMA_VERSION = 2
_KIND = "tfpriv-privacy-ledger"

Tallies = Mapping[str | None, Mapping[Event, int]]


@dataclasses.dataclass(frozen=True)
class Charge:
    """One line of a ledger.

    Attributes:
        name: what was done, in words.
        event: how it used the private records.
        part: the disjoint part of the records it saw, or None for all of them.
        details: plain JSON for the reader beside it, or None.
        time: when, UTC, by a clock that may be wrong; decides nothing.
    """

    name: str
    event: Event
    part: str | None = None
    details: Mapping[str, Any] | None = dataclasses.field(default=None, hash=False)
    time: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True)
class Note:
    """A line of a ledger that costs nothing, of internal work for instance.

    Attributes:
        name: what it is, in words.
        details: plain JSON.
        time: when, UTC, by a clock that may be wrong; decides nothing.
    """

    name: str
    details: Mapping[str, Any] | None = dataclasses.field(default=None, hash=False)
    time: str = dataclasses.field(default="", compare=False)


class PrivacyLedger:
    """An append-only record of what was done to private records, with a limit.

    `charge` is called BEFORE the mechanism runs. It writes the event to disk and
    returns, or raises and writes nothing; so whatever happens to the process, no
    use of the records goes unrecorded, and a step that is done again after a crash
    is paid for again. Two processes may share one ledger.

    The file is JSON lines, mode 0600. Every line carries a hash of itself and of
    the line before it, and a second file, `<name>.head`, says how many lines there
    were: an edited line, a cut-off end and a lost file are noticed. The hashes have
    no key: whoever means to deceive and rewrites or deletes both files cannot be
    noticed.

    A ledger that is attached to the budget of a data set (`DataBudget`) has that one
    charged first, for whatever the budget has not paid for yet.

    Args:
        path: file of the ledger. Made if missing; its folder must exist.
        limit_epsilon: the budget. `math.inf` records without a limit, which is the
            only way to charge something that is not private.
        delta: the delta of the budget, strictly between 0 and 1.
        facts: what the first line of a new file says beside that, plain JSON.

    Raises:
        InputError: a bad limit or delta, another limit or delta than the file was
            made with, a damaged or lost file, or one of a newer version.
        OSError: the file cannot be read or made.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        *,
        limit_epsilon: float,
        delta: float,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        if limit_epsilon != math.inf:
            positive(limit_epsilon=limit_epsilon)
        probability(DELTA_HINT, delta=delta)
        self._open(Path(path), limit_epsilon, delta, facts or {}, read_only=False)

    @classmethod
    def existing(
        cls, path: str | os.PathLike, *, read_only: bool = False
    ) -> PrivacyLedger:
        """Opens a ledger that is there, with the budget it was made with.

        Args:
            path: file of the ledger.
            read_only: writes nothing, and goes without a lock where none can be made.

        Raises:
            InputError: no ledger, a damaged one, or one of a newer version.
            OSError: the file cannot be read.
        """
        path = Path(path)
        try:
            with path.open("rb") as file:
                header = json.loads(file.readline())
            limit, delta = header["limit_epsilon"], header["delta"]
            limit = math.inf if limit is None else limit
            probability(delta=delta)
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(
                f"Expected a privacy ledger at {path}, received no file."
            ) from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(
                f"Expected a privacy ledger, received {path}, which is none."
            ) from None
        self = cls.__new__(cls)
        self._open(path, limit, delta, {}, read_only=read_only)
        return self

    def _open(
        self,
        path: Path,
        limit_epsilon: float,
        delta: float,
        facts: Mapping[str, Any],
        *,
        read_only: bool,
    ) -> None:
        self.path = path
        self.limit_epsilon = float(limit_epsilon)
        self.delta = float(delta)
        self._budget: DataBudget | None = None
        self._forget()
        self._file = SealedLines(path, read_only=read_only)
        with self._file.locked():
            if not path.exists():
                self._create(facts)
            self._refresh()

    @property
    def id(self) -> str:
        """What tells this ledger from any other; a copy of the file has the same."""
        return self._header["id"]

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the first line says."""
        return dict(self._header)

    def charge(
        self,
        name: str,
        event: Event,
        part: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> float:
        """Pays for a use of the private records that is about to happen.

        Args:
            name: what it is, in words.
            event: how it will use the records.
            part: name of the disjoint part of the records that it will see, a class
                for instance. Charges to different parts compose in parallel; it
                must depend on each record alone which part the record is in.
            details: plain JSON for the reader.

        Returns:
            The epsilon of everything charged so far, this included.

        Raises:
            BudgetExceeded: it would take epsilon over the limit, or over that of the
                data set. Nothing is charged.
            InputError: not a name or an event, or the file was damaged.
            OSError: the line could not be written, whole and to disk. Nothing is
                charged.
        """
        if not isinstance(name, str) or not isinstance(part, str | None):
            raise InputError(
                f"Expected name and part as text, received {type(name).__name__} and "
                f"{type(part).__name__}."
            )
        with self._locked():
            tallies = self._with(part, event)
            cost = epsilon(_combined(tallies), self.delta)
            if cost > self.limit_epsilon:
                raise BudgetExceeded(
                    f"Expected epsilon <= {self.limit_epsilon:g} at delta="
                    f"{self.delta:g}, received {rounded_up(cost, 6)} with {name!r} "
                    "charged. Nothing was charged and nothing was done: stop here, "
                    "or plan with fewer steps or more noise."
                )
            if self._link is not None:
                self._data_budget().cover(self.id, self.path, tallies)
            line = {"name": name, "part": part, "event": event.to_json()}
            self._append(line | ({"details": dict(details)} if details else {}))
        return cost

    def note(self, name: str, details: Mapping[str, Any] | None = None) -> None:
        """Writes a line that costs nothing.

        Raises:
            InputError: not a name, or the file was damaged.
            OSError: the line could not be written.
        """
        if not isinstance(name, str) or not name:
            raise InputError(f"Expected a name, received {name!r}.")
        with self._locked():
            self._append({"note": name, "details": dict(details or {})})

    def attach(self, budget: DataBudget) -> None:
        """Ties this ledger to the budget of the data set its records are from.

        Raises:
            InputError: it is tied to another one.
        """
        link = {"data_set": budget.id, "ledger": budget.ledger.id}
        with self._locked():
            if self._link is None:
                self._append({"budget": link})
            elif self._link != link:
                raise InputError(
                    f"Expected the budget of data set {self._link['data_set']!r}, to "
                    f"which {self.path} is tied, received another one, of "
                    f"{budget.id!r}. Use another output folder."
                )
        self._budget = budget

    def affords(self, event: Event, part: str | None = None) -> bool:
        """Returns whether `charge` would accept the event now. Writes nothing."""
        with self._locked():
            tallies = self._with(part, event)
            if epsilon(_combined(tallies), self.delta) > self.limit_epsilon:
                return False
            return self._link is None or self._data_budget().covers(
                self.id, self.path, tallies
            )

    def epsilon(self, accountant: str = "rdp") -> float:
        """Returns the epsilon of everything charged so far."""
        return epsilon(self.event(), self.delta, accountant)

    def event(self) -> Event:
        """Returns everything charged so far as one event, equal steps counted."""
        return _combined(self.tallies())

    def tallies(self) -> Tallies:
        """Returns part -> mechanism used once -> how often it was charged."""
        with self._locked():
            return {part: dict(tally) for part, tally in self._tallies.items()}

    def events(self) -> tuple[Charge, ...]:
        """Returns every charge ever made, in order."""
        return tuple(line for line in self.lines() if isinstance(line, Charge))

    def lines(self) -> tuple[Charge | Note, ...]:
        """Returns every charge and note, in order."""
        with self._locked():
            return tuple(self._entries)

    def _data_budget(self) -> DataBudget:
        if self._budget is None:
            from tfpriv.accounting.data_budget import DataBudget

            budget = DataBudget.load(self._link["data_set"])
            if budget.ledger.id != self._link["ledger"]:
                raise InputError(
                    f"Expected the budget of data set {budget.id!r} that {self.path} "
                    "is tied to, received another one of that name: the first was "
                    "lost or is elsewhere. Use another output folder."
                )
            self._budget = budget
        return self._budget

    def _with(
        self, part: str | None, event: Event
    ) -> dict[str | None, dict[Event, int]]:
        tallies = dict(self._tallies)
        tallies[part] = _added(tallies.get(part, {}), event)
        return tallies

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._file.locked():
            self._refresh()
            yield

    def _forget(self) -> None:
        self._header: dict[str, Any] = {}
        self._entries: list[Charge | Note] = []
        self._tallies: dict[str | None, dict[Event, int]] = {}
        self._link: dict[str, str] | None = None

    def _create(self, facts: Mapping[str, Any]) -> None:
        self._file.create(
            {
                **facts,
                "kind": _KIND,
                "schema_version": SCHEMA_VERSION,
                "id": secrets.token_hex(16),
                "delta": self.delta,
                "limit_epsilon": (
                    None if math.isinf(self.limit_epsilon) else self.limit_epsilon
                ),
            }
        )

    def _refresh(self) -> None:
        first, payloads = self._file.refresh()
        if first:
            self._forget()
        try:
            for number, payload in enumerate(payloads):
                if first and number == 0:
                    self._check_header(payload)
                else:
                    self._take_in(payload)
        except BaseException:
            # Or the lines would count as taken in.
            self._file.forget()
            raise

    def _check_header(self, header: dict[str, Any]) -> None:
        if header.get("kind") != _KIND:
            raise InputError(
                f"Expected a privacy ledger, received {self.path}, which is none."
            )
        if header["schema_version"] not in range(1, SCHEMA_VERSION + 1):
            raise InputError(
                f"Expected a ledger of version {SCHEMA_VERSION} or less, received "
                f"version {header['schema_version']} in {self.path}. Use the tfpriv "
                "that wrote it."
            )
        limit = header["limit_epsilon"]
        made_with = (math.inf if limit is None else limit, header["delta"])
        if made_with != (self.limit_epsilon, self.delta):
            raise InputError(
                f"Expected epsilon={made_with[0]:g} and delta={made_with[1]:g}, with "
                f"which {self.path} was made, received epsilon={self.limit_epsilon:g} "
                f"and delta={self.delta:g}. Use the same, or another output folder."
            )
        self._header = header

    def _take_in(self, payload: dict[str, Any]) -> None:
        if "budget" in payload:
            self._link = payload["budget"]
        elif "note" in payload:
            self._entries.append(
                Note(payload["note"], payload["details"], payload["time"])
            )
        else:
            event, part = Event.from_json(payload["event"]), payload["part"]
            details, when = payload.get("details"), payload["time"]
            self._tallies = self._with(part, event)
            self._entries.append(Charge(payload["name"], event, part, details, when))

    def _append(self, payload: dict[str, Any]) -> None:
        # For the reader alone; nothing is decided by a clock.
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._take_in(self._file.append({**payload, "time": now}))


def _combined(tallies: Tallies) -> Event:
    # Counts, not sums of floats: a thousand steps cost to the last digit what a plan
    # of a thousand steps costs.
    return combine(
        (collapse(Repeat(unit, count)), part)
        for part, tally in tallies.items()
        for unit, count in tally.items()
    )


def _added(tally: Mapping[Event, int], event: Event) -> dict[Event, int]:
    if not isinstance(event, Event):
        raise InputError(
            f"Expected an event of tfpriv.accounting, received {type(event).__name__}."
        )
    result = dict(tally)
    for unit, count in flatten(event).items():
        result[unit] = result.get(unit, 0) + count
    return result
