"""What can be said with confidence of the rates of a membership attack.

Scores of members and of non-members are independent draws from two distributions, and
a higher score speaks for a member. Nothing here is tuned: thresholds stand at ranks
that are fixed before a score is seen, and every bound pays for all of them.
"""

from __future__ import annotations

import functools
import math

import numpy as np

# Slices are thin in the tail, where p-values of many looks lie, and even in the bulk.
_SMALLEST_TAIL, _BULK, _SLICES = 1e-9, 0.02, 150
_NEAR = 1e-12
_LARGEST_EPSILON, _PRECISION = 50.0, 1e-4


def bounds_at_ranks(
    members: np.ndarray, non_members: np.ndarray, *, error: float
) -> tuple[np.ndarray, np.ndarray]:
    """Lower bounds on true and upper bounds on false positive rates, all at once.

    The threshold of rank j is the j-th highest score of a non-member, j = 1, 2, 4, ...
    The share of non-members above it is at most Beta(j, n - j + 1), whatever their
    distribution (order statistics of uniform draws; ties only lower it). Members never
    choose it, so that their number above it is binomial (Clopper and Pearson 1934).
    All bounds hold together with probability 1 - `error`: each gets an equal part.

    Args:
        members: float of shape (m,).
        non_members: float of shape (n,).
        error: probability, in (0, 1), with which any of the bounds may be wrong.

    Returns:
        Two arrays of shape (number of ranks,): true positive rates from below, false
        positive rates from above.
    """
    from scipy.stats import beta

    n = len(non_members)
    ranks = preset_ranks(n)
    thresholds = np.sort(non_members)[n - ranks]
    hits = len(members) - np.searchsorted(np.sort(members), thresholds, side="right")
    part = error / (2 * len(ranks))
    false_positive = beta.ppf(1 - part, ranks, n - ranks + 1)
    return share_from_below(hits, len(members), error=part), false_positive


def preset_ranks(n: int) -> np.ndarray:
    """The ranks 1, 2, 4, ... up to n."""
    return 2 ** np.arange(int(n).bit_length())


def share_from_below(hits: np.ndarray, trials: int, *, error: float) -> np.ndarray:
    """The lower bound on a share of Clopper and Pearson, one-sided."""
    from scipy.stats import beta

    hits = np.asarray(hits)
    low = beta.ppf(error, np.maximum(hits, 1), trials - hits + 1)
    return np.where(hits > 0, low, 0.0)


def epsilon_from_below(
    members: np.ndarray, non_members: np.ndarray, *, error: float, delta: float
) -> float:
    """The largest epsilon that the scores refute, 0 where they refute none.

    (epsilon, delta)-differential privacy bounds both TPR <= e^epsilon FPR + delta and
    1 - FPR <= e^epsilon (1 - TPR) + delta (Kairouz, Oh and Viswanath 2015, theorem
    2.1); each is tested at every preset rank, with half of the error.
    """
    return max(
        _refuted(members, non_members, error=error / 2, delta=delta),
        _refuted(-non_members, -members, error=error / 2, delta=delta),
    )


def _refuted(
    members: np.ndarray, non_members: np.ndarray, *, error: float, delta: float
) -> float:
    """The largest epsilon at which some rank has more members above than can be.

    The threshold of rank j has a false positive rate of at most B, a Beta(j, n - j + 1)
    draw, and the number K of m members above it is binomial with at most
    min(1, e^epsilon B + delta). So P(K >= k) is at most the mean over B of a binomial
    tail: one exact p-value a rank, which must be at most its part of the error. The
    mean is a sum over slices of B, each at its upper end: never too small.
    """
    from scipy.stats import binom

    m, n = len(members), len(non_members)
    ranks, false_positive, weights = _slices(n)
    thresholds = np.sort(non_members)[n - ranks]
    hits = m - np.searchsorted(np.sort(members), thresholds, side="right")

    def refuted(epsilon: float) -> bool:
        most = np.minimum(math.exp(epsilon) * false_positive + delta, 1.0)
        p_values = binom.sf(hits[:, None] - 1, m, most) @ weights
        return bool((p_values <= error / len(ranks)).any())

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, _LARGEST_EPSILON
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


