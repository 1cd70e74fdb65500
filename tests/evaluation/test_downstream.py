from __future__ import annotations

import math
import random

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tfpriv.datasets import TextDataset, read, split
from tfpriv.evaluation import (
    LogisticRegressionClassifier,
    RNNClassifier,
    TextCNNClassifier,
    evaluate,
    measure,
    summarise,
)

NETWORKS = [TextCNNClassifier, RNNClassifier]
ALL = [LogisticRegressionClassifier, *NETWORKS]
FILLERS = ["the", "a", "song", "video", "today", "really", "very", "with", "again"]
TELLING = {"ham": ["love", "beautiful", "voice"], "spam": ["subscribe", "free", "cash"]}


def toy(n: int, seed: int = 0, labels=("ham", "spam")) -> TextDataset:
    """Texts of filler and one telling word."""
    draw = random.Random(seed)
    texts, names = [], []
    for _ in range(n):
        label = draw.choice(labels)
        words = draw.choices(FILLERS, k=draw.randint(2, 8))
        words.insert(draw.randrange(len(words)), draw.choice(TELLING[label]))
        texts.append(" ".join(words))
        names.append(label)
    return TextDataset(texts, names)


TRAIN, TEST = toy(200), toy(100, seed=1)


@pytest.fixture
def eagerly():
    """A few steps are done before TensorFlow has compiled them."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


def small(kind, **options):
    settings = {} if kind is LogisticRegressionClassifier else {"steps": 80}
    return kind(**{**settings, **options})


def with_rate(kind, **options):
    return small(
        kind, **({"learning_rate": 0.01} if kind in NETWORKS else {}), **options
    )


@pytest.mark.parametrize("kind", ALL)
def test_what_can_be_learnt_is_learnt(kind):
    classifier = with_rate(kind).fit(TRAIN)
    assert classifier.score(TEST) > 0.95
    predicted = classifier.predict(TEST.texts)
    assert len(predicted) == len(TEST)
    assert np.mean([p == t for p, t in zip(predicted, TEST.labels, strict=True)]) == (
        classifier.score(TEST)
    )


def test_labels_without_a_pattern_are_not_learnt():
    draw = random.Random(5)
    train, test = (
        TextDataset(data.texts, draw.choices(["ham", "spam"], k=len(data)))
        for data in (TRAIN, TEST)
    )
    score = LogisticRegressionClassifier().fit(train).score(test)
    assert 0.25 < score < 0.75


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.usefixtures("eagerly")
def test_one_class_is_all_that_is_predicted(kind):
    train = TextDataset(["good song", "good one"], ["7 up", "7 up"])
    classifier = small(kind, **({"steps": 2} if kind in NETWORKS else {})).fit(train)
    assert classifier.predict(["", "good", "whatever"]) == ["7 up"] * 3
    # A label that was never trained on counts as wrong.
    assert classifier.score(TextDataset(["a", "b"], ["7 up", "8 up"])) == 0.5


@pytest.mark.parametrize("kind", ALL)
def test_texts_without_labels_are_refused(kind):
    with pytest.raises(ValueError, match="Expected labelled texts in train"):
        small(kind).fit(TextDataset(["a"]))
    with pytest.raises(ValueError, match="Expected labelled texts in train"):
        small(kind).fit(TextDataset([], []))


def test_texts_without_tokens_are_refused_by_the_linear_classifier():
    with pytest.raises(ValueError, match="at least one token"):
        LogisticRegressionClassifier().fit(TextDataset(["", " "], ["a", "b"]))


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.usefixtures("eagerly")
def test_a_seed_fixes_a_training(kind):
    def logits(seed):
        classifier = kind(steps=2, seed=seed, max_length=6).fit(TRAIN)
        return classifier.model_(classifier.vocabulary_.encode(TEST.texts, 12)).numpy()

    state = np.random.get_state()[1].copy()  # noqa: NPY002
    np.testing.assert_allclose(logits(1), logits(1), atol=1e-5)
    assert np.abs(logits(1) - logits(2)).max() > 1e-3
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


@pytest.mark.parametrize("kind", NETWORKS)
def test_padding_changes_no_answer(kind):
    model = kind().build(vocabulary_size=20, classes=3)
    ids = np.random.default_rng(0).integers(1, 20, (6, 7)).astype(np.int32)
    ids[0, 1:] = 0
    padded = np.pad(ids, [(0, 0), (0, 9)])
    np.testing.assert_allclose(model(ids), model(padded), atol=1e-6)


def test_every_training_set_gets_the_same_steps_and_every_text_its_share():
    for n in (3, 50, 1000):
        classifier = TextCNNClassifier(steps=40, batch_size=10)
        order = classifier._order(np.random.default_rng(0).integers(1, 9, n))
        assert order.shape == (40, 10)
        reads = np.bincount(order.ravel(), minlength=n)
        assert reads.max() - reads.min() <= 1


def test_texts_of_one_batch_are_alike_in_length():
    lengths = np.random.default_rng(0).integers(1, 40, 1000)
    classifier = TextCNNClassifier(steps=60, batch_size=16)
    spreads = np.ptp(lengths[classifier._order(lengths)], axis=1)
    assert spreads.mean() < 6  # about 35 in batches drawn at random


@pytest.mark.usefixtures("eagerly")
def test_the_vocabulary_is_that_of_the_training_texts():
    train = TextDataset(["good good song", "song once"], ["a", "b"])
    classifier = TextCNNClassifier(steps=1).fit(train)
    assert classifier.vocabulary_.tokens[4:] == ("good", "song")


@pytest.mark.parametrize("word_dropout", [0.0, 0.5])
@pytest.mark.usefixtures("eagerly")
def test_word_dropout_is_what_trains_the_unknown_token(word_dropout):
    classifier = TextCNNClassifier(steps=3, min_count=1, word_dropout=word_dropout)
    classifier.fit(TRAIN)
    fresh = classifier.build(len(classifier.vocabulary_), 2)
    moved = [
        np.abs(model.weights[0][3].numpy()) for model in (classifier.model_, fresh)
    ]
    assert np.allclose(*moved) == (word_dropout == 0)


@pytest.mark.usefixtures("eagerly")
def test_the_curve_has_a_point_a_pass_and_ends_with_the_score():
    classifier = TextCNNClassifier(steps=5, batch_size=128).fit(TRAIN, validation=TEST)
    assert len(classifier.curve_) == 4  # 5 x 128 texts are 3.2 passes over 200
    assert classifier.curve_[-1] == classifier.score(TEST)
    again = TextCNNClassifier(steps=5, batch_size=128).fit(TRAIN)
    assert again.curve_ == []
    assert again.predict(TEST.texts) == classifier.predict(TEST.texts)


@pytest.mark.usefixtures("eagerly")
def test_the_table_has_every_training_set_and_classifier():
    sets = {"original": TRAIN, "flipped": TextDataset(TRAIN.texts, TRAIN.labels[::-1])}
    measured = measure(sets, TEST, seeds=[0, 1], names=["LR", "CNN"], steps=2)
    assert list(measured.columns) == ["train_set", "classifier", "seed", "accuracy"]
    assert len(measured) == 8
    table = evaluate(sets, TEST, seeds=[0, 1], names=["LR"])
    assert table["train_set"].tolist() == ["original", "flipped"]
    assert table["mean"][0] > 0.9 > table["mean"][1]


def test_intervals_are_students():
    values = [0.9, 0.92, 0.97]
    measured = pd.DataFrame(
        {"train_set": "x", "classifier": "LR", "seed": range(3), "accuracy": values}
    )
    row = summarise(measured).iloc[0]
    half = 4.302653 * np.std(values, ddof=1) / math.sqrt(3)
    assert row["mean"] == pytest.approx(0.93)
    assert row["low"] == pytest.approx(0.93 - half, rel=1e-6)
    assert row["high"] == pytest.approx(0.93 + half, rel=1e-6)
    assert row["n"] == 3
    single = summarise(measured[:1]).iloc[0]
    assert math.isnan(single["low"])


def test_an_unknown_classifier_is_refused():
    with pytest.raises(ValueError, match="among LR, CNN, RNN, received SVM"):
        measure({"x": TRAIN}, TEST, [0], names=["SVM"])


@pytest.mark.parametrize(
    "options", [{"steps": 0}, {"word_dropout": -1.0}, {"learning_rate": math.nan}]
)
def test_settings_are_checked(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        RNNClassifier(**options)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "floor"), zip(ALL, [0.93, 0.92, 0.90], strict=True))
def test_original_youtube_comments_reach_the_floor(kind, floor, data_dir):
    data = read("youtube_spam", data_dir=data_dir).deduplicate()
    scores = []
    for seed in (0, 1, 2):
        parts = split(data, seed=seed)
        scores.append(kind(seed=seed).fit(parts.train).score(parts.validation))
    assert np.mean(scores) >= floor
