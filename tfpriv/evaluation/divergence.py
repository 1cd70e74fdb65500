"""How far two sets of vectors are apart, as one number between 0 and 1."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer, positive, rate
from tfpriv.attacks import Estimate

# Pillutla et al. 2021, section 3 and appendix: the scale of the divergences, how many
# mixtures draw the frontier, how much variance stays, and rows a cluster.
_SCALE = 5.0
_MIXTURES = 25
_VARIANCE = 0.9
_ROWS_A_CLUSTER = 10
_MOST_CLUSTERS = 500
_FEWEST_ROWS = 20


@dataclasses.dataclass(frozen=True)
class Divergence:
    """A frontier area and what it rests on.

    Attributes:
        area: 1 if the two sets fall into the clusters alike, towards 0 if they share
            none. The interval is over rows, the clusters being what they are.
        clusters: into which the vectors were sorted.
        rows: of each set.
        confidence: probability of the interval.
    """

    area: Estimate
    clusters: int
    rows: int
    confidence: float

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON."""
        return dataclasses.asdict(self)


def frontier_area(p: np.ndarray, q: np.ndarray, *, scale: float = _SCALE) -> float:
    """Returns the area under the divergence frontier of two distributions.

    For mixtures R = w P + (1 - w) Q the curve runs through
    (exp(-c KL(Q | R)), exp(-c KL(P | R))), Pillutla et al. 2021, equations 1 and 2:
    the error of one kind against that of the other. It ends at (0, 1) and (1, 0).

    Args:
        p: probabilities of shape (k,).
        q: probabilities of shape (k,).
        scale: c.

    Returns:
        1 for equal distributions, towards 0 for disjoint ones.
    """
    from sklearn.metrics import auc

    positive(scale=scale)
    weights = np.linspace(1e-6, 1 - 1e-6, _MIXTURES)
    mixed = weights[:, None] * p + (1 - weights[:, None]) * q
    x = np.exp(-scale * _relative_entropy(q, mixed))
    y = np.exp(-scale * _relative_entropy(p, mixed))
    # As Q takes over, x rises and y falls.
    order = np.argsort(x, kind="stable")
    x = np.concatenate([[0.0], x[order], [1.0]])
    y = np.concatenate([[1.0], y[order], [0.0]])
    return float(auc(x, y))


def mauve(
    first: np.ndarray,
    second: np.ndarray,
    *,
    clusters: int | None = None,
    resamples: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
) -> Divergence:
    """Measures MAUVE, on given vectors (Pillutla et al. 2021, arXiv:2102.01454).

    Vectors of length 1 are reduced to the principal components that keep nine tenths
    of the variance and sorted by k-means, both sets together; the frontier area is
    that of the two histograms, half a row added to each cluster so that none is
    empty (Krichevsky and Trofimov 1981). The area falls with fewer rows and rises
    with fewer clusters: compare only areas of the same numbers of both.

    The interval is the area and its quantile of the standard normal times the
    standard deviation over resampled rows, cut to [0, 1]; resampled areas themselves
    are too low, since resampling adds chance to chance.

    Args:
        first: float of shape (n, d), no row of zeros.
        second: float of shape (m, d). Of the larger set the first min(n, m) rows
            count.
        clusters: how many; None takes one for ten rows, at most 500.
        resamples: bootstrap samples.
        confidence: of the interval, in (0, 1).
        seed: of k-means and resampling.

    Raises:
        InputError: fewer than 20 rows in one set.
    """
    from scipy import stats
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    integer(2, resamples=resamples)
    rate(confidence=confidence)
    rows = min(len(first), len(second))
    if rows < _FEWEST_ROWS:
        raise InputError(
            f"Expected at least {_FEWEST_ROWS} texts on each side to compare, received "
            f"{rows}."
        )
    if clusters is None:
        clusters = min(max(2, rows // _ROWS_A_CLUSTER), _MOST_CLUSTERS)
    integer(2, clusters=clusters)
    both = np.concatenate([first[:rows], second[:rows]]).astype(np.float64)
    both /= np.maximum(np.linalg.norm(both, axis=1, keepdims=True), 1e-12)
    # The clusters that k-means is asked for may be more than there are vectors.
    distinct = len(np.unique(both, axis=0))
    clusters = min(clusters, distinct)
    labels = np.zeros(len(both), np.int64)
    if distinct > 1:
        reduced = PCA(n_components=_VARIANCE, svd_solver="full").fit_transform(both)
        means = KMeans(clusters, n_init=3, random_state=seed)
        labels = means.fit_predict(reduced)
    halves = labels[:rows], labels[rows:]
    draw = np.random.default_rng(seed)
    areas = [
        _histogram_area(*(draw.choice(half, rows) for half in halves), clusters)
        for _ in range(resamples)
    ]
    value = _histogram_area(*halves, clusters)
    half = stats.norm.ppf((1 + confidence) / 2) * float(np.std(areas, ddof=1))
    area = Estimate(value, max(value - half, 0.0), min(value + half, 1.0))
    return Divergence(area, clusters, rows, confidence)


def _histogram_area(first: np.ndarray, second: np.ndarray, clusters: int) -> float:
    counts = [np.bincount(half, minlength=clusters) + 0.5 for half in (first, second)]
    return frontier_area(*(count / count.sum() for count in counts))


def _relative_entropy(p: np.ndarray, mixtures: np.ndarray) -> np.ndarray:
    """Returns KL(p | each mixture) in nats, float64 of shape (mixtures,)."""
    some = p > 0
    found = (p[some] * np.log(p[some] / mixtures[:, some])).sum(axis=1)
    return np.maximum(found, 0.0)  # of equal ones, rounding may be below
