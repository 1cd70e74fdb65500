"""Classifiers that guess a private attribute from what was released."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer, one_of, probability
from tfpriv.attacks import _statistics
from tfpriv.attacks._attackers import ATTACKERS, probabilities
from tfpriv.attacks.attribute_inference_result import (
    AttackerScore,
    AttributeInferenceResult,
)
from tfpriv.attacks.estimate import Estimate

# Sums of squares of larger numbers leave the range of float64.
_LARGEST = 1e100


@dataclasses.dataclass(frozen=True)
class AttributeInferenceAttack:
    """Trains fresh attackers on released representations and tests them on others.

    Give representations as they are released, noise included, in training and in
    test: an attacker that learns without the noise is another one, and a weaker one.
    Every attacker is trained on the training rows alone, on features scaled to mean 0
    and variance 1 there:

    - "logistic_regression" and "balanced_logistic_regression" (rows weighted by the
      inverse share of their class), L2 penalty chosen on a fifth of the training rows;
    - "mlp", one hidden layer of 100 units with early stopping, as in the published
      evaluations;
    - "gradient_boosting", on histograms, with early stopping.

    Those that draw random numbers are trained once a seed.

    Of each attacker: AUC (two classes; of more, the mean over classes, each against
    the rest), macro-F1, balanced accuracy and accuracy, over the classes that are in
    the test rows. Intervals join trainings and test rows (see `Estimate.combine`); the
    training rows are taken as given. Test rows are drawn with return, or whole groups
    where there are groups.

    The worst of several attackers looks better than chance even where there is nothing
    to find: its AUC gets a Bonferroni-adjusted interval, and is compared with the
    largest AUC that the same attackers reach once the test labels are permuted (with
    groups: when groups are resampled, each attacker's AUC moved to .5 on average,
    since rows of a group cannot change places).

    A private class that only test rows have is scored like any other and never
    predicted: its recall is 0 and its AUC .5.

    Representations of shape (n, r, d) are r releases of each text. Every attacker is
    then trained twice: on their mean, which averages noise out, and on all r next to
    one another.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> private = rng.integers(0, 2, 400)
        >>> told = rng.normal(size=(400, 3)) + private[:, None]
        >>> attack = AttributeInferenceAttack(["logistic_regression"], seeds=[0])
        >>> result = attack.fit_score(
        ...     told[:200], private[:200], told[200:], private[200:])
        >>> result.worst.auc.value > 0.8, result.leaks
        (True, True)

    Attributes:
        attackers: names of attackers, as above.
        seeds: whole numbers, one training of each random attacker for each.
        confidence: float. Probability of the intervals.
        resamples: int. Sets of test rows for the intervals, and permutations.

    Raises:
        InputError: no or unknown attackers, no or doubled seeds, or a number out of
            range.
    """

    attackers: Sequence[str] = tuple(ATTACKERS)
    seeds: Sequence[int] = (0, 1, 2)
    confidence: float = 0.95
    resamples: int = 1000

    def __post_init__(self) -> None:
        for name in ("attackers", "seeds"):
            values = getattr(self, name)
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise InputError(f"Expected a list for {name}, received {values!r}.")
            values = tuple(values)
            if not values or len(set(values)) < len(values):
                raise InputError(
                    f"Expected at least one of {name} and none twice, received "
                    f"{values}."
                )
            object.__setattr__(self, name, values)
        for name in self.attackers:
            one_of(ATTACKERS, attackers=name)
        for seed in self.seeds:
            integer(0, seeds=seed)
        probability(confidence=self.confidence)
        integer(100, resamples=self.resamples)

    def fit_score(
        self,
        train_representations: Any,
        train_private: Sequence[Any],
        test_representations: Any,
        test_private: Sequence[Any],
        *,
        test_groups: Sequence[Any] | None = None,
    ) -> AttributeInferenceResult:
        """Trains all attackers and scores them.

        Args:
            train_representations: finite numbers of shape (n, d), or (n, r, d) for r
                releases of each text.
            train_private: n labels (str, int or bool).
            test_representations: the same for m other texts.
            test_private: m labels.
            test_groups: m values or None. Rows of one group (an author, the turns of
                a dialogue) depend on each other and are resampled together.

        Returns:
            The scores. They come from private records and are internal.

        Raises:
            InputError: shapes or lengths that do not fit, a value that is not finite,
                a label that is missing, one class alone in training or in test, or
                fewer training rows than classes. Of a label the message gives the row.
        """
        started = time.monotonic()
        train = _numbers(train_representations, "train_representations")
        test = _numbers(test_representations, "test_representations")
        if train.shape[1:] != test.shape[1:]:
            raise InputError(
                "Expected representations of the same shape in training and test, "
                f"received {train.shape[1:]} and {test.shape[1:]} a row."
            )
        truth, labels = _encode(train_private, test_private, len(train), len(test))
        groups = _groups(test_groups, len(test))

        names: list[str] = []
        guesses: list[list[np.ndarray]] = []
        every = 1 + int(max(truth.max(), labels.max()))
        for view, x_train, x_test in _views(train, test):
            x_train, x_test = _scale(x_train, x_test)
            for name in self.attackers:
                attacker = ATTACKERS[name]
                seeds = self.seeds if attacker.seeded else self.seeds[:1]
                names.append(name + view)
                guesses.append(
                    [
                        probabilities(attacker, (x_train, labels), x_test, every, seed)
                        for seed in seeds
                    ]
                )
        scores, null = self._score(names, guesses, truth, groups)
        observed = max(score.auc.value for score in scores)
        return AttributeInferenceResult(
            attackers=scores,
            confidence=self.confidence,
            null_auc=float(null.mean()),
            null_auc_bound=float(np.quantile(null, self.confidence)),
            # The order of the labels as they are counts too (Phipson and Smyth 2010).
            p_value=(1 + int((null >= observed).sum())) / (1 + len(null)),
            **_floors(labels, truth),
            num_classes=int(truth.max()) + 1,
            unseen_classes=int((~np.isin(np.unique(truth), labels)).sum()),
            train_rows=len(train),
            test_rows=len(test),
            test_groups=None if test_groups is None else int(groups.max()) + 1,
            releases=train.shape[1],
            dimension=train.shape[2],
            seconds=time.monotonic() - started,
        )

    def _score(
        self,
        names: list[str],
        guesses: list[list[np.ndarray]],
        truth: np.ndarray,
        groups: np.ndarray,
    ) -> tuple[tuple[AttackerScore, ...], np.ndarray]:
        """Each attacker's scores, and the largest AUC of all where nothing is told."""
        rng = np.random.default_rng(self.seeds[0])
        whole = np.ones((1, len(truth)))
        points = [
            _stack([_statistics.measure(guess, truth, whole) for guess in trainings])
            for trainings in guesses
        ]
        chunks: list[list[dict[str, np.ndarray]]] = [[] for _ in guesses]
        for weights in _statistics.resample(rng, groups, self.resamples):
            for parts, trainings in zip(chunks, guesses, strict=True):
                measured = [_statistics.measure(g, truth, weights) for g in trainings]
                parts.append(_stack(measured))
        scores, areas = [], []
        # Of the smallest class there are the fewest that could be an exception.
        sizes = [len(np.unique(groups[truth == c])) for c in np.unique(truth)]
        rows = min(sizes)
        adjusted = 1 - (1 - self.confidence) / len(names)
        for name, point, parts in zip(names, points, chunks, strict=True):
            # Shape (trainings, resamples), and then its mean over the trainings.
            resampled = {
                key: np.concatenate([part[key] for part in parts], axis=1).mean(axis=0)
                for key in point
            }
            estimates = {
                key: Estimate.combine(
                    values[:, 0], resampled[key], confidence=self.confidence, rows=rows
                )
                for key, values in point.items()
            }
            area = Estimate.combine(
                point["auc"][:, 0], resampled["auc"], confidence=adjusted, rows=rows
            )
            runs = tuple(point["auc"][:, 0].tolist())
            scores.append(
                AttackerScore(name, **estimates, adjusted_auc=area, auc_by_run=runs)
            )
            areas.append(resampled["auc"])
        if int(groups.max()) + 1 < len(truth):
            null = np.stack(areas)
            null = null[:, ~np.isnan(null).any(axis=0)]
            null = null - null.mean(axis=1, keepdims=True) + 0.5
        else:
            null = np.stack(
                [
                    np.mean(parts, axis=0)
                    for parts in _statistics.permuted_auc(
                        rng, guesses, truth, self.resamples
                    )
                ]
            )
        return tuple(scores), null.max(axis=0)


