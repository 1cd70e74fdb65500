"""A privacy budget on disk: charged before each use, never overrun, never forgotten."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tfpriv._errors import BudgetExceeded, InputError
from tfpriv._files import PRIVATE, atomic_write
from tfpriv._validation import positive, probability
from tfpriv.accounting.composition import DELTA_HINT, epsilon
from tfpriv.accounting.events import Event, Repeat, collapse, combine, flatten

SCHEMA_VERSION = 1
_KIND = "tfpriv-privacy-ledger"


@dataclasses.dataclass(frozen=True)
class Charge:
    """One line of a ledger.

    Attributes:
        name: what was done, in words.
        event: how it used the private records.
        part: the disjoint part of the records it saw, or None for all of them.
    """

    name: str
    event: Event
    part: str | None = None


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

    Args:
        path: file of the ledger. Made if missing; its folder must exist.
        limit_epsilon: the budget. `math.inf` records without a limit, which is the
            only way to charge something that is not private.
        delta: the delta of the budget, strictly between 0 and 1.

    Raises:
        InputError: a bad limit or delta, another limit or delta than the file was
            made with, a damaged or lost file, or one of a newer version.
        OSError: the file cannot be read or made.
    """

    def __init__(
        self, path: str | os.PathLike, *, limit_epsilon: float, delta: float
    ) -> None:
        if limit_epsilon != math.inf:
            positive(limit_epsilon=limit_epsilon)
        probability(DELTA_HINT, delta=delta)
        self.path = Path(path)
        self.limit_epsilon = float(limit_epsilon)
        self.delta = float(delta)
        self._head_path = self.path.with_name(self.path.name + ".head")
        self._lock_path = self.path.with_name(self.path.name + ".lock")
        self._forget()
        if not self.path.parent.is_dir():
            # Checked here: filelock would make the folder.
            raise InputError(
                f"Expected an existing folder for the ledger, received {self.path}."
            )
        with self._locked():
            if not self.path.exists():
                self._create()
            self._refresh()

    def charge(self, name: str, event: Event, part: str | None = None) -> float:
        """Pays for a use of the private records that is about to happen.

        Args:
            name: what it is, in words.
            event: how it will use the records.
            part: name of the disjoint part of the records that it will see, a class
                for instance. Charges to different parts compose in parallel; it
                must depend on each record alone which part the record is in.

        Returns:
            The epsilon of everything charged so far, this included.

        Raises:
            BudgetExceeded: it would take epsilon over the limit. Nothing is charged.
            InputError: not a name or an event, or the file was damaged.
            OSError: the line could not be written, whole and to disk. Nothing is
                charged.
        """
        if not isinstance(name, str) or not isinstance(part, str | None):
            raise InputError(
                f"Expected name and part as text, received {type(name).__name__} and "
                f"{type(part).__name__}."
            )
        charge = Charge(name, event, part)
        with self._locked():
            self._refresh()
            cost = self._cost(charge)
            if cost > self.limit_epsilon:
                raise BudgetExceeded(
                    f"Expected epsilon <= {self.limit_epsilon:g} at delta="
                    f"{self.delta:g}, received {cost:.6g} with {name!r} charged. "
                    "Nothing was charged and nothing was done: stop here, or plan "
                    "with fewer steps or more noise."
                )
            self._append(charge)
        return cost

    def affords(self, event: Event, part: str | None = None) -> bool:
        """Returns whether `charge` would accept the event now. Writes nothing."""
        with self._locked():
            self._refresh()
            return self._cost(Charge("", event, part)) <= self.limit_epsilon

    def epsilon(self, accountant: str = "rdp") -> float:
        """Returns the epsilon of everything charged so far."""
        return epsilon(self.event(), self.delta, accountant)

    def event(self) -> Event:
        """Returns everything charged so far as one event, equal steps counted."""
        with self._locked():
            self._refresh()
            return self._combined(self._tallies)

    def events(self) -> tuple[Charge, ...]:
        """Returns every charge ever made, in order."""
        with self._locked():
            self._refresh()
            return tuple(self._charges)

    def _cost(self, charge: Charge) -> float:
        tallies = dict(self._tallies)
        tallies[charge.part] = _added(tallies.get(charge.part, {}), charge.event)
        return epsilon(self._combined(tallies), self.delta)

    @staticmethod
    def _combined(tallies: dict[str | None, dict[Event, int]]) -> Event:
        # Counts, not sums of floats: a thousand steps cost to the last digit what
        # a plan of a thousand steps costs.
        return combine(
            (_repeated(unit, count), part)
            for part, tally in tallies.items()
            for unit, count in tally.items()
        )

    # The file.

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        import filelock

        lock = filelock.FileLock(self._lock_path, mode=PRIVATE, timeout=60)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise OSError(
                f"Expected {self.path} to be free within 60 s, received a lock that "
                "another process holds. Wait for it, or end it."
            ) from None
        try:
            yield
        finally:
            lock.release()

    def _forget(self) -> None:
        self._charges: list[Charge] = []
        self._tallies: dict[str | None, dict[Event, int]] = {}
        self._lines = 0
        self._chain = ""
        self._size = 0
        self._stamp: tuple[int, ...] = ()

    def _create(self) -> None:
        if self._head_path.exists():
            raise self._damaged("the file is gone and its head is there")
        header = {
            "kind": _KIND,
            "schema_version": SCHEMA_VERSION,
            "id": secrets.token_hex(16),
            "delta": self.delta,
            "limit_epsilon": (
                None if math.isinf(self.limit_epsilon) else self.limit_epsilon
            ),
        }
        line, _ = _sealed(header, "")
        with atomic_write(self.path, mode=PRIVATE, binary=True) as file:
            file.write(line)

    def _refresh(self) -> None:
        """Takes in what other processes charged; reads all again after an edit."""
        try:
            stamp = _stamp(self.path)
        except FileNotFoundError:
            raise self._damaged("the file is gone") from None
        if stamp == self._stamp:
            return
        appended = stamp[:1] == self._stamp[:1] and stamp[1] > self._size
        if not appended:
            self._forget()
        with self.path.open("rb") as file:
            file.seek(self._size)
            data = file.read()
        if not data.endswith(b"\n"):
            raise self._damaged("its last line is cut off")
        head = self._read_head()
        for number, line in enumerate(data[:-1].split(b"\n"), self._lines + 1):
            payload = self._opened(line, number)
            if number == 1:
                self._check_header(payload)
            else:
                self._take_in(payload, number)
            self._lines = number
            if head and head[0] == number and head[1] != self._chain:
                raise self._damaged(f"line {number} is not the one that was written")
        if head and head[0] > self._lines:
            raise self._damaged(f"{head[0] - self._lines} lines are missing at its end")
        if not head and self._lines > 1:
            raise self._damaged(f"{self._head_path.name} is missing beside it")
        self._size, self._stamp = self._size + len(data), stamp
        if head != (self._lines, self._chain):
            self._write_head()

    def _opened(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            payload = json.loads(line)
            payload.pop("chain")
            sealed, chain = _sealed(payload, self._chain)
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            raise self._damaged(f"line {number} is not a line of a ledger") from None
        if sealed != line + b"\n":
            raise self._damaged(f"line {number} was changed, or one before it")
        self._chain = chain
        return payload

    def _check_header(self, header: dict[str, Any]) -> None:
        if header.get("kind") != _KIND:
            raise InputError(
                f"Expected a privacy ledger, received {self.path}, which is none."
            )
        if header["schema_version"] != SCHEMA_VERSION:
            raise InputError(
                f"Expected a ledger of version {SCHEMA_VERSION}, received version "
                f"{header['schema_version']} in {self.path}. Use the tfpriv that "
                "wrote it."
            )
        limit = header["limit_epsilon"]
        made_with = (math.inf if limit is None else limit, header["delta"])
        if made_with != (self.limit_epsilon, self.delta):
            raise InputError(
                f"Expected epsilon={made_with[0]:g} and delta={made_with[1]:g}, with "
                f"which {self.path} was made, received epsilon={self.limit_epsilon:g} "
                f"and delta={self.delta:g}. Use the same, or another output folder."
            )

    def _take_in(self, payload: dict[str, Any], number: int) -> None:
        if payload.get("index") != number - 1:
            raise self._damaged(f"line {number} is out of order")
        event = Event.from_json(payload["event"])
        charge = Charge(payload["name"], event, payload["part"])
        self._charges.append(charge)
        tally = self._tallies.get(charge.part, {})
        self._tallies[charge.part] = _added(tally, event)

    def _append(self, charge: Charge) -> None:
        payload = {
            "index": self._lines,
            "name": charge.name,
            "part": charge.part,
            "event": charge.event.to_json(),
            # For the reader alone; nothing is decided by a clock.
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        line, chain = _sealed(payload, self._chain)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            try:
                if os.write(descriptor, line) != len(line):
                    raise OSError(f"{self.path}: the disk is full.")
                os.fsync(descriptor)
            except BaseException:
                # Half a line would make the ledger unreadable for good.
                os.ftruncate(descriptor, self._size)
                raise
        finally:
            os.close(descriptor)
        self._charges.append(charge)
        tally = self._tallies.get(charge.part, {})
        self._tallies[charge.part] = _added(tally, charge.event)
        self._lines += 1
        self._chain = chain
        self._size += len(line)
        self._stamp = _stamp(self.path)
        self._write_head()

    def _read_head(self) -> tuple[int, str] | None:
        try:
            lines, chain = self._head_path.read_text(encoding="ascii").split()
            return int(lines), chain
        except FileNotFoundError:
            return None
        except ValueError:
            raise self._damaged(f"{self._head_path.name} beside it is broken") from None

    def _write_head(self) -> None:
        # One write of constant length: a reader sees the old head or the new one.
        # If the process dies before it, the head is a line behind, which is allowed.
        head = f"{self._lines:012d} {self._chain}\n".encode("ascii")
        descriptor = os.open(self._head_path, os.O_WRONLY | os.O_CREAT, PRIVATE)
        try:
            os.pwrite(descriptor, head, 0)
        finally:
            os.close(descriptor)

    def _damaged(self, what: str) -> InputError:
        return InputError(
            f"Expected a whole privacy ledger at {self.path}, but {what}. What was "
            "spent is no longer known: restore the file and its .head from a copy, "
            "or treat the budget of these records as used up."
        )


def _sealed(payload: dict[str, Any], previous: str) -> tuple[bytes, str]:
    """Returns the line of a payload and its hash, chained to the line before."""
    text = _canonical(payload)
    chain = hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
    return (_canonical(payload | {"chain": chain}) + "\n").encode(), chain


def _canonical(payload: dict[str, Any]) -> str:
    return json.dumps(payload, sort_keys=True, allow_nan=False)


def _stamp(path: Path) -> tuple[int, ...]:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def _added(tally: dict[Event, int], event: Event) -> dict[Event, int]:
    if not isinstance(event, Event):
        raise InputError(
            f"Expected an event of tfpriv.accounting, received {type(event).__name__}."
        )
    result = dict(tally)
    for unit, count in flatten(event).items():
        result[unit] = result.get(unit, 0) + count
    return result


def _repeated(unit: Event, count: int) -> Event:
    return collapse(Repeat(unit, count))
