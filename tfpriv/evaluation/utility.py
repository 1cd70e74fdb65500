"""What a classifier learns from synthetic texts, beside that of real ones."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer, one_of, rate
from tfpriv.attacks import Estimate
from tfpriv.datasets import TextDataset
from tfpriv.evaluation._labels import require_labelled
from tfpriv.text.cleaning import canonical

if TYPE_CHECKING:
    from tfpriv.evaluation.downstream import Classifier

_FOLDS = 5
_RESAMPLES = 1000


@dataclasses.dataclass(frozen=True)
class UtilityScore:
    """One kind of classifier, trained on real and on synthetic texts.

    Attributes:
        classifier: its name, of `tfpriv.evaluation.downstream`.
        real: accuracy on real test rows after training on real rows.
        synthetic: the same after training on the synthetic rows.
        difference: synthetic less real, on the same test rows.
        trainings: of each, with another seed; the linear one has no chance in it.
    """

    classifier: str
    real: Estimate
    synthetic: Estimate
    difference: Estimate
    trainings: int

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Utility:
    """Scores of all classifiers, and what they were tested on.

    It is computed from private rows: internal, and without an epsilon.

    Attributes:
        scores: one a classifier.
        constant: accuracy of the best constant guess.
        consistency: share of synthetic rows whose label a linear classifier that was
            trained on real rows gives them.
        test_rows: distinct real texts tested on.
        held_out: whether these had no part in the synthetic text. If not, the real
            side is cross-validated and the synthetic side is not.
        left_out: held-out rows whose text is among the real ones, which do not count.
        confidence: of the intervals.
    """

    scores: tuple[UtilityScore, ...]
    constant: float
    consistency: Estimate
    test_rows: int
    held_out: bool
    left_out: int
    confidence: float

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON."""
        return dataclasses.asdict(self)


def measure_utility(
    real: TextDataset,
    synthetic: TextDataset,
    held_out: TextDataset | None = None,
    *,
    names: Sequence[str] = ("LR",),
    seeds: Sequence[int] = (0,),
    confidence: float = 0.95,
    resamples: int = _RESAMPLES,
    progress: Callable[[str, float], None] = lambda stage, done: None,
    **options: Any,
) -> Utility:
    """Trains classifiers on real and on synthetic texts and tests both on real ones.

    With held-out rows, both are tested there. Without, both are tested on the real
    rows: the classifier of real rows by cross-validation in five parts, equal texts
    in one, that of synthetic rows as it is, although these rows had a part in making
    its training text. Equal texts count once.

    Intervals are over test rows and trainings (`Estimate.combine`), both sides on
    the same resampled rows.

    Args:
        real: labelled texts that the synthetic ones were made of.
        synthetic: labelled texts.
        held_out: labelled texts of the same kind that had no part in it, or None.
        names: which of `tfpriv.evaluation.downstream.classifiers()`.
        seeds: one training of each network a seed.
        confidence: of the intervals, in (0, 1).
        resamples: bootstrap samples of the test rows.
        progress: is told the stage and the share that is done.
        **options: settings of the networks.

    Raises:
        InputError: an unknown name, texts without labels, none in common, or too few
            to be parted.
    """
    integer(2, resamples=resamples)
    rate(confidence=confidence)
    for name in names:
        _kind(name)  # refused before anything is trained
    real, test, left_out = comparable(real, synthetic, held_out)
    draw = np.random.default_rng(0)
    shares = np.full(len(test), 1 / len(test))
    weights = draw.multinomial(len(test), shares, size=resamples) / len(test)

    def estimate(hits: np.ndarray) -> Estimate:
        return Estimate.combine(
            hits.mean(axis=1),
            weights @ hits.mean(axis=0),
            confidence=confidence,
            rows=len(test),
        )

    runs = {name: [0] if name == "LR" else list(seeds) for name in names}
    total, done = sum(map(len, runs.values())), 0
    scores = []
    for name, own in runs.items():
        hits = np.zeros((len(own), 2, len(test)))
        for number, seed in enumerate(own):
            progress(f"{name} on real and synthetic rows", done / total)
            make = functools.partial(
                _kind(name), seed=seed, **({} if name == "LR" else options)
            )
            hits[number] = _hits(make, real, synthetic, test, held_out is not None)
            done += 1
        on_real, on_synthetic = hits[:, 0], hits[:, 1]
        scores.append(
            UtilityScore(
                name,
                estimate(on_real),
                estimate(on_synthetic),
                _difference(on_synthetic - on_real, weights, confidence),
                len(own),
            )
        )
    return Utility(
        tuple(scores),
        max(map(len, test.by_label().values())) / len(test),
        _consistency(real, synthetic, confidence, resamples),
        len(test),
        held_out is not None,
        left_out,
        confidence,
    )


