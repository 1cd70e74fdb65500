"""The budget that a command's private file may have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tfpriv._errors import InputError
from tfpriv._files import write_json

if TYPE_CHECKING:
    from tfpriv.accounting import DataBudget


def budget_of(file: Path) -> DataBudget | None:
    """Returns the budget of a file; None if it has none, or there is no such file.

    Raises:
        InputError: the file changed since, or the budget is damaged.
    """
    from tfpriv.accounting import DataBudget

    return DataBudget.find(file) if file.is_file() else None


def note_training(file: Path, internal: Path) -> None:
    """Tells the budget of a file, if it has one, that an encoder is trained on it.

    Told once a run; `internal` remembers which data set it was.
    """
    mark = internal / _MARK
    if mark.exists() or (budget := budget_of(file)) is None:
        return
    budget.note("training of an encoder")
    write_json(mark, {"data_set": budget.id})


def check_unprotected_training(
    directory: Path, file: Path, *, allowed: bool
) -> DataBudget | None:
    """Finds the budget of the records that an encoder learnt from unprotected.

    Args:
        directory: a run of `tfpriv rmat train`.
        file: what it was trained on, which may have moved since.
        allowed: whether its releases may leave nevertheless.

    Returns:
        The budget that has to be told; None if there is none.

    Raises:
        InputError: there is one, and nothing may leave.
    """
    budget = _trained_on(directory / "internal" / _MARK, file)
    if budget is not None and not allowed:
        raise InputError(
            f"Expected an encoder that data set {budget.id} paid for, received "
            f"{directory}, which learnt from it without a guarantee: what it releases "
            "tells about those records too. --unprotected-training lets it leave, and "
            "that budget says so from then on."
        )
    return budget


_MARK = "data-budget.json"


def _trained_on(mark: Path, file: Path) -> DataBudget | None:
    from tfpriv.accounting import DataBudget

    if not mark.is_file():
        return budget_of(file)
    return DataBudget.load(json.loads(mark.read_text(encoding="utf-8"))["data_set"])
