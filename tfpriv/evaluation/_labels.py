"""What every classifier checks and counts in the same way."""

from __future__ import annotations

from collections.abc import Sequence

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset


def require_labelled(data: TextDataset, name: str) -> None:
    """Raises InputError unless `data` has records and each has a label."""
    if len(data) == 0 or data.labels is None:
        raise InputError(
            f"Expected labelled texts in {name}, received {len(data)} texts "
            f"{'without labels' if data.labels is None else 'with labels'}."
        )


def accuracy(predicted: Sequence[str], expected: Sequence[str]) -> float:
    """Returns the share of equal labels; a label never trained on counts as wrong."""
    pairs = zip(predicted, expected, strict=True)
    return sum(p == e for p, e in pairs) / len(expected)
