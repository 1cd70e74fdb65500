"""Classifiers trained on each version of a data set, all tested on real text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset

if TYPE_CHECKING:
    import pandas as pd


class Classifier(Protocol):
    """What `measure` needs of a classifier."""

    def fit(self, train: TextDataset) -> Any:
        """Trains on labelled texts."""

    def score(self, test: TextDataset) -> float:
        """Returns the accuracy on labelled texts."""


def classifiers() -> dict[str, type]:
    """Returns the classifiers of the DP-SeqGAN paper and a linear one, by name."""
    from tfpriv.evaluation.logistic_regression import LogisticRegressionClassifier
    from tfpriv.evaluation.rnn import RNNClassifier
    from tfpriv.evaluation.text_cnn import TextCNNClassifier

    return {
        "LR": LogisticRegressionClassifier,
        "CNN": TextCNNClassifier,
        "RNN": RNNClassifier,
    }


def measure(
    train_sets: Mapping[str, TextDataset],
    test: TextDataset,
    seeds: Sequence[int],
    *,
    names: Sequence[str] = ("LR", "CNN", "RNN"),
    **options: Any,
) -> pd.DataFrame:
    """Trains every classifier on every training set with every seed.

    Args:
        train_sets: name to labelled texts. Each classifier gets the same steps and
            settings on each of them, and a vocabulary from it alone.
        test: labelled real texts.
        seeds: one training of each network a seed.
        names: which of `classifiers()`.
        **options: settings of the networks, `steps` for one.

    Returns:
        One row a training: train_set, classifier, seed, accuracy. Rows of several
        calls (one a split, say) may be put below one another and summarised.

    Raises:
        InputError: a name is unknown, or a data set has no texts or no labels.
    """
    import pandas as pd

    known = classifiers()
    if unknown := [name for name in names if name not in known]:
        raise InputError(
            f"Expected classifiers among {', '.join(known)}, received "
            f"{', '.join(unknown)}."
        )
    rows = []
    for train_name, train in train_sets.items():
        for name in names:
            for seed in seeds:
                settings = {} if name == "LR" else options
                classifier = known[name](seed=seed, **settings)
                score = classifier.fit(train).score(test)
                rows.append((train_name, name, seed, score))
    columns = ["train_set", "classifier", "seed", "accuracy"]
    return pd.DataFrame(rows, columns=columns)


def summarise(measured: pd.DataFrame) -> pd.DataFrame:
    """Returns mean accuracy and its 95 % interval for each classifier.

    The interval is Student's: mean +- t_{.975, n-1} s / sqrt(n) over the n rows, NaN
    for one row.

    Args:
        measured: rows of `measure`.

    Returns:
        One row a training set and classifier, in their first order: train_set,
        classifier, mean, low, high, n.
    """
    import pandas as pd
    from scipy import stats

    rows = []
    for key, group in measured.groupby(["train_set", "classifier"], sort=False):
        values = group["accuracy"]
        n, mean = len(values), float(values.mean())
        half = math.nan
        if n > 1:
            half = float(stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / math.sqrt(n))
        rows.append((*key, mean, mean - half, mean + half, n))
    columns = ["train_set", "classifier", "mean", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)


def evaluate(
    train_sets: Mapping[str, TextDataset],
    test: TextDataset,
    seeds: Sequence[int],
    *,
    names: Sequence[str] = ("LR", "CNN", "RNN"),
    **options: Any,
) -> pd.DataFrame:
    """Returns `summarise(measure(...))`: mean and 95 % interval over the seeds."""
    return summarise(measure(train_sets, test, seeds, names=names, **options))
