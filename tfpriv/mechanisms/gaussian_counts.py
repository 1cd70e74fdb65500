"""Noisy counts over a public list of bins."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import positive
from tfpriv.accounting import Event, Gaussian
from tfpriv.mechanisms import _opendp


@dataclasses.dataclass(frozen=True)
class GaussianCounts:
    """Adds Gaussian noise to sums of bounded contributions.

    Guarantee: let adding or removing one record change the true counts by at most
    `l2_sensitivity` in L2 norm. Then `release` is the Gaussian mechanism with
    standard deviation `noise_multiplier * l2_sensitivity` on every coordinate, whose
    price is `event()`. That the counts keep to the sensitivity is the caller's part:
    a record that adds 1 to at most k bins has sensitivity sqrt(k); to at most k bins
    of one histogram and one bin of another, sqrt(k + 1).

    Every call draws fresh noise for every coordinate from the operating system's
    entropy, safe against attacks on floating-point noise (OpenDP). There is no seed.
    Each call is a release and has to be paid for.

    Example:
        >>> import numpy as np
        >>> counts = GaussianCounts(l2_sensitivity=10**0.5, noise_multiplier=4.0)
        >>> counts.release(np.array([120, 3, 0])).shape
        (3,)
        >>> counts.event()
        Gaussian(noise_multiplier=4.0, count=1)

    Attributes:
        l2_sensitivity: float. Most that one record changes the counts, in L2 norm.
        noise_multiplier: float. Standard deviation over `l2_sensitivity`.
    """

    l2_sensitivity: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        positive(
            l2_sensitivity=self.l2_sensitivity, noise_multiplier=self.noise_multiplier
        )
        positive(standard_deviation=self.standard_deviation)

    @property
    def standard_deviation(self) -> float:
        """Standard deviation of the noise on one count."""
        return float(self.noise_multiplier) * float(self.l2_sensitivity)

    def event(self) -> Event:
        """Returns the event of one release."""
        return Gaussian(self.noise_multiplier)

    def release(self, counts: np.ndarray) -> np.ndarray:
        """Returns the counts with noise.

        Args:
            counts: whole or real numbers of any shape, the true and private counts.
                The shape has to be public: one entry for every bin there might be,
                zeros included.

        Returns:
            float64 array of the same shape; may be negative and is not rounded.

        Raises:
            InputError: counts that are not finite numbers, or none. The message
                holds no count.
        """
        values = np.asarray(counts)
        if values.dtype.kind not in "iuf" or values.size == 0:
            raise InputError(
                f"Expected an array of numbers with at least one entry, received dtype "
                f"{values.dtype} and shape {values.shape}."
            )
        values = values.astype(np.float64)
        if not np.all(np.abs(values) < 2.0**52):
            raise InputError(
                "Expected finite counts below 2**52, received one that is not."
            )
        noisy = self._measurement(values.size)(values.ravel().tolist())
        return np.array(noisy, np.float64).reshape(values.shape)

    def _measurement(self, size: int) -> Any:
        dp = _opendp.library()
        sensitivity = float(self.l2_sensitivity)
        measurement = dp.m.make_gaussian(
            dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size),
            dp.l2_distance(T=float),
            scale=self.standard_deviation * _opendp.WIDENING,
            k=_opendp.granularity(sensitivity, size),
        )
        _opendp.check_map(measurement.map(sensitivity), float(self.noise_multiplier))
        return measurement
