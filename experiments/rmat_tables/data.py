"""The parts of md_gender as numbers, and a second task read from the same texts."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfpriv import datasets
from tfpriv.datasets import TextDataset, concatenate
from tfpriv.datasets.md_gender import SENTIMENTS, configs
from tfpriv.datasets.registry import is_prepared

INTENSITIES = ("none", "mild", "strong")
# Of |compound|: below VADER's own threshold, and half of the scale.
INTENSITY_THRESHOLDS = (0.05, 0.5)
# Sentiment and intensity, of those pairs that there are: a neutral text has none.
JOINT = tuple(
    (sentiment, intensity)
    for sentiment in range(len(SENTIMENTS))
    for intensity in range(len(INTENSITIES))
    if (SENTIMENTS[sentiment] == "neutral") == (INTENSITIES[intensity] == "none")
)


@dataclasses.dataclass(frozen=True)
class Part:
    """Texts with labels as numbers.

    Attributes:
        texts: n str.
        labels: int (n,), places in `SENTIMENTS`.
        private: int (n,), places in the genders of the data set.
    """

    texts: tuple[str, ...]
    labels: np.ndarray
    private: np.ndarray

    def intensities(self) -> np.ndarray:
        """Returns int (n,), places in `INTENSITIES`, from VADER's |compound|."""
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

        analyzer = SentimentIntensityAnalyzer()
        scores = [abs(analyzer.polarity_scores(t)["compound"]) for t in self.texts]
        return np.digitize(scores, INTENSITY_THRESHOLDS)

    def joint(self) -> np.ndarray:
        """Returns int (n,), places in `JOINT`."""
        places = {pair: place for place, pair in enumerate(JOINT)}
        pairs = zip(self.labels.tolist(), self.intensities().tolist(), strict=True)
        return np.array([places[pair] for pair in pairs], np.int64)


def available(dataset: str) -> bool:
    """Whether the official files of a data set are in place."""
    return is_prepared(f"md_gender/{dataset}")


def private_classes(dataset: str) -> int:
    """How many genders a data set has."""
    return len(configs()[dataset].genders)


def pools_validation(dataset: str) -> bool:
    """Both Wizards have small official parts: they are tested on two of them."""
    return dataset.startswith("wizard")


def load_parts(
    dataset: str, limit: int | None, test_limit: int | None
) -> tuple[Part, Part]:
    """Returns the training part and the test part, at most so many rows of each."""
    splits = datasets.load(f"md_gender/{dataset}")
    test = splits.test
    if pools_validation(dataset):
        test = concatenate([splits.validation, splits.test])
    genders = configs()[dataset].genders
    return (
        _part(_spaced(splits.train, limit), genders),
        _part(_spaced(test, test_limit), genders),
    )


def sizes(dataset: str) -> dict[str, Any]:
    """Rows of the official parts, of their classes, and test texts seen in training."""
    splits = datasets.load(f"md_gender/{dataset}")
    parts = dict(zip(("train", "validation", "test"), splits, strict=True))
    seen = set(splits.train.texts)
    held_out = [*splits.validation.texts, *splits.test.texts]
    return {
        "rows": {name: len(part) for name, part in parts.items()},
        "labels": {n: _counts(part.labels) for n, part in parts.items()},
        "private": {n: _counts(part.private) for n, part in parts.items()},
        "texts_of_train_in_test": sum(text in seen for text in held_out),
    }


def _counts(values: Sequence[str] | None) -> dict[str, int]:
    return dict(sorted(collections.Counter(values or ()).items()))


def _spaced(data: TextDataset, limit: int | None) -> TextDataset:
    if limit is None or len(data) <= limit:
        return data
    return data.select(np.linspace(0, len(data) - 1, limit).astype(int).tolist())


def _part(data: TextDataset, genders: tuple[str, ...]) -> Part:
    return Part(
        data.texts,
        np.array([SENTIMENTS.index(label) for label in data.labels], np.int64),
        np.array([genders.index(gender) for gender in data.private], np.int64),
    )
