"""Scores of classifiers on many resampled sets of test rows at once.

Everywhere n test rows have a class in 0..C-1, `weights` of shape (b, n) says how often
a row is in each of b sets, and the result has shape (b,). A class that is in none of
the rows of a set is left out of that set's means.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

# Rows times resamples that are held at a time.
_MOST_CELLS = 2_000_000


def resample(
    rng: np.random.Generator, groups: np.ndarray, count: int
) -> Iterator[np.ndarray]:
    """Yields weights of shape (at most `count` in all, n): groups drawn with return.

    Args:
        rng: the source of chance.
        groups: int of shape (n,), 0..g-1; rows of a group are drawn together.
        count: how many sets.
    """
    size = int(groups.max()) + 1
    shares = np.full(size, 1 / size)
    step = max(1, _MOST_CELLS // len(groups))
    for start in range(0, count, step):
        drawn = rng.multinomial(size, shares, min(step, count - start))
        yield drawn[:, groups].astype(np.float64)


def measure(
    guess: np.ndarray, truth: np.ndarray, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """AUC, macro-F1, balanced accuracy and accuracy of one training.

    Args:
        guess: probabilities of shape (n, K), K >= C; the classes from C on are in no
            test row, and guessing one is wrong.
        truth: int of shape (n,).
        weights: as above.
    """
    classes = int(truth.max()) + 1
    return {
        "auc": auc(guess[:, :classes], truth, weights),
        **shares(guess.argmax(axis=1), truth, classes, weights),
    }


def auc(scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The area under the ROC curve, mean over the classes, each against the rest.

    A pair of a row of the class and a row of another counts 1 where the first scores
    higher and 1/2 where both score the same (Mann and Whitney 1947).

    Args:
        scores: float of shape (n, C): how much a row looks like each class.
        truth: int of shape (n,).
        weights: as above.
    """
    areas = [
        _binary_auc(scores[:, c], truth == c, weights) for c in range(scores.shape[1])
    ]
    return _mean(np.stack(areas))


def _binary_auc(
    score: np.ndarray, positive: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    weights = weights[:, order]
    above = np.add.reduceat(weights * positive[order], starts, axis=1)
    other = np.add.reduceat(weights * ~positive[order], starts, axis=1)
    below = np.cumsum(other, axis=1) - other / 2
    pairs = above.sum(axis=1) * other.sum(axis=1)
    wins = np.einsum("bg,bg->b", above, below)
    return np.divide(wins, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)


def permuted_auc(
    rng: np.random.Generator,
    guesses: list[list[np.ndarray]],
    truth: np.ndarray,
    count: int,
) -> list[list[np.ndarray]]:
    """`auc` of every training under the same permutations of the truth.

    Args:
        rng: the source of chance.
        guesses: for each attacker, for each training, as in `measure`.
        truth: int of shape (n,).
        count: how many permutations.

    Returns:
        For each attacker, for each training, float of shape (count,).
    """
    from scipy.stats import rankdata

    sizes = np.bincount(truth)
    ranks = [
        [rankdata(guess[:, : len(sizes)], axis=0) for guess in trainings]
        for trainings in guesses
    ]
    areas = [[np.zeros(count) for _ in trainings] for trainings in guesses]
    step = max(1, _MOST_CELLS // len(truth))
    for start in range(0, count, step):
        here = slice(start, min(start + step, count))
        permuted = rng.permuted(np.tile(truth, (here.stop - start, 1)), axis=1)
        for c, size in enumerate(sizes):
            members = (permuted == c).astype(np.float64)
            pairs = size * (len(truth) - size)
            for attacker, trainings in enumerate(ranks):
                for run, rank in enumerate(trainings):
                    # Midranks: the sum over a class is its wins and the pairs in it.
                    wins = members @ rank[:, c] - size * (size + 1) / 2
                    areas[attacker][run][here] += wins / pairs / len(sizes)
    return areas


def shares(
    predicted: np.ndarray, truth: np.ndarray, classes: int, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """Macro-F1, balanced accuracy (mean recall) and accuracy.

    Args:
        predicted: int of shape (n,); classes that no test row has are C and above.
        truth: int of shape (n,).
        classes: C.
        weights: as above.
    """
    every = np.arange(classes)
    said = predicted[:, None] == every
    true = truth[:, None] == every
    hits, saids, trues = (
        weights @ part.astype(np.float64) for part in (said & true, said, true)
    )
    total = weights.sum(axis=1)
    with np.errstate(invalid="ignore"):
        recall = hits / trues
        # A class that is not in a set of rows has no F1 either.
        f1 = np.where(trues > 0, 2 * hits / (saids + trues), np.nan)
    return {
        "macro_f1": _mean(f1.T),
        "balanced_accuracy": _mean(recall.T),
        "accuracy": hits.sum(axis=1) / total,
    }


def _mean(values: np.ndarray) -> np.ndarray:
    """Mean over the first axis without NaN; NaN where there is nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(values, axis=0)
