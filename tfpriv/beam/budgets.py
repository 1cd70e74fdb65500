"""The budgets that the files of a corpus may have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfpriv.accounting import DataBudget
    from tfpriv.serving import ExportedModel

# In the ledger of a budget.
_WHAT = "representations of its texts"


class CorpusBudgets:
    """What pays for one release of a corpus, before a record of it is encoded.

    Each data set that a file belongs to is charged once if records have keys, since a
    key is released once, in whatever files it stands. Without keys the same record
    may stand in each file of the data set, and each file is charged.

    A file that is not on this machine's disk has no budget.

    Args:
        paths: files of the corpus.
        model: what encodes it.
        keyed: whether records have keys of their own.

    Attributes:
        counts: id of a data set -> how many releases are charged to it.

    Raises:
        InputError: a file that changed since it got its budget.
    """

    def __init__(
        self, paths: Sequence[str | os.PathLike], model: ExportedModel, *, keyed: bool
    ) -> None:
        from tfpriv.accounting import DataBudget

        self._found: dict[str, list[DataBudget]] = {}
        for path in paths:
            if Path(path).is_file() and (budget := DataBudget.find(path)) is not None:
                self._found.setdefault(budget.id, []).append(budget)
        self.counts = {
            id: 1 if keyed else len(files) for id, files in self._found.items()
        }
        self._events = {
            id: model.privacy_statement(releases=count).event()
            for id, count in self.counts.items()
        }

    def require(self) -> None:
        """Refuses what `charge` would refuse; writes nothing and reads no record.

        Raises:
            BudgetExceeded: one of the data sets would go over.
        """
        for id, budgets in self._found.items():
            budgets[0].require(self._events[id], _WHAT)

    def charge(self) -> None:
        """Pays.

        Raises:
            BudgetExceeded: a data set would go over.
            InputError: a file changed meanwhile; nothing was charged.
        """
        self.require()
        for budgets in self._found.values():
            for budget in budgets:
                budget.check_data()
        for id, budgets in self._found.items():
            budgets[0].charge(self._events[id], _WHAT, adjacency="replace-one")
