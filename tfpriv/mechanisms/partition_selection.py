"""Bins whose names are private: only those that many records share are named."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer, positive, probability
from tfpriv.accounting import Event, GaussianThreshold
from tfpriv.mechanisms import _opendp

_SMALLEST_DELTA = 1e-12


class SelectedPartitions(NamedTuple):
    """What a selection released.

    Attributes:
        names: the selected names, in alphabetical order.
        counts: float64 array (len(names),), their noisy counts.
    """

    names: tuple[str, ...]
    counts: np.ndarray


def select_partitions(
    counts: Mapping[str, int],
    noise_multiplier: float,
    delta: float,
    *,
    max_contributions: int = 1,
) -> tuple[SelectedPartitions, Event]:
    """Names the partitions whose noisy count passes a threshold.

    Guarantee: let every record add 1 to at most `max_contributions` of the counts,
    which hold no name that no record brought in. Then the release costs what
    Gaussian noise of `noise_multiplier` costs, and `delta` on top: the probability
    that a name which one record alone brings in passes the threshold (Rogers 2023,
    arXiv:2309.09170). Noise is OpenDP's, fresh for every name and call.

    Example:
        >>> counts = {"spam": 900, "ham": 1000, "a name nobody else has": 1}
        >>> (names, noisy), event = select_partitions(counts, 5.0, 1e-6)
        >>> names
        ('ham', 'spam')
        >>> event
        GaussianThreshold(noise_multiplier=5.0, delta=1e-06, max_contributions=1)

    Args:
        counts: name -> number of records that have it; private, both.
        noise_multiplier: standard deviation over sqrt(max_contributions).
        delta: at least 1e-12, below 1; a part of the whole release's delta.
        max_contributions: most names that one record may count towards.

    Returns:
        (the selected names and their noisy counts, the event to pay for).

    Raises:
        InputError: a bad parameter, or counts that are not whole numbers of at
            least 1 under texts. The message holds neither name nor count.
    """
    threshold = selection_threshold(
        noise_multiplier, delta, max_contributions=max_contributions
    )
    event = GaussianThreshold(noise_multiplier, delta, max_contributions)
    names = list(counts)
    values = [counts[name] for name in names]
    if not all(isinstance(name, str) for name in names):
        raise InputError("Expected texts as names of partitions, received others.")
    try:
        for value in values:
            integer(count=value)
    except InputError:
        raise InputError(
            "Expected counts that are whole numbers of at least 1, received others. "
            "Leave out names without records."
        ) from None
    if not names:
        return SelectedPartitions((), np.zeros(0)), event

    dp = _opendp.library()
    sensitivity = math.sqrt(max_contributions)
    measurement = dp.m.make_gaussian_threshold(
        dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=float, nan=False)),
        dp.l02inf_distance(dp.absolute_distance(T=float)),
        scale=noise_multiplier * sensitivity * _opendp.WIDENING,
        threshold=threshold,
        k=_opendp.granularity(1.0, max_contributions),
    )
    rho, priced_delta = measurement.map((max_contributions, sensitivity, 1.0))
    _opendp.check_map(rho, noise_multiplier)
    if not priced_delta <= delta:
        raise RuntimeError(
            f"Expected OpenDP to bound the selection by delta={delta}, received "
            f"{priced_delta}. Nothing was released."
        )
    noisy = measurement(dict(zip(names, map(float, values), strict=True)))
    # Sorted: the order in which OpenDP or the caller keeps names tells something.
    chosen = tuple(sorted(noisy))
    return SelectedPartitions(chosen, np.array([noisy[name] for name in chosen])), event


def selection_threshold(
    noise_multiplier: float, delta: float, *, max_contributions: int = 1
) -> float:
    """Returns the noisy count that a partition must pass to be named.

    One record brings in at most k = max_contributions new names, each with a true
    count of 1; the union bound gives each of them delta / k.

    Args:
        noise_multiplier: standard deviation over sqrt(max_contributions).
        delta: at least 1e-12, below 1.
        max_contributions: most names that one record may count towards.

    Returns:
        1 + s * z, where s is the standard deviation of the noise and a standard
        normal passes z with probability delta / k, less a margin of .1 %.
    """
    from scipy import stats

    positive(noise_multiplier=noise_multiplier)
    probability(delta=delta)
    if delta < _SMALLEST_DELTA:
        raise InputError(
            f"Expected delta >= {_SMALLEST_DELTA:g} for a partition selection, "
            f"received delta={delta}."
        )
    integer(max_contributions=max_contributions)
    deviation = noise_multiplier * math.sqrt(max_contributions) * _opendp.WIDENING
    # OpenDP's own delta carries an absolute rounding error of about 1e-16.
    tail = float(stats.norm.isf(0.999 * delta / max_contributions))
    return 1 + deviation * tail
