"""The Renyi divergence of Gaussian noise on a Poisson sample, a series at a time.

`dp_accounting` has the same figures from loops in Python, term by term, which take
more time than all the rest of a price; `rdp.py` composes and converts with it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

# Terms below e^-30 are left out, of a sum of at least 1.
_SMALLEST_LOG_TERM = -30.0
_FIRST_TERMS = 128
_MOST_TERMS = 1 << 18
# A sum that is smaller than its terms by more has too few digits left.
_MOST_LOG_CANCELLED = 12.0
# What is left out of two alternating series, and their rounding, are less.
_LEFT_OUT = 2e-13
# Beside that.
_MANY_DIGITS = 1e-6


def sampled_gaussian_curve(
    sampling_rate: float, noise_multiplier: float, orders: Sequence[float]
) -> np.ndarray:
    """Returns the Renyi divergence of one release at every order.

    For adding or removing one record, whichever is larger (Mironov, Talwar & Zhang
    2019, arXiv:1908.10530, theorems 4 and 5).

    Args:
        sampling_rate: q, strictly between 0 and 1.
        noise_multiplier: sigma.
        orders: above 1.

    Returns:
        float64 array (len(orders),), never below the truth but for rounding in its
        last digits; NaN where it leaves double precision.
    """
    with np.errstate(all="ignore"):
        moments = [
            (_whole if float(order).is_integer() else _between)(
                sampling_rate, noise_multiplier, float(order)
            )
            for order in orders
        ]
    return np.array(moments) / (np.asarray(orders, dtype=np.float64) - 1)


@functools.lru_cache(maxsize=256)
def _whole(q: float, sigma: float, order: float) -> float:
    """Returns ln A of a whole order: section 3.3, the binomial theorem.

    Less the sum of its weights, which is 1: so all terms are positive, and A - 1 keeps
    its digits however small it is.
    """
    i = np.arange(2, order + 1)
    shift = (i * i - i) / 2 / sigma / sigma
    above_one = _log_sum(
        _log_binomial(order, i)[0]
        + i * math.log(q)
        + (order - i) * math.log1p(-q)
        + np.where(shift < 37, np.log(np.expm1(np.minimum(shift, 37))), shift)
    )
    if above_one > 0:
        return float(np.logaddexp(0, above_one))
    return math.log1p(math.exp(above_one))


def _between(q: float, sigma: float, order: float) -> float:
    """Bounds ln A of an order between two whole ones.

    ln A is convex in the order and 0 at 1, so the chord is a bound: the better one
    where A - 1 is next to nothing, and its digits are lost beside the 1.
    """
    found = _fractional(q, sigma, order) + _LEFT_OUT
    if found > _MANY_DIGITS:
        return found
    below = math.floor(order)
    share = order - below
    chord = share * _whole(q, sigma, below + 1.0)
    if below > 1:
        chord += (1 - share) * _whole(q, sigma, float(below))
    return min(found, chord) if found >= 0 else chord


def _fractional(q: float, sigma: float, order: float) -> float:
    """Returns ln A of any order: section 3.3, two series that meet at z0."""
    z0 = sigma * sigma * (math.log1p(-q) - math.log(q)) + 0.5
    count = _FIRST_TERMS + math.ceil(order)
    while count <= _MOST_TERMS:
        i = np.arange(count, dtype=np.float64)
        log_size, sign = _log_binomial(order, i)
        parts = [
            log_size
            + up * math.log(q)
            + down * math.log1p(-q)
            + (up * up - up) / 2 / sigma / sigma
            + _log_normal_cdf(side * (z0 - up) / sigma)
            for up, down, side in ((i, order - i, 1), (order - i, i, -1))
        ]
        if max(part[-1] for part in parts) < _SMALLEST_LOG_TERM:
            return _log_sum(np.concatenate(parts), np.concatenate([sign, sign]))
        count *= 4
    return math.nan


def _log_binomial(order: float, i: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns ln |C(order, i)| and its sign."""
    from scipy import special

    rest = order - i + 1
    size = special.gammaln(order + 1) - special.gammaln(i + 1) - special.gammaln(rest)
    return size, special.gammasgn(rest)


def _log_normal_cdf(x: np.ndarray) -> np.ndarray:
    from scipy import special

    return special.log_ndtr(x)


def _log_sum(logs: np.ndarray, signs: np.ndarray | float = 1.0) -> float:
    """Returns ln of a sum of signed exponentials; NaN if they cancel each other."""
    largest = float(np.max(logs))
    total = float(np.sum(signs * np.exp(logs - largest)))
    if not total > math.exp(-_MOST_LOG_CANCELLED):
        return math.nan
    return largest + math.log(total)
