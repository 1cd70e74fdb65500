"""What is measured of a training set: what a classifier learns, how its text reads."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Sequence
from pathlib import Path

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset
from tfpriv.evaluation import PublicPerplexity, shuffled
from tfpriv.evaluation.downstream import classifiers
from tfpriv.text.metrics import distinct_n, duplicate_rate, self_bleu

Figures = dict[str, float]


def downstream(
    train: TextDataset,
    test: TextDataset,
    names: Sequence[str],
    *,
    seed: int,
    options: dict,
) -> Figures:
    """Accuracy and macro-F1 on `test` of each classifier trained on `train`."""
    from sklearn.metrics import f1_score

    figures: Figures = {}
    for name in names:
        start = time.monotonic()
        settings = {} if name == "LR" else options
        classifier = classifiers()[name](seed=seed, **settings).fit(train)
        predicted = classifier.predict(test.texts)
        right = [p == t for p, t in zip(predicted, test.labels, strict=True)]
        figures[f"accuracy/{name}"] = sum(right) / len(right)
        figures[f"macro_f1/{name}"] = float(
            f1_score(
                test.labels,
                predicted,
                labels=list(test.label_names),
                average="macro",
                zero_division=0.0,
            )
        )
        figures[f"seconds/{name}"] = round(time.monotonic() - start, 1)
    return figures


def text_quality(
    texts: Sequence[str], model: PublicPerplexity, *, rows: int, seed: int
) -> Figures:
    """Perplexity of all texts, diversity of the first `rows` of them."""
    few = list(texts)[:rows]
    return {
        "perplexity": model.perplexity(texts),
        "coverage": model.coverage(texts),
        "self_bleu_4": self_bleu(few, 4, sample=None, seed=seed),
        "distinct_2": distinct_n(few, 2),
        "duplicates": duplicate_rate(few),
    }


def shuffled_perplexity(
    texts: Sequence[str], model: PublicPerplexity, seed: int
) -> Figures:
    """Perplexity of the texts with the words of each in random order."""
    return {"perplexity/shuffled": model.perplexity(shuffled(texts, seed))}


def majority(test: TextDataset) -> float:
    """Accuracy of a constant guess of the most frequent label."""
    return max(map(len, test.by_label().values())) / len(test)


@functools.lru_cache(maxsize=1)
def public_model(folder: Path) -> PublicPerplexity:
    """The n-gram model of public texts that had no part in making the prior.

    Args:
        folder: of all data sets; ConvAI2's validation texts and LIGHT's personas
            are read from it.

    Raises:
        InputError: they are not there.
    """
    lines = folder / "convai2" / "valid_text.txt"
    characters = folder / "light_world" / "characters.json"
    for path in (lines, characters):
        if not path.is_file():
            raise InputError(
                f"Expected {path}, public text for the perplexity, received none. "
                "Set TFPRIV_DATA_DIR to the folder that has it."
            )
    texts = lines.read_text(encoding="utf-8").splitlines()
    for character in json.loads(characters.read_text(encoding="utf-8")):
        texts += character["persona"]
    return PublicPerplexity(dict.fromkeys(texts))
