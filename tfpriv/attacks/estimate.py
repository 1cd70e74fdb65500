"""A measured number and how far it might be off."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

# Rounding alone makes as much of an interval.
_NO_WIDTH = 1e-9


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A share or an area under a curve, with a confidence interval.

    Attributes:
        value: float in [0, 1].
        low: float, the lower end.
        high: float, the upper end.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def to_json(self) -> dict[str, float]:
        """Returns value, low and high."""
        return dataclasses.asdict(self)

    @classmethod
    def combine(
        cls,
        values: Sequence[float],
        resampled: np.ndarray,
        *,
        confidence: float,
        rows: int | None = None,
    ) -> Estimate:
        """The mean over trainings, with an interval over trainings and test rows.

        The squared standard error is the sum of two. Of test rows: the variance of
        the mean over trainings when test rows are resampled. Of trainings: s^2 / k.
        The interval is Student's, with the degrees of freedom of Welch and
        Satterthwaite (those of the rows counted as infinite), cut to [0, 1]. What
        another set of training rows would have given is not in it.

        Where nothing varies, every row being right for instance, that is no proof
        that nothing can: the ends are then what so many rows without an exception
        leave open, (error / 2)^(1 / rows) of Clopper and Pearson (1934).

        Args:
            values: the statistic of each of k trainings, on all test rows.
            resampled: float of shape (resamples,), the mean over the trainings on
                each resampled set of test rows; NaN where it has none.
            confidence: probability of the interval, in (0, 1).
            rows: how many independent test rows there are, the fewest of a class
                where that matters; None leaves an interval without width as it is.

        Returns:
            The estimate.
        """
        from scipy import stats

        mean, k = float(np.mean(values)), len(values)
        by_rows = float(np.nanvar(resampled))
        trainings = float(np.var(values, ddof=1)) / k if k > 1 else 0.0
        variance = by_rows + trainings
        freedom = math.inf
        if trainings > 0:
            freedom = (k - 1) * (variance / trainings) ** 2
        quantile = float(stats.t.ppf((1 + confidence) / 2, freedom))
        half = quantile * math.sqrt(variance)
        if rows is not None and half < _NO_WIDTH:
            half = 1 - ((1 - confidence) / 2) ** (1 / rows)
        return cls(mean, max(mean - half, 0.0), min(mean + half, 1.0))
