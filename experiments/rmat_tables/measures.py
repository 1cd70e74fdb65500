"""What is measured of released representations; and of labels told at random."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from experiments.rmat_tables.settings import Settings
from tfpriv._errors import InputError
from tfpriv.mechanisms import RandomizedResponse

Json = dict[str, Any]
_RESAMPLES = 1000
_NORMAL_95 = 1.959964


def confusion(truth: np.ndarray, guess: np.ndarray, classes: int) -> np.ndarray:
    """Returns counts (true class, guessed class)."""
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (truth, guess), 1)
    return counts


def macro_f1(counts: np.ndarray) -> np.ndarray:
    """Macro-F1 of counts (..., true class, guessed class).

    The mean is over the classes that have a true row; a class never guessed has 0.
    """
    counts = np.asarray(counts, float)
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    true, guessed = counts.sum(-1), counts.sum(-2)
    scores = 2 * hits / np.maximum(true + guessed, 1e-300)
    there = true > 0
    return (scores * there).sum(-1) / np.maximum(there.sum(-1), 1)


def task_score(truth: np.ndarray, guess: np.ndarray, classes: int) -> Json:
    """Macro-F1 with half its 95 % interval over test rows, drawn with return."""
    counts = confusion(truth, guess, classes)
    resampled = np.random.default_rng(0).multinomial(
        len(truth), counts.ravel() / len(truth), size=_RESAMPLES
    )
    spread = macro_f1(resampled.reshape(-1, classes, classes)).std(ddof=1)
    return {
        "macro_f1": float(macro_f1(counts)),
        "half": float(_NORMAL_95 * spread),
        "accuracy": float(np.trace(counts) / len(truth)),
        "confusion": counts.tolist(),
    }


def floors(train: np.ndarray, test: np.ndarray, classes: int) -> Json:
    """What can be scored blindly: the best constant, a guess from training shares."""
    p = np.bincount(test, minlength=classes) / len(test)
    q = np.bincount(train, minlength=classes) / len(train)
    constant = [macro_f1(np.outer(p, row)) for row in np.eye(classes)]
    return {"constant": float(max(constant)), "prior": float(macro_f1(np.outer(p, q)))}


def read_afresh(
    released: np.ndarray, labels: np.ndarray, test: np.ndarray
) -> np.ndarray:
    """Guesses of a logistic regression trained on released training rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    if len(np.unique(labels)) == 1:
        return np.full(len(test), labels[0])
    scaler = StandardScaler().fit(released)
    with warnings.catch_warnings():
        # One that would have gone on learning reads all the same.
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=0.01, max_iter=300, tol=1e-3)
        model.fit(scaler.transform(released), labels)
    return model.predict(scaler.transform(test))


def attack(
    settings: Settings,
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
) -> Json:
    """Fresh attackers on (released, private label); or why there can be none."""
    from tfpriv.attacks import AttributeInferenceAttack

    attacker = AttributeInferenceAttack(
        attackers=settings.attackers,
        seeds=settings.attack_seeds,
        resamples=settings.attack_resamples,
    )
    try:
        return attacker.fit_score(*train, *test).to_json()
    except InputError as error:
        # Of the format examples, five rows a file, some have one gender alone.
        return {"refused": str(error)}


# --- Labels through randomised response --------------------------------------


def response_matrix(classes: int, epsilon: float) -> np.ndarray:
    """Returns P(released | told), (classes, classes), of k-ary randomised response."""
    mechanism = RandomizedResponse(range(classes), epsilon)
    matrix = np.full((classes, classes), mechanism.change_probability)
    np.fill_diagonal(matrix, mechanism.keep_probability)
    return matrix


def label_by_response(counts: np.ndarray, epsilon: float) -> Json:
    """Macro-F1 of predictions that went through randomised response.

    Args:
        counts: int (true class, predicted class), the test rows without noise.
        epsilon: of one release of one label.

    Returns:
        The mean over many simulated releases, and half the 95 % interval over test
        rows and noise.
    """
    rng = np.random.default_rng(0)
    counts = np.asarray(counts)
    size = (_RESAMPLES, *counts.shape)
    matrix = response_matrix(counts.shape[1], epsilon)

    def told(drawn: np.ndarray) -> np.ndarray:
        return macro_f1(rng.multinomial(drawn, matrix, size=size).sum(axis=-2))

    rows = rng.multinomial(
        counts.sum(), counts.ravel() / counts.sum(), size=_RESAMPLES
    ).reshape(size)
    return {
        "macro_f1": float(told(counts).mean()),
        "half": float(_NORMAL_95 * told(rows).std(ddof=1)),
    }


def label_auc(train: np.ndarray, test: np.ndarray, epsilon: float) -> Json:
    """AUC of the best reader of a private label from a released prediction.

    Args:
        train: int (private class, predicted class) of the training rows.
        test: the same of the test rows.
        epsilon: of one release of one label.

    Returns:
        The AUC, mean over the classes that test rows have, each against the rest, in
        expectation over the noise; half its 95 % interval over test rows.
    """
    test = np.asarray(test)
    matrix = response_matrix(test.shape[1], epsilon)
    seen = np.asarray(train) @ matrix
    scores = seen / np.maximum(seen.sum(0), 1e-300)
    rows = np.random.default_rng(0).multinomial(
        test.sum(), test.ravel() / test.sum(), size=_RESAMPLES
    )
    values = _macro_auc(rows.reshape(-1, *test.shape) @ matrix, scores)
    return {
        "auc": float(_macro_auc(test @ matrix, scores)),
        "half": float(_NORMAL_95 * np.std(values, ddof=1)),
    }


def _macro_auc(released: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """AUC of counts (..., private class, released label) by scores of that shape."""
    every = released.sum(-2)
    total, classes = 0.0, 0.0
    for place, score in enumerate(scores):
        inside = released[..., place, :]
        outside = every - inside
        wins = (score[:, None] > score) + 0.5 * (score[:, None] == score)
        pairs = inside.sum(-1) * outside.sum(-1)
        won = ((inside @ wins) * outside).sum(-1)
        total = total + won / np.where(pairs > 0, pairs, 1)
        classes = classes + (pairs > 0)
    return np.where(classes > 0, total / np.maximum(classes, 1), 0.5)


def second_from_label(train: np.ndarray, test: np.ndarray, epsilon: float) -> Json:
    """Macro-F1 of a second task read from a label that went through the response.

    Whoever reads knows the commonest second class of each predicted label, from
    training rows without noise.

    Args:
        train, test: int (second class, predicted label).
        epsilon: of one release of one label.
    """
    best = np.asarray(train).argmax(0)
    test = np.asarray(test)
    rng = np.random.default_rng(0)
    matrix = response_matrix(test.shape[1], epsilon)
    size = (_RESAMPLES, *test.shape)
    released = rng.multinomial(test, matrix, size=size).sum(axis=-2)
    guessed = np.zeros((_RESAMPLES, len(test), len(test)))
    for label, second in enumerate(best):
        guessed[:, :, second] += released[:, :, label]
    return {"macro_f1": float(macro_f1(guessed).mean())}
