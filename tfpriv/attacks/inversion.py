"""Words of a text, recovered from its released representation."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer, one_of, probability
from tfpriv.attacks.inversion_result import InversionResult, InversionScore, WordGuesses
from tfpriv.text.tokenizer import KINDS, MARKS, Tokenizer

_PENALTIES = (1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
_HELD_OUT = 0.2
_EPOCHS, _PATIENCE = 100, 5
# Rows times words that are compared at a time.
_MOST_CELLS = 20_000_000


@dataclasses.dataclass(frozen=True)
class InversionAttack:
    """Guesses which words a text has from its representation, as it was released.

    The attacker has a reference corpus: texts of the same kind and what the released
    model makes of them, noise included. Attackers:

    - "nearest_neighbour": words of the `neighbours` reference texts whose
      representations lie nearest (Euclidean, on features scaled to variance 1 on the
      reference corpus), by how many of them have the word;
    - "linear": ridge regression to the bag of words, penalty chosen on a fifth of the
      reference corpus;
    - "mlp": one hidden layer, one sigmoid a word, early stopping.

    All of them, and a guess that is blind to the representation (the words that most
    reference texts have), rank the same words: the `words` that most reference texts
    have. Each names as many as a reference text has on average. Scored are the F1 of
    the named words and the precision of the first `k`, mean over test texts; a test
    text that has none of the words counts 0.

    Frequent words are guessed right without looking. What tells a leak is the
    difference from the blind guess, text by text: its interval comes from resampled
    test texts and pays for the attackers tried.

    Attributes:
        attackers: names of attackers, as above.
        words: int. Words that are guessed among.
        k: int. Of the precision.
        neighbours: int.
        confidence: float. Probability of the intervals.
        resamples: int.
        seed: int. Of the networks and the resampling.

    Raises:
        InputError: no or unknown attackers, or a number out of range.

    References:
        Song and Raghunathan 2020, "Information Leakage in Embedding Models",
        arXiv:2004.00053, section 4 (inversion to sets of words).
    """

    attackers: Sequence[str] = ("nearest_neighbour", "linear", "mlp")
    words: int = 1000
    k: int = 5
    neighbours: int = 5
    confidence: float = 0.95
    resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.attackers, str) or not self.attackers:
            raise InputError(
                f"Expected a list of attackers, received {self.attackers!r}."
            )
        object.__setattr__(self, "attackers", tuple(self.attackers))
        for name in self.attackers:
            one_of(_ATTACKERS, attackers=name)
        integer(words=self.words, k=self.k, neighbours=self.neighbours)
        integer(100, resamples=self.resamples)
        integer(0, seed=self.seed)
        probability(confidence=self.confidence)

    def fit_score(
        self,
        reference_representations: Any,
        reference_texts: Sequence[str],
        test_representations: Any,
        test_texts: Sequence[str],
    ) -> InversionResult:
        """Trains all attackers on the reference corpus and scores them on test texts.

        Args:
            reference_representations: finite numbers of shape (n, d).
            reference_texts: n texts.
            test_representations: finite numbers of shape (m, d).
            test_texts: m texts, others than the reference's.

        Returns:
            The result. It comes from private text and is internal; it names no word.

        Raises:
            InputError: shapes that do not fit, a value that is not finite, too few
                texts, or reference texts without a word.
        """
        x = _features("reference", reference_representations, reference_texts)
        x_test = _features("test", test_representations, test_texts)
        if x.shape[1] != x_test.shape[1]:
            raise InputError(
                "Expected representations of the same width in reference and test, "
                f"received {x.shape[1]} and {x_test.shape[1]}."
            )
        vocabulary = _frequent_words(reference_texts, self.words)
        y, truth = (_bags(t, vocabulary) for t in (reference_texts, test_texts))
        if not y.any():
            raise InputError("Expected reference texts with words, received none.")
        scale = x.std(axis=0)
        scale[scale == 0] = 1.0
        x, x_test = (x - x.mean(axis=0)) / scale, (x_test - x.mean(axis=0)) / scale
        named = max(1, round(float(y.sum(axis=1).mean())))
        blind = np.broadcast_to(y.mean(axis=0), truth.shape)
        rng = np.random.default_rng(self.seed)
        floor = self._guesses(blind, truth, named)
        weights = rng.multinomial(
            len(truth), np.full(len(truth), 1 / len(truth)), self.resamples
        ) / len(truth)
        scores = []
        for name in self.attackers:
            guess = _ATTACKERS[name](self, x, y, x_test)
            scores.append(
                InversionScore.compare(
                    name,
                    self._guesses(guess, truth, named),
                    floor,
                    weights,
                    confidence=self.confidence,
                    attackers_tried=len(self.attackers),
                )
            )
        return InversionResult(
            attackers=tuple(scores),
            blind=InversionScore.compare(
                "blind", floor, floor, weights, confidence=self.confidence
            ),
            words=len(vocabulary),
            named=named,
            k=self.k,
            reference_rows=len(x),
            test_rows=len(x_test),
            dimension=x.shape[1],
            confidence=self.confidence,
        )

    def _guesses(
        self, scores: np.ndarray, truth: np.ndarray, named: int
    ) -> WordGuesses:
        order = np.argsort(-scores, axis=1, kind="stable")
        k = min(self.k, truth.shape[1])
        sizes = truth.sum(axis=1)
        hits = np.take_along_axis(truth, order[:, :named], 1).sum(axis=1)
        right = np.take_along_axis(truth, order[:, :k], 1).sum(axis=1)
        return WordGuesses(f1=2 * hits / (named + sizes), precision=right / k)


# --- Attackers: (attack, x, y, x_test) -> a score a word, float (m, V) --------


def _nearest(
    attack: InversionAttack, x: np.ndarray, y: np.ndarray, x_test: np.ndarray
) -> np.ndarray:
    count = min(attack.neighbours, len(x))
    squares = (x**2).sum(axis=1)
    step = max(1, _MOST_CELLS // len(x))
    prior = y.mean(axis=0)
    found = []
    for start in range(0, len(x_test), step):
        distances = squares - 2 * x_test[start : start + step] @ x.T
        nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
        # Among words that equally many neighbours have, the frequent ones first.
        found.append(y[nearest].mean(axis=1) + prior * 1e-3)
    return np.concatenate(found)


def _linear(
    attack: InversionAttack, x: np.ndarray, y: np.ndarray, x_test: np.ndarray
) -> np.ndarray:
    """Ridge regression; of all penalties at once from one eigendecomposition."""
    del attack
    order = np.random.default_rng(0).permutation(len(x))
    held, kept = np.split(order, [max(1, int(_HELD_OUT * len(x)))])
    best = _PENALTIES[-1]
    if len(kept):
        losses = {
            penalty: float(((guess - y[held]) ** 2).mean())
            for penalty, guess in _ridge(x[kept], y[kept], x[held], _PENALTIES)
        }
        best = min(losses, key=losses.__getitem__)
    return next(iter(_ridge(x, y, x_test, [best])))[1]


def _ridge(
    x: np.ndarray, y: np.ndarray, x_test: np.ndarray, penalties: Sequence[float]
) -> list[tuple[float, np.ndarray]]:
    mean_x, mean_y = x.mean(axis=0), y.mean(axis=0)
    centred = x - mean_x
    values, vectors = np.linalg.eigh(centred.T @ centred)
    targets = vectors.T @ (centred.T @ (y - mean_y))
    seen = (x_test - mean_x) @ vectors
    return [
        (
            penalty,
            mean_y + seen @ (targets / (np.maximum(values, 0) + penalty)[:, None]),
        )
        for penalty in penalties
    ]


def _mlp(
    attack: InversionAttack, x: np.ndarray, y: np.ndarray, x_test: np.ndarray
) -> np.ndarray:
    """A network, stopped where a fifth of the reference corpus is told best."""
    from sklearn.neural_network import MLPClassifier

    # scikit-learn takes a word that all texts have, or none, for no class at all.
    varied = (y.any(axis=0)) & (~y.all(axis=0))
    scores = np.tile(y.mean(axis=0), (len(x_test), 1))
    if varied.sum() < 2:
        return scores
    order = np.random.default_rng(attack.seed).permutation(len(x))
    held, kept = np.split(order, [max(1, int(_HELD_OUT * len(x)))])
    targets = y[:, varied].astype(int)
    # Its own early stopping asks how many texts have every word right: none has.
    model = MLPClassifier(
        hidden_layer_sizes=(256,), learning_rate_init=3e-3, random_state=attack.seed
    )
    classes = list(range(targets.shape[1]))
    best, waited, guess = np.inf, 0, scores[:, varied]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(_EPOCHS):
            model.partial_fit(x[kept], targets[kept], classes=classes)
            shown = np.clip(model.predict_proba(x[held]), 1e-7, 1 - 1e-7)
            told = np.where(targets[held] == 1, np.log(shown), np.log(1 - shown))
            waited += 1
            if -told.mean() < best:
                best, waited, guess = -told.mean(), 0, model.predict_proba(x_test)
            if waited >= _PATIENCE:
                break
    scores[:, varied] = guess
    return scores


_ATTACKERS = {"nearest_neighbour": _nearest, "linear": _linear, "mlp": _mlp}


# --- Parts -------------------------------------------------------------------


def _features(name: str, values: Any, texts: Sequence[str]) -> np.ndarray:
    if hasattr(values, "numpy"):
        values = values.numpy()
    array = np.asarray(values)
    key = f"{name}_representations"
    if array.dtype.kind not in "fiu" or array.ndim != 2 or not array.shape[1]:
        raise InputError(
            f"Expected numbers of shape (rows, features) for {key}, received "
            f"{array.dtype} of shape {array.shape}."
        )
    if isinstance(texts, str) or len(texts) != len(array):
        raise InputError(
            f"Expected one text a row of {key}, received {len(texts)} texts and "
            f"{len(array)} rows."
        )
    if len(array) < 2:
        raise InputError(f"Expected at least 2 rows of {key}, received {len(array)}.")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise InputError(
            f"Expected finite numbers in {key}, received one that is not at row {row}, "
            f"feature {column}."
        )
    return array


def _frequent_words(texts: Sequence[str], count: int) -> list[str]:
    """Words that most texts have; marks and kinds of token are none."""
    fixed = {*KINDS, *MARKS}
    found: dict[str, int] = {}
    for tokens in Tokenizer().tokenize_all(list(texts)):
        for token in set(tokens) - fixed:
            found[token] = found.get(token, 0) + 1
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    if not ranked:
        raise InputError("Expected reference texts with words, received none.")
    return [word for word, _ in ranked[:count]]


def _bags(texts: Sequence[str], vocabulary: Sequence[str]) -> np.ndarray:
    """Which text has which word: float64 (n, V) of 0 and 1."""
    place = {word: i for i, word in enumerate(vocabulary)}
    bags = np.zeros((len(texts), len(vocabulary)))
    for row, tokens in zip(bags, Tokenizer().tokenize_all(list(texts)), strict=True):
        row[[place[token] for token in tokens if token in place]] = 1.0
    return bags
