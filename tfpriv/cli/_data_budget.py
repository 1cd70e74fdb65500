"""The budget that a command's private file may have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfpriv.accounting import DataBudget


def budget_of(file: Path) -> DataBudget | None:
    """Returns the budget of a file; None if it has none, or there is no such file.

    Raises:
        InputError: the file changed since, or the budget is damaged.
    """
    from tfpriv.accounting import DataBudget

    return DataBudget.find(file) if file.is_file() else None