def _stack(measured: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {key: np.stack([part[key] for part in measured]) for key in measured[0]}


def _views(
    train: np.ndarray, test: np.ndarray
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """What an attacker looks at: its name, and (rows, features) of both parts."""
    releases = train.shape[1]
    if releases == 1:
        yield "", train[:, 0], test[:, 0]
        return
    yield f" (mean of {releases})", train.mean(axis=1), test.mean(axis=1)
    flat = (part.reshape(len(part), -1) for part in (train, test))
    yield f" (all {releases})", *flat


def _scale(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both parts as float32, with mean 0 and variance 1 in training."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train)
    # A test value can lie far outside of all training values.
    limit = np.finfo(np.float32).max / 1e6
    return tuple(
        np.clip(scaler.transform(part), -limit, limit).astype(np.float32)
        for part in (train, test)
    )


def _numbers(values: Any, name: str) -> np.ndarray:
    """The representations as float64 of shape (n, r, d)."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.empty(0, object)
    # bfloat16 is a void type to NumPy; its owner registers a cast.
    if array.dtype.kind not in "iufV" or array.ndim not in (2, 3) or not array.size:
        raise InputError(
            f"Expected numbers of shape (rows, features) or (rows, releases, features) "
            f"for {name}, received dtype {array.dtype} and shape {array.shape}."
        )
    array = array.astype(np.float64)
    array = array[:, None, :] if array.ndim == 2 else array
    good = (np.abs(array) < _LARGEST).all(axis=(1, 2))
    if not good.all():
        raise InputError(
            f"Expected finite {name} below {_LARGEST:g}, received NaN, infinity or a "
            f"larger number in {int((~good).sum())} of {len(good)} rows, the first in "
            f"row {int(good.argmin())} (counted from 0)."
        )
    return array


def _encode(
    train: Sequence[Any], test: Sequence[Any], train_rows: int, test_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Labels as numbers, test first: the classes of the test rows are 0..C-1."""
    names = {}
    for key, values, rows in (("test", test, test_rows), ("train", train, train_rows)):
        names[key] = _labels(values, f"{key}_private", rows)
        if len(set(names[key])) < 2:
            raise InputError(
                f"Expected at least two classes in {key}_private, received one alone. "
                "There is nothing to guess."
            )
    order = sorted(set(names["test"]))
    order += sorted(set(names["train"]) - set(order))
    if train_rows < len(order):
        raise InputError(
            f"Expected at least as many training rows as classes ({len(order)}), "
            f"received {train_rows}."
        )
    codes = {name: code for code, name in enumerate(order)}
    return tuple(
        np.array([codes[name] for name in names[key]]) for key in ("test", "train")
    )


def _labels(values: Sequence[Any], name: str, rows: int) -> list[str]:
    """Labels as str; of a bad one the message gives the row alone."""
    if hasattr(values, "numpy"):
        values = values.numpy()
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise InputError(
            f"Expected a list of labels for {name}, received {type(values).__name__}."
        )
    if len(values) != rows:
        raise InputError(
            f"Expected one label a row for {name}, received {len(values)} labels and "
            f"{rows} rows of representations."
        )
    labels = []
    for row, value in enumerate(values):
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, str | int) or value == "":
            raise InputError(
                f"Expected a label (str, int or bool) in row {row} of {name} (counted "
                f"from 0), received {type(value).__name__}, or an empty one."
            )
        labels.append(str(value))
    return labels


def _groups(groups: Sequence[Any] | None, rows: int) -> np.ndarray:
    """The number of each row's group; every row its own where there are none."""
    if groups is None:
        return np.arange(rows)
    numbers = np.unique(_labels(groups, "test_groups", rows), return_inverse=True)[1]
    if numbers.max() == 0:
        raise InputError("Expected at least two groups in test_groups, received one.")
    return numbers


def _floors(labels: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """What can be scored without looking at a representation.

    A constant guess of a class with share p of the test rows has F1 2p / (1 + p) there
    and 0 elsewhere. A guess drawn from the training shares q has, of expected counts,
    F1 2pq / (p + q) for each class.
    """
    classes = int(truth.max()) + 1
    p = np.bincount(truth, minlength=classes) / len(truth)
    q = np.bincount(labels, minlength=classes)[:classes] / len(labels)
    return {
        "constant_macro_f1": float((2 * p / (1 + p)).max() / classes),
        "prior_macro_f1": float((2 * p * q / (p + q)).mean()),
        "majority_accuracy": float(p.max()),
    }