@functools.lru_cache(maxsize=16)
def _slices(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ranks, and slices of each rank's B: upper ends, a row a rank, and weights."""
    from scipy.stats import beta

    ranks = preset_ranks(n)
    tails = np.r_[
        0.0,
        np.geomspace(_SMALLEST_TAIL, _BULK, _SLICES),
        np.linspace(_BULK, 1.0, _SLICES)[1:],
    ]
    upper = beta.isf(tails[:-1], ranks[:, None], n - ranks[:, None] + 1)
    return ranks, upper, np.diff(tails)


def advantage(
    members: np.ndarray, non_members: np.ndarray, *, error: float
) -> tuple[float, float, float]:
    """The largest TPR - FPR over all thresholds, from below and from above.

    From below by the bounds at preset ranks; from above by the two empirical
    distributions' uniform bands (Massart 1990), since the supremum of a sample is too
    high. Each end gets half of the error.
    """
    false_positive, true_positive = roc_points(members, non_members)
    value = float(np.max(true_positive - false_positive))
    found = 0.0
    for low, high in (
        bounds_at_ranks(members, non_members, error=error / 4),
        bounds_at_ranks(-non_members, -members, error=error / 4),
    ):
        found = max(found, float(np.max(low - high)))
    bands = sum(
        math.sqrt(math.log(4 / error) / (2 * size))
        for size in (len(members), len(non_members))
    )
    return value, min(found, value), min(value + bands, 1.0)


def true_positive_rate(
    members: np.ndarray, non_members: np.ndarray, rate: float, *, error: float
) -> tuple[float, float, float]:
    """The true positive rate at a false positive rate, from below and from above.

    The value is the share of members above the lowest threshold that at most a share
    `rate` of the non-members pass. The lower end looks at a threshold whose unknown
    false positive rate is at most `rate`, the upper end at one where it is at least
    that, each with probability 1 - `error` / 4 (order statistics again); where too few
    non-members are there for such a threshold, the end is 0 or 1.
    """
    from scipy.stats import beta

    n = len(non_members)
    descending, ordered = np.sort(non_members)[::-1], np.sort(members)

    def above(rank: int, side: str) -> int:
        threshold = descending[rank - 1]
        return len(ordered) - int(np.searchsorted(ordered, threshold, side=side))

    value = above(min(math.floor(rate * n + 1e-9) + 1, n), "right") / len(members)
    ranks = np.arange(1, n + 1)
    low, high = 0.0, 1.0
    strict = ranks[beta.ppf(1 - error / 4, ranks, n - ranks + 1) <= rate]
    if len(strict):
        hits = above(int(strict[-1]), "right")
        low = float(share_from_below(hits, len(members), error=error / 4))
    loose = ranks[beta.ppf(error / 4, ranks, n - ranks + 1) >= rate]
    if len(loose):
        misses = len(members) - above(int(loose[0]), "left")
        high = 1 - float(share_from_below(misses, len(members), error=error / 4))
    return value, min(low, value), max(high, value)


def area(
    members: np.ndarray, non_members: np.ndarray, *, error: float
) -> tuple[float, float, float]:
    """The area under the ROC curve, from below and from above.

    The wider end of two intervals: the normal one with the variance of DeLong, DeLong
    and Clarke-Pearson (1988), which knows the scores but is empty where the two groups
    are apart, and the score interval of Newcombe (2006, method 5), which assumes a
    shape of the scores but is never empty.
    """
    from scipy.stats import norm

    m, n = len(members), len(non_members)
    wins = _placements(members, non_members)
    losses = _placements(non_members, members)
    value = float(np.mean(wins))
    variance = np.var(wins, ddof=1) / m + np.var(losses, ddof=1) / n
    quantile = float(norm.ppf(1 - error / 2))
    half = quantile * math.sqrt(variance)
    low, high = _newcombe(value, m, n, quantile)
    return value, max(min(value - half, low), 0.0), min(max(value + half, high), 1.0)


def _placements(scores: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each score, the share of the others below it; equal ones count a half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, side="left")
    not_above = np.searchsorted(ordered, scores, side="right")
    return (below + not_above) / (2 * len(others))


def _newcombe(value: float, m: int, n: int, quantile: float) -> tuple[float, float]:
    """Where |value - area| is `quantile` deviations, under exponential scores."""
    from scipy.optimize import brentq

    mean_rest = (m + n) / 2 - 1

    def distance(area: float) -> float:
        shape = (1 - area) / (2 - area) + area / (1 + area)
        variance = area * (1 - area) * (1 + mean_rest * shape) / (m * n)
        return abs(value - area) - quantile * math.sqrt(variance)

    # At 0 and 1 nothing varies, so that a value there lies on its own bound as well:
    # the bound that is looked for is the other one.
    low = brentq(distance, 0.0, value - _NEAR * (value == 1)) if value else 0.0
    high = brentq(distance, value + _NEAR * (value == 0), 1.0) if value < 1 else 1.0
    return low, high


def roc_points(
    members: np.ndarray, non_members: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates at every threshold, from (0, 0) to (1, 1)."""
    thresholds = np.unique(np.concatenate([members, non_members]))[::-1]
    rates = []
    for scores in (non_members, members):
        below = np.searchsorted(np.sort(scores), thresholds, side="left")
        rates.append(np.r_[0.0, 1 - below / len(scores)])
    return rates[0], rates[1]


def thin_curve(
    false_positive: np.ndarray, true_positive: np.ndarray, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """At most `most` of the points, even on a linear and on a logarithmic axis."""
    # Of points above one another only the highest and the origin say something.
    last = np.r_[false_positive[1:] != false_positive[:-1], True]
    last[0] = True
    false_positive, true_positive = false_positive[last], true_positive[last]
    count = len(false_positive)
    if count > most:
        half = most // 2
        even = np.linspace(0, count - 1, half)
        growing = np.geomspace(1, count - 1, half)
        kept = np.unique(np.r_[even, growing].astype(int))
        false_positive, true_positive = false_positive[kept], true_positive[kept]
    return false_positive, true_positive