def comparable(
    real: TextDataset, synthetic: TextDataset, held_out: TextDataset | None = None
) -> tuple[TextDataset, TextDataset, int]:
    """Returns what `measure_utility` trains on and tests on, before it does.

    Returns:
        (distinct real rows; distinct test rows; held-out rows that do not count,
        their texts being among the real ones).

    Raises:
        InputError: as `measure_utility`.
    """
    for name, data in (("real", real), ("synthetic", synthetic)):
        require_labelled(data, name)
    if not set(real.label_names) & set(synthetic.label_names):
        raise InputError(
            f"Expected a label that real and synthetic rows share, received "
            f"{len(real.label_names)} and {len(synthetic.label_names)} without one in "
            "common. Give the file that the run was made of."
        )
    real = real.deduplicate()
    if held_out is not None:
        require_labelled(held_out, "held_out")
        return real, *_apart(held_out.deduplicate(), real)
    groups = len(set(real.group_keys()))
    if groups < _FOLDS:
        raise InputError(
            f"Expected at least {_FOLDS} different real texts (or groups) to cross-"
            f"validate, received {groups}. Give held-out rows, or more."
        )
    return real, real, 0


def _hits(
    make: Callable[[], Classifier],
    real: TextDataset,
    synthetic: TextDataset,
    test: TextDataset,
    held_out: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns which test rows are right after either training, bool of shape (n,)."""
    on_synthetic = _right(make().fit(synthetic), test)
    if held_out:
        return _right(make().fit(real), test), on_synthetic
    on_real = np.zeros(len(test), bool)
    for train, part in _folds(real):
        on_real[part] = _right(make().fit(real.select(train)), real.select(part))
    return on_real, on_synthetic


def _kind(name: str) -> type[Classifier]:
    """The class of a name; the linear one alone does without TensorFlow."""
    from tfpriv.evaluation.logistic_regression import LogisticRegressionClassifier

    if name == "LR":
        return LogisticRegressionClassifier
    from tfpriv.evaluation.downstream import classifiers

    one_of(classifiers(), name=name)
    return classifiers()[name]


def _folds(real: TextDataset) -> list[tuple[list[int], list[int]]]:
    from sklearn.model_selection import GroupKFold

    groups = real.group_keys()
    parts = GroupKFold(_FOLDS).split(groups, groups=groups)
    return [(train.tolist(), part.tolist()) for train, part in parts]


def _right(classifier: Any, test: TextDataset) -> np.ndarray:
    predicted = classifier.predict(test.texts)
    return np.array([p == t for p, t in zip(predicted, test.labels, strict=True)])


def _apart(held_out: TextDataset, real: TextDataset) -> tuple[TextDataset, int]:
    """Leaves out held-out rows whose text is among the real ones; says how many."""
    known = {canonical(text) for text in real.texts}
    kept = [i for i, text in enumerate(held_out.texts) if canonical(text) not in known]
    if not kept:
        raise InputError(
            f"Expected held-out rows that are not among the run's records, received "
            f"{len(held_out)}, all of which are. Give others."
        )
    return held_out.select(kept), len(held_out) - len(kept)


def _difference(
    differences: np.ndarray, weights: np.ndarray, confidence: float
) -> Estimate:
    """As `Estimate.combine`, of a number in [-1, 1]: shifted there and back."""
    moved = (differences + 1) / 2
    found = Estimate.combine(
        moved.mean(axis=1),
        weights @ moved.mean(axis=0),
        confidence=confidence,
        rows=moved.shape[1],
    )
    return Estimate(2 * found.value - 1, 2 * found.low - 1, 2 * found.high - 1)


def _consistency(
    real: TextDataset, synthetic: TextDataset, confidence: float, resamples: int
) -> Estimate:
    from tfpriv.evaluation.logistic_regression import LogisticRegressionClassifier

    right = _right(LogisticRegressionClassifier().fit(real), synthetic)
    share = right.mean()
    drawn = np.random.default_rng(0).binomial(len(right), share, resamples)
    return Estimate.combine(
        [share], drawn / len(right), confidence=confidence, rows=len(right)
    )
