"""Sums over labelled texts in which one record moves the result by at most 1 (L2).

Each function returns true, private sums for `GaussianCounts(1.0, noise_multiplier)`.
A record belongs to one class; what it adds is one vector, scaled to norm 1. Scaling
keeps every token of a long text, where capping drops most of them.

What a record adds is rounded towards 0 to multiples of 2^-26, so that sums over up to
2^27 records are exact in float64: rounding errors of the sum would depend on all other
records and on their order, and lift the sensitivity above 1 (Casacuberta et al. 2022,
arXiv:2207.10635).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tfpriv._errors import InputError

_GRID = 2.0**-26
# Below 1 by more than the rounding of one record's own vector.
_NORM = 1.0 - 1e-9

LENGTH_EDGES: tuple[int, ...] = (
    1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 19, 24, 30, 38, 48,
)  # fmt: skip
"""First length of each bucket of a length histogram; the last is open."""


def token_presence(
    rows: Sequence[Sequence[int]],
    labels: Sequence[int],
    num_classes: int,
    weights: np.ndarray,
) -> np.ndarray:
    """Returns how much each token occurs in each class.

    A record adds `weights[w]` for every distinct token w it holds, all of it divided
    by its L2 norm.

    Args:
        rows: token ids of each record; ids of weight 0 are left out.
        labels: class of each record, 0 to num_classes - 1.
        num_classes: int K, public.
        weights: (V,) finite, non-negative and public.

    Returns:
        float64 (K, V). Adding or removing a record moves it by at most 1 in L2.

    Raises:
        InputError: weights that cannot be used, or labels that do not fit.
    """
    weights = np.asarray(weights, np.float64)
    if not np.all(np.isfinite(weights) & (weights >= 0)):
        raise InputError("Expected finite weights >= 0, received others.")
    sums = np.zeros((num_classes, len(weights)))
    for row, label in _records(rows, labels, num_classes):
        ids = np.unique(np.asarray(row, np.int64))
        sums[label, ids] += _unit(weights[ids])
    return sums


def length_histogram(
    rows: Sequence[Sequence[int]], labels: Sequence[int], num_classes: int
) -> np.ndarray:
    """Returns the number of records in each class and bucket of `LENGTH_EDGES`.

    Returns:
        float64 (K, buckets). Adding or removing a record moves one entry by 1.
    """
    sums = np.zeros((num_classes, len(LENGTH_EDGES)))
    for row, label in _records(rows, labels, num_classes):
        sums[label, length_bucket(len(row))] += 1
    return sums


def pair_presence(
    rows: Sequence[Sequence[int]],
    labels: Sequence[int],
    num_classes: int,
    ids: Sequence[int],
) -> np.ndarray:
    """Returns how much pairs of neighbouring tokens occur in each class.

    A record adds 1 for every distinct pair of neighbours that both are in `ids`,
    divided by the L2 norm of that.

    Args:
        rows: token ids of each record, start and end tokens included if wanted.
        labels: class of each record.
        num_classes: int K, public.
        ids: the S tokens that are looked at, each once; public or released before.

    Returns:
        float64 (K, S, S), indexed by the places of first and second token in `ids`.
        Adding or removing a record moves it by at most 1 in L2.

    Raises:
        InputError: an id that is there twice, or labels that do not fit.
    """
    place = {int(token): i for i, token in enumerate(ids)}
    if len(place) != len(ids):
        raise InputError("Expected each id once, received one more than once.")
    sums = np.zeros((num_classes, len(place), len(place)))
    for row, label in _records(rows, labels, num_classes):
        places = [place.get(int(token), -1) for token in row]
        pairs = {
            pair for pair in itertools.pairwise(places) if pair[0] >= 0 and pair[1] >= 0
        }
        if pairs:
            first, second = map(list, zip(*pairs, strict=True))
            sums[label, first, second] += _unit(np.ones(len(pairs)))
    return sums


def length_bucket(length: int) -> int:
    """Returns the bucket of `LENGTH_EDGES` that a length falls in; 0 counts as 1."""
    return int(np.searchsorted(LENGTH_EDGES, max(length, 1), side="right")) - 1


def _unit(values: np.ndarray) -> np.ndarray:
    """Scales non-negative values to norm 1 or barely less, on the grid."""
    largest = values.max(initial=0.0)
    if largest == 0:
        return values
    # By the largest first: squares of tiny numbers would vanish from the norm.
    values = values / largest
    return np.floor(values * (_NORM / np.linalg.norm(values)) / _GRID) * _GRID


def _records(
    rows: Sequence[Sequence[int]], labels: Sequence[int], num_classes: int
) -> zip:
    if len(rows) != len(labels):
        raise InputError(
            f"Expected one label a record, received {len(rows)} rows and "
            f"{len(labels)} labels."
        )
    if any(not 0 <= label < num_classes for label in labels):
        raise InputError(
            f"Expected labels from 0 to {num_classes - 1}, received another."
        )
    return zip(rows, labels, strict=True)
