from __future__ import annotations

import json
import random

import pytest

from tfpriv.datasets import TextDataset
from tfpriv.evaluation.utility import measure_utility

GOOD, BAD = (
    ["song", "love", "great", "music", "voice"],
    ["buy", "click", "free", "money", "win"],
)


def made(rows: int, seed: int, noise: float = 0.0, labels=("ham", "spam")):
    """Texts whose words tell the label, but for a share of swapped labels."""
    draw = random.Random(seed)
    texts, names = [], []
    for i in range(rows):
        kind = i % 2
        words = [*draw.choices((GOOD, BAD)[kind], k=3), f"w{draw.randrange(300)}"]
        texts.append(" ".join(words))
        names.append(labels[kind ^ (draw.random() < noise)])
    return TextDataset(texts, names)


def test_a_good_text_teaches_as_much_as_real_rows_and_a_bad_one_less():
    real, test = made(120, 0), made(100, 1)
    good = measure_utility(real, made(120, 2), test).scores[0]
    bad = measure_utility(real, made(120, 2, noise=0.5), test).scores[0]
    assert good.real.value == good.synthetic.value == 1
    assert good.difference.value == 0
    # Of a hundred rows that are all right, some other might not be.
    assert 0.9 < good.real.low == good.synthetic.low < 1
    assert good.difference.low < 0 < good.difference.high
    assert bad.synthetic.high < good.synthetic.low
    assert bad.difference.high < 0
    assert bad.real == good.real


def test_without_held_out_rows_real_ones_are_cross_validated():
    """Labels at random: who saw them knows them, who is cross-validated does not."""
    real = made(100, 0, noise=0.5)
    found = measure_utility(real, real)
    assert not found.held_out
    score = found.scores[0]
    assert score.real.value < 0.7 < score.synthetic.value
    assert found.test_rows == len(real.deduplicate())


def test_held_out_rows_that_the_run_had_do_not_count():
    real = made(100, 0)
    test = made(60, 1)
    both = TextDataset(test.texts + real.texts, test.labels + real.labels)
    found = measure_utility(real, real, both)
    assert found.left_out == len(real.deduplicate())
    assert found.test_rows == len(test.deduplicate())
    with pytest.raises(ValueError, match=r"not among the run's records.* all of which"):
        measure_utility(real, real, real)


def test_consistency_is_agreement_with_a_classifier_of_real_rows():
    real = made(200, 0)
    assert measure_utility(real, made(100, 1), made(50, 2)).consistency.value == 1
    synthetic = made(400, 1, noise=0.3)
    swapped = sum(
        (label == "ham") == (text.split()[0] in BAD)
        for text, label in zip(synthetic.texts, synthetic.labels, strict=True)
    )
    noisy = measure_utility(real, synthetic, made(50, 2)).consistency
    assert noisy.value == pytest.approx(1 - swapped / 400)
    assert noisy.low < 0.7 < noisy.high


def test_the_interval_holds_more_often_with_more_rows():
    real, synthetic = made(200, 0), made(200, 1)
    few = measure_utility(real, synthetic, made(40, 2, noise=0.2)).scores[0].synthetic
    many = measure_utility(real, synthetic, made(400, 2, noise=0.2)).scores[0].synthetic
    assert many.high - many.low < few.high - few.low
    assert many.low <= 0.8 <= many.high


def test_networks_have_several_trainings(monkeypatch):
    from tfpriv.evaluation import downstream

    seeds = []

    class Guess:
        def __init__(self, seed, steps):
            seeds.append((seed, steps))

        def fit(self, train):
            return self

        def predict(self, texts):
            return ["ham"] * len(texts)

    known = downstream.classifiers()
    monkeypatch.setattr(downstream, "classifiers", lambda: {**known, "CNN": Guess})
    sides = made(60, 0), made(60, 1), made(40, 2)
    stages = []
    found = measure_utility(
        *sides,
        names=("LR", "CNN"),
        seeds=(1, 2),
        steps=3,
        progress=lambda stage, done: stages.append((stage.split()[0], done)),
    )
    assert stages == [("LR", 0), ("CNN", 1 / 3), ("CNN", 2 / 3)]
    assert [score.trainings for score in found.scores] == [1, 2]
    assert seeds == [(1, 3), (1, 3), (2, 3), (2, 3)]
    assert found.scores[1].synthetic.value == pytest.approx(0.5, abs=0.02)
    assert json.dumps(found.to_json())


def test_texts_that_share_no_label_are_refused():
    with pytest.raises(ValueError, match="2 and 2 without one in common"):
        measure_utility(made(20, 0), made(20, 1, labels=("x", "y")))
    with pytest.raises(ValueError, match="one of LR, CNN, RNN"):
        measure_utility(made(20, 0), made(20, 1), names=("SVM",))
    with pytest.raises(ValueError, match="without labels"):
        measure_utility(made(20, 0), TextDataset(["a"]))
    with pytest.raises(ValueError, match="at least 5 different"):
        measure_utility(made(3, 0), made(20, 1))
