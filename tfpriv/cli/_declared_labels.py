"""The records of a file that a run with declared labels learns from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from tfpriv._errors import InputError

if TYPE_CHECKING:
    from tfpriv.datasets import TextDataset


def of_declared_labels(
    records: TextDataset, labels: Iterable[str] | None, run: Path
) -> TextDataset:
    """Leaves out the records whose label the run was not told.

    Args:
        records: of the run, or others beside them.
        labels: names that were declared; None where the run found them.
        run: its folder, which an error names.

    Raises:
        InputError: none is left.
    """
    if labels is None:
        return records
    known = set(labels)
    kept = [place for place, name in enumerate(records.labels) if name in known]
    if not kept:
        raise InputError(
            f"Expected a record with one of the {len(known)} labels that the run in "
            f"{run} was told, received none among {len(records)}. Give records of the "
            "same kind."
        )
    return records.select(kept)
