"""Texts of ParlAI's md_gender with the sentiment that VADER finds in them.

A second data set for synthetic text, with labels that any text can be given. The
gender labels of these files are not read.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from tfpriv._errors import InputError
from tfpriv.datasets.readers import read_table
from tfpriv.datasets.text_dataset import TextDataset, concatenate

# The thresholds that VADER's authors give for its compound score.
THRESHOLD = 0.05
_PARTS = ("train", "valid", "test")


def vader_sentiment(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Labels each text by VADER's compound score (Hutto and Gilbert 2014).

    Args:
        texts: tuple of n str.

    Returns:
        A tuple of n labels: `"positive"` from .05 up, `"negative"` from -.05 down,
        else `"neutral"`.

    Examples:
        >>> vader_sentiment(("I love it!", "The door is brown.", "What a disaster."))
        ('positive', 'neutral', 'negative')
    """
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    analyzer = SentimentIntensityAnalyzer()
    scores = (analyzer.polarity_scores(text)["compound"] for text in texts)
    return tuple(_name(score) for score in scores)


def with_vader_labels(dataset: TextDataset, column: str = "sentiment") -> TextDataset:
    """The same records with the sentiment of each text as its label.

    Groups and private labels stay; labels that were there are replaced. A score
    depends on its own text alone.

    Args:
        dataset: what to label.
        column: str. The name of the label column.

    Raises:
        InputError: another column of the data set has that name.

    Examples:
        >>> data = TextDataset(["I love it!", "What a disaster."], private=["f", "m"])
        >>> with_vader_labels(data).labels
        ('positive', 'negative')
    """
    return dataclasses.replace(
        dataset,
        labels=vader_sentiment(dataset.texts),
        label_column=column,
        provenance={**dataset.provenance, "labels": "VADER compound score"},
    )


def read_sentiment(folder: str | os.PathLike) -> TextDataset:
    """Pools the official parts of one md_gender corpus, labelled by sentiment.

    Args:
        folder: where `train.jsonl`, `valid.jsonl` and `test.jsonl` lie, each line an
            object with a field `text`.

    Raises:
        InputError: a file is missing or cannot be read.
    """
    folder = Path(folder)
    missing = [part for part in _PARTS if not (folder / f"{part}.jsonl").is_file()]
    if missing:
        raise InputError(
            f"Expected the official files of md_gender in {folder}, received no "
            f"{', '.join(f'{part}.jsonl' for part in missing)}. Unpack its archive "
            "(data_to_release/) into DATA_DIR/md_gender, or set TFPRIV_DATA_DIR."
        )
    paths = [folder / f"{part}.jsonl" for part in _PARTS]
    tables = [read_table(path, text="text") for path in paths]
    pooled = concatenate(
        tables,
        provenance={"parts": [dict(table.provenance) for table in tables]},
    )
    return with_vader_labels(pooled)


def _name(score: float) -> str:
    if score >= THRESHOLD:
        return "positive"
    return "negative" if score <= -THRESHOLD else "neutral"
