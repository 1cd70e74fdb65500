"""The one place that binds OpenDP (0.16)."""

from __future__ import annotations

import functools
import math
from typing import Any

# OpenDP's own bound on a release, in zero-concentrated DP, may lie above that of the
# exact Gaussian by its upward rounding; the noise is widened by this much instead.
WIDENING = 1 + 1e-9


@functools.cache
def library() -> Any:
    """Returns `opendp.prelude`, imported when noise is first drawn."""
    import opendp.prelude as dp

    # OpenDP asks that use of parts without a finished proof review be declared.
    dp.enable_features("contrib")
    return dp


def granularity(sensitivity: float, size: int) -> int:
    """Returns k: noise on the grid 2^k is Gaussian to far below any accountant.

    A grid of 2^-1074, OpenDP's default, is exact and slower.
    """
    return math.floor(math.log2(sensitivity / (size + 1))) - 44


def check_map(rho: float, noise_multiplier: float) -> None:
    """Refuses a measurement that OpenDP itself prices above our event.

    Gaussian noise of multiplier sigma is 1 / (2 sigma^2)-zCDP (Bun & Steinke 2016,
    proposition 6).
    """
    if not rho <= 0.5 / noise_multiplier / noise_multiplier:
        raise RuntimeError(
            f"Expected OpenDP to bound the release by {0.5 / noise_multiplier**2}-zCDP,"
            f" received {rho}. Nothing was released."
        )
