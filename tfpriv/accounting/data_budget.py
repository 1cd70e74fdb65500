"""What all releases of one data set may cost together."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfpriv._errors import BudgetExceeded, InputError
from tfpriv._figures import rounded_up
from tfpriv._validation import one_of, positive, probability
from tfpriv.accounting import _state
from tfpriv.accounting._coverage import unpaid
from tfpriv.accounting._group_charges import GroupTotal, group_details, group_totals
from tfpriv.accounting.composition import DELTA_HINT, calibrate_scale, epsilon
from tfpriv.accounting.events import Compose, Event, Gaussian
from tfpriv.accounting.group import GroupBound
from tfpriv.accounting.ledger import Note, PrivacyLedger, Tallies

ADJACENCIES = ("add-or-remove-one", "zero-out-one", "replace-one")

_LEDGER = "ledger.jsonl"


class DataBudget:
    """The budget of a data set, charged by every private release made from it.

    It is a `PrivacyLedger` in a folder of the machine, named by an id that the user
    declares; `state_folder` in `_state.py` says where. The total is composed from
    the events of all releases, with Renyi curves on one delta, never from epsilons
    that were converted before; the Renyi accountant decides. Pure epsilons add up
    where that is less. Deltas of selections and of cut-off noise are taken off the
    budget's delta, each of them.

    A file belongs to a budget if its bytes have an HMAC that the budget knows, under
    a key of the machine. That detects a file that changed, or a copy under another
    name, and no more: an edited copy is a file that no budget knows, and whoever
    deletes the ledger and the key starts afresh.

    >>> budget = DataBudget.find("mine.csv")                     # doctest: +SKIP
    >>> if budget:                                               # doctest: +SKIP
    ...     budget.charge(event, "synthetic text in out/", run=ledger)

    Attributes:
        id: str. What the data set is called.
        ledger: PrivacyLedger. Every charge and note.
    """

    def __init__(self, data_set: str, *, read_only: bool = False) -> None:
        folder = _state.budget_folder(data_set)
        if not folder.exists():
            known = ", ".join(_state.budget_ids()) or "none"
            raise InputError(
                f"Expected the id of a data set with a budget, received {data_set!r}. "
                f"Known here: {known}. `tfpriv budget init` makes one."
            )
        self.id = data_set
        self.ledger = PrivacyLedger.existing(folder / _LEDGER, read_only=read_only)
        self._data: Path | None = None
        found = self.ledger.facts.get("data_set")
        if found != data_set:
            raise InputError(
                f"Expected the ledger of data set {data_set!r} in {folder}, received "
                f"that of {found!r}. Put each folder back under its own name."
            )

    @classmethod
    def create(
        cls,
        data: str | os.PathLike,
        *,
        epsilon: float,
        delta: float,
        id: str | None = None,
    ) -> DataBudget:
        """Gives a data set a budget.

        Args:
            data: its file. Read once, for its HMAC.
            epsilon: what all releases together may cost.
            delta: beside it, below 1 / number of records.
            id: what the data set is called; the file's name unless given.

        Raises:
            InputError: a bad number or id, no file, a data set that has a budget, or
                a folder that cannot be written.
        """
        positive(epsilon=epsilon)
        probability(DELTA_HINT, delta=delta)
        path = _checked_file(data)
        key = _state.local_key(new=not _state.budget_ids())
        seal = _state.fingerprint(path, key)
        for other in map(cls, _state.budget_ids()):
            if other._knows_content(seal):
                raise InputError(
                    f"Expected a data set without a budget, received {path}, which is "
                    f"data set {other.id!r} already. What was spent on it stays spent."
                )
            if id is None and path in other._paths():
                raise InputError(
                    f"Expected a data set without a budget, received {path}, which "
                    f"was data set {other.id!r} before it changed. {_mend(other, path)}"
                )
        name = _state.proposed_id(path) if id is None else _state.checked_id(id)
        folder = _state.budget_folder(name)
        _state.make_folder(folder.parent)
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            raise InputError(
                f"Expected an id that no data set has, received {name!r}. Choose "
                "another; a budget is never made larger."
            ) from None
        PrivacyLedger(
            folder / _LEDGER,
            limit_epsilon=epsilon,
            delta=delta,
            facts={"data_set": name},
        )
        budget = cls(name)
        budget._data = path
        budget._remember(path, seal)
        return budget

    @classmethod
    def load(cls, id: str, *, read_only: bool = False) -> DataBudget:
        """Opens the budget of a data set by its id; no file of it is looked at.

        Raises:
            InputError: none of that id, or a damaged or copied one.
        """
        budget = cls(id, read_only=read_only)
        budget._check_place()
        return budget

    @classmethod
    def find(cls, data: str | os.PathLike, id: str | None = None) -> DataBudget | None:
        """Finds the budget of a file, by its path or by its content.

        Where the path tells, the file is not read: `charge` does that, after it has
        refused what would go over.

        Args:
            data: the file.
            id: the data set it is meant to be, if the caller says so.

        Returns:
            The budget; None if the file has none.

        Raises:
            InputError: the file is not what `id` says, changed, or belongs to
                several; or a budget is damaged, or was copied from elsewhere.
        """
        path = Path(data).resolve()
        if id is not None:
            _state.checked_id(id)
        budgets = [cls.load(name) for name in _state.budget_ids()]
        if id is not None and id not in [budget.id for budget in budgets]:
            cls.load(id)
        if not budgets:
            return None
        by_path = [budget for budget in budgets if path in budget._paths()]
        if len(by_path) == 1 and id in (None, by_path[0].id):
            found = by_path[0]
        else:
            found = cls._by_content(budgets, by_path, path, id)
        if found is not None:
            found._data = path
        return found

    @classmethod
    def _by_content(
        cls,
        budgets: list[DataBudget],
        by_path: list[DataBudget],
        path: Path,
        id: str | None,
    ) -> DataBudget | None:
        seal = _state.fingerprint(_checked_file(path), _state.local_key())
        for budget in budgets:
            if not budget._knows_content(seal):
                continue
            if id not in (None, budget.id):
                raise InputError(
                    f"Expected a file of data set {id!r}, received {path}, which is "
                    f"data set {budget.id!r}. Name that one."
                )
            if path not in budget._paths():
                budget._remember(path, seal)
            return budget
        if id is not None:
            raise InputError(
                f"Expected a file of data set {id!r}, received {path}, which it does "
                f"not know. If it is: tfpriv budget accept {path} --id {id}"
            )
        if by_path:
            raise InputError(
                f"Expected {path} as it was when it was given a budget, received a "
                f"changed file. {_mend(by_path[-1], path)}"
            )
        return None

    def accept(self, data: str | os.PathLike) -> None:
        """Declares that a file, new or changed, is this data set.

        What was spent stays spent, and is charged to the new records as well.

        Raises:
            InputError: no file, or the file of another data set.
        """
        path = _checked_file(data)
        seal = _state.fingerprint(path, _state.local_key(new=True))
        for name in _state.budget_ids():
            if name != self.id and DataBudget(name)._knows_content(seal):
                raise InputError(
                    f"Expected a file of data set {self.id!r}, received {path}, which "
                    f"is data set {name!r}."
                )
        if not (self._knows_content(seal) and path in self._paths()):
            self._remember(path, seal)
        self._data = path

    @classmethod
    def accept_move(cls, id: str) -> DataBudget:
        """Declares that a copied or moved ledger is the one that counts.

        Raises:
            InputError: none of that id, or a damaged one.
        """
        budget = cls(id)
        inode = budget.ledger.path.stat().st_ino
        budget.ledger.note("the ledger was moved here", {"moved_to_inode": inode})
        return budget

    @property
    def limit_epsilon(self) -> float:
        """What all releases together may cost."""
        return self.ledger.limit_epsilon

    @property
    def delta(self) -> float:
        """The delta of the budget."""
        return self.ledger.delta

    @property
    def adjacency(self) -> str:
        """The neighbours that the total is about: what all charges have in common.

        A record that is replaced by an empty one is one that is taken out of a sum,
        and one that is replaced by another.
        """
        details = [charge.details or {} for charge in self.ledger.events()]
        kinds = {detail.get("adjacency", "add-or-remove-one") for detail in details}
        if len(kinds) > 1:
            return "zero-out-one"
        return kinds.pop() if kinds else "add-or-remove-one"

    def epsilon(self, accountant: str = "rdp") -> float:
        """Returns the epsilon of everything charged so far, at the budget's delta."""
        return self.ledger.epsilon(accountant)

    def group_totals(self) -> list[GroupTotal]:
        """Returns what everything cost all the records of one author together.

        One total for each column that a release was bounded by. The limit is for one
        record: nothing is refused for what a group costs.
        """
        return group_totals(self.ledger.events(), self.delta)

    def largest_affordable(self) -> tuple[float, float] | None:
        """Returns what one more Gaussian release could cost by itself.

        Returns:
            (its epsilon at the budget's delta, its noise multiplier); None if
            nothing more fits.
        """
        spent = self.ledger.event()
        try:
            scale = calibrate_scale(
                lambda s: Compose((spent, Gaussian(s))), self.limit_epsilon, self.delta
            )
        except InputError:
            return None
        return epsilon(Gaussian(scale), self.delta), scale

    def affords(self, event: Event, run: str | os.PathLike | None = None) -> bool:
        """Returns whether `charge` would accept it. Reads and writes no record.

        Args:
            event: as for `charge`.
            run: path of the run's ledger, which may not be there yet.
        """
        if run is None or not Path(run).exists():
            return self.ledger.affords(event)
        ledger = PrivacyLedger.existing(run, read_only=True)
        due = self._due(ledger.id, ledger.path, ledger.tallies(), event)
        return due is None or self.ledger.affords(due)

    def require(
        self, event: Event, what: str, run: str | os.PathLike | None = None
    ) -> None:
        """Refuses what `charge` would refuse; writes nothing and reads no record.

        Args:
            event: as for `charge`.
            what: as for `charge`.
            run: as for `affords`.

        Raises:
            BudgetExceeded: it would go over.
        """
        if not self.affords(event, run):
            raise self._exceeded(what, event)

    def charge(
        self,
        event: Event,
        what: str,
        *,
        run: PrivacyLedger | None = None,
        adjacency: str = "add-or-remove-one",
        group: GroupBound | None = None,
        local: bool = False,
    ) -> float:
        """Pays for a release before any record is used for it.

        With `run`, the whole plan of a run is paid for at its beginning, once: the
        same run, going on, pays nothing more, and every later charge to its own
        ledger that the plan did not have comes out of this budget too. A run whose
        folder was copied is another run.

        Args:
            event: everything that the release will do to the records.
            what: what it is, in words that may be shown to others.
            run: the run's own ledger; None for what happens at one stroke.
            adjacency: which data sets the event's price is about.
            group: what shares records, and how many at most, if that was checked.
            local: whether each record goes through a mechanism of its own (the local
                model), so that the records of a group cost so many times as much.

        Returns:
            The epsilon of everything charged to the data set, this included.

        Raises:
            BudgetExceeded: it would go over. Nothing is charged, no record was read.
            InputError: the file of the data set changed, or a bad argument.
            OSError: the ledger cannot be written.
        """
        one_of(ADJACENCIES, adjacency=adjacency)
        details = {"adjacency": adjacency, **group_details(group, local)}
        due: Event | None = event
        if run is not None:
            due = self._due(run.id, run.path, run.tallies(), event)
            details |= _run_details(run.id, run.path)
        if due is not None and not self.ledger.affords(due):
            raise self._exceeded(what, due)
        self.check_data()
        if run is not None:
            run.attach(self)
        if due is None:
            return self.epsilon()
        try:
            return self.ledger.charge(what, due, details=details)
        except BudgetExceeded:  # another process was quicker
            raise self._exceeded(what, due) from None

    def note(self, what: str) -> None:
        """Records internal work on the records, which is not private and not charged.

        Audits and evaluations with real records have no finite epsilon. Nothing of
        theirs may leave, nor choose, filter or tune what leaves.
        """
        self.ledger.note(what, {"internal": True})

    def note_unprotected(self, what: str) -> None:
        """Records that something left which has no guarantee for these records.

        It has no finite epsilon to charge, and whoever lets it leave decided so.
        """
        self.ledger.note(what, {"unprotected": True})

    def covers(self, run: str, path: Path, tallies: Tallies) -> bool:
        """Returns whether a run's charges are paid for, or could be. For ledgers."""
        due = self._due(run, path, tallies)
        return due is None or self.ledger.affords(due)

    def cover(self, run: str, path: Path, tallies: Tallies) -> None:
        """Charges what a run's ledger has, or is about to have, beyond what was paid.

        Called by `PrivacyLedger.charge`.

        Raises:
            BudgetExceeded: it would go over. Nothing is charged.
        """
        due = self._due(run, path, tallies)
        if due is None:
            return
        what = "a step done again, or beyond the plan of its run"
        details = _run_details(run, path)
        try:
            self.ledger.charge(what, due, details=details)
        except BudgetExceeded:
            raise self._exceeded(what, due) from None

    def _due(
        self, run: str, path: Path, tallies: Tallies, plan: Event | None = None
    ) -> Event | None:
        """What is to be paid for a run beyond what it paid; None if nothing is."""
        who = {"run": run, "inode": path.stat().st_ino}
        paid = [
            charge.event
            for charge in self.ledger.events()
            if charge.details and who.items() <= charge.details.items()
        ]
        return unpaid(plan, tallies, paid)

    def _exceeded(self, what: str, event: Event) -> BudgetExceeded:
        total = epsilon(Compose((self.ledger.event(), event)), self.delta)
        received = (
            "a use of the records without a guarantee"
            if math.isinf(epsilon(event, self.delta))
            else f"{rounded_up(self.epsilon())} spent and {rounded_up(total)} with this"
        )
        return BudgetExceeded(
            f"Expected epsilon <= {self.limit_epsilon:g} at delta={self.delta:g} for "
            f"all releases of data set {self.id!r}, received {received} ({what}). "
            f"Nothing was charged and no record was used. See: tfpriv budget show "
            f"{self.id}"
        )

    def _check_place(self) -> None:
        inode = self.ledger.path.stat().st_ino
        places = [self.ledger.facts.get("inode")]
        places += [
            line.details["moved_to_inode"]
            for line in self.ledger.lines()
            if isinstance(line, Note) and "moved_to_inode" in line.details
        ]
        if places[-1] != inode:
            raise InputError(
                f"Expected the ledger that was made for data set {self.id!r}, "
                f"received a copy in {self.ledger.path.parent}: what was charged to "
                "the first since is not known here. If this one counts from now on: "
                f"tfpriv budget accept --moved {self.id}"
            )

    def check_data(self) -> None:
        """Reads the file that the budget was found by, and refuses a changed one.

        Raises:
            InputError: its bytes are not those of a file of the data set.
        """
        if self._data is None:
            return
        seal = _state.fingerprint(_checked_file(self._data), _state.local_key())
        if not self._knows_content(seal):
            raise InputError(
                f"Expected {self._data} as data set {self.id!r} knows it, received a "
                f"changed file. {_mend(self, self._data)}"
            )

    def _files(self) -> list[Mapping[str, Any]]:
        return [
            line.details
            for line in self.ledger.lines()
            if isinstance(line, Note) and "hmac" in line.details
        ]

    def _remember(self, path: Path, seal: str) -> None:
        self.ledger.note("a file of the data set", {"path": str(path), "hmac": seal})

    def _paths(self) -> set[Path]:
        return {Path(file["path"]) for file in self._files()}

    def _knows_content(self, seal: str) -> bool:
        return any(file["hmac"] == seal for file in self._files())


def _mend(budget: DataBudget, path: Path) -> str:
    return (
        "If it is still the same people's: tfpriv budget accept "
        f"{path} --id {budget.id}; if they are others: tfpriv budget init {path} "
        "--id NEW."
    )


def _checked_file(data: str | os.PathLike) -> Path:
    path = Path(data).resolve()
    if not path.is_file():
        what = "a folder" if path.is_dir() else "no file"
        raise InputError(f"Expected the file of a data set at {path}, received {what}.")
    return path


def _run_details(run: str, path: Path) -> dict[str, Any]:
    return {"run": run, "inode": path.stat().st_ino, "ledger": str(path.resolve())}
