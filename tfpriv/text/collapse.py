"""Whether a generator has begun to repeat itself: counting on token ids, no model."""

from __future__ import annotations

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer, rate
from tfpriv.text.vocabulary import PAD


def distinct_ids(ids: np.ndarray, n: int = 2) -> float:
    """Returns the share of n-grams of id rows that are distinct.

    As `metrics.distinct_n`, which is Li et al. 2016, section 5.1, on ids: n-grams with
    padding do not count.

    Args:
        ids: int of shape (rows, length), 0 behind the end of a text.
        n: the length of an n-gram.

    Returns:
        Distinct n-grams over all n-grams, in (0, 1]; 0 if there are none.

    >>> distinct_ids(np.array([[5, 6, 5, 6, 0], [5, 6, 0, 0, 0]]))
    0.5
    """
    integer(n=n)
    ids = np.asarray(ids)
    if ids.ndim != 2:
        raise InputError(
            f"Expected ids of shape (rows, length), received shape {ids.shape}."
        )
    count = ids.shape[1] - n + 1
    if count < 1 or not len(ids):
        return 0.0
    windows = np.lib.stride_tricks.sliding_window_view(ids, n, axis=1).reshape(-1, n)
    whole = windows[(windows != PAD).all(axis=1)]
    return len(np.unique(whole, axis=0)) / len(whole) if len(whole) else 0.0


def has_collapsed(
    ids: np.ndarray, before: np.ndarray, *, n: int = 2, least: float = 0.5
) -> bool:
    """Whether generated rows say much less than they did, mode collapse.

    They do if the share of distinct n-grams falls below `least` times what it was. The
    share falls with the number of rows, so that the first rows of the larger side
    count, as many as the other has. Both must come from the generator (before and
    after adversarial training, say): comparing them reads no record and costs nothing.

    Args:
        ids: int of shape (rows, length): what the generator writes now.
        before: what it wrote when it was good, as many rows at best.
        n: the length of an n-gram.
        least: share of the former diversity that has to be left, in (0, 1].

    Raises:
        InputError: no rows on one side, or an argument out of range.
    """
    rate(least=least)
    rows = min(len(ids), len(before))
    if not rows:
        raise InputError(
            f"Expected rows to compare, received {len(ids)} now and {len(before)} "
            "before."
        )
    now, then = (distinct_ids(side[:rows], n) for side in (ids, before))
    return now < least * then
