"""The classifiers that attack, made and trained afresh for every attack."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np


class Attacker(NamedTuple):
    """How one attacker is trained.

    Attributes:
        train: (x of shape (n, d), y int of shape (n,), seed) to a fitted scikit-learn
            classifier.
        seeded: whether the seed changes anything.
    """

    train: Any
    seeded: bool


# Inverse weights of the L2 penalty: noisy features need a strong penalty.
_PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_DEFAULT_PENALTY = 1e-2
_HELD_OUT = 0.2
_STOPPING = 0.1


def _logistic(x: np.ndarray, y: np.ndarray, class_weight: str | None) -> Any:
    """Logistic regression whose penalty is chosen on a fifth of the training rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.utils.class_weight import compute_sample_weight

    def fresh(c: float) -> Any:
        return LogisticRegression(
            C=c, max_iter=300, tol=1e-3, class_weight=class_weight, warm_start=True
        )

    order = np.random.default_rng(0).permutation(len(y))
    held, kept = np.split(order, [int(_HELD_OUT * len(y))])
    best = _DEFAULT_PENALTY
    if len(held) and len(np.unique(y[kept])) == len(np.unique(y)):
        weight = compute_sample_weight(class_weight, y)
        model, losses = fresh(_PENALTIES[0]), {}
        for c in _PENALTIES:
            model.set_params(C=c).fit(x[kept], y[kept])
            guess = model.predict_proba(x[held])
            losses[c] = log_loss(
                y[held], guess, sample_weight=weight[held], labels=model.classes_
            )
        best = min(losses, key=losses.__getitem__)
    return fresh(best).fit(x, y)


def _can_stop_early(y: np.ndarray) -> bool:
    """Whether a tenth of the rows, drawn by class, can hold every class."""
    counts = np.unique(y, return_counts=True)[1]
    return counts.min() >= 2 and int(_STOPPING * len(y)) >= len(counts)


def _mlp(x: np.ndarray, y: np.ndarray, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    early = _can_stop_early(y)
    return MLPClassifier(
        hidden_layer_sizes=(100,),
        early_stopping=early,
        validation_fraction=_STOPPING,
        max_iter=200 if early else 50,
        random_state=seed,
    ).fit(x, y)


def _boosting(x: np.ndarray, y: np.ndarray, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    early = _can_stop_early(y)
    return HistGradientBoostingClassifier(
        max_iter=100 if early else 30,
        max_leaf_nodes=15,
        max_features=0.3,
        early_stopping=early,
        validation_fraction=_STOPPING,
        random_state=seed,
    ).fit(x, y)


ATTACKERS = {
    "logistic_regression": Attacker(
        lambda x, y, seed: _logistic(x, y, None), seeded=False
    ),
    "balanced_logistic_regression": Attacker(
        lambda x, y, seed: _logistic(x, y, "balanced"), seeded=False
    ),
    "mlp": Attacker(_mlp, seeded=True),
    "gradient_boosting": Attacker(_boosting, seeded=True),
}


def probabilities(
    attacker: Attacker,
    train: tuple[np.ndarray, np.ndarray],
    test: np.ndarray,
    classes: int,
    seed: int,
) -> np.ndarray:
    """Trains an attacker and returns its probabilities, of shape (n, classes).

    A class that is not in the training rows has probability 0.
    """
    with warnings.catch_warnings():
        # An attacker that would have gone on learning is an attacker all the same.
        warnings.simplefilter("ignore")
        model = attacker.train(*train, seed)
        known = model.predict_proba(test)
    full = np.zeros((len(test), classes))
    full[:, model.classes_] = known
    return full
