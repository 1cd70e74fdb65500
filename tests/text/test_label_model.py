"""Scores worked out by hand, and what must not count."""

import numpy as np
import pytest

from tfpriv.text.label_model import LabelModel

NO_LENGTHS = np.zeros((2, 4))
# Class 0 says word 0 a lot, class 1 word 1; word 2 is everybody's.
TOKENS = np.array([[90.0, 10.0, 50.0], [10.0, 90.0, 50.0]])


def test_a_text_goes_to_the_class_that_says_its_words():
    model = LabelModel(TOKENS, NO_LENGTHS)
    assert model.predict([[0, 2], [1, 2]], [1, 1]).tolist() == [0, 1]


def test_a_score_is_the_tempered_log_probability_of_the_distinct_words():
    model = LabelModel(TOKENS, NO_LENGTHS)
    smooth = TOKENS + 0.05
    logs = np.log(smooth / smooth.sum(1, keepdims=True))
    scores = model.scores([[0, 1, 1, 1]], [2])[0]
    assert scores[0] - scores[1] == pytest.approx(
        0.5 * (logs[0, 0] + logs[0, 1] - logs[1, 0] - logs[1, 1])
    )


def test_how_often_a_word_comes_does_not_count():
    model = LabelModel(TOKENS, NO_LENGTHS)
    once, often = model.scores([[0, 2], [0, 0, 0, 2, 0]], [1, 1])
    np.testing.assert_allclose(once, often)


def test_without_words_the_length_decides():
    lengths = np.array([[80.0, 20, 0, 0], [0, 0, 20, 80]])
    model = LabelModel(np.ones((2, 3)), lengths)
    assert model.predict([[], []], [0, 3]).tolist() == [0, 1]


def test_the_larger_class_is_likelier_where_nothing_else_tells():
    lengths = np.array([[10.0, 10, 10, 10], [30, 30, 30, 30]])
    scores = LabelModel(np.ones((2, 3)), lengths).scores([[]], [1])[0]
    assert scores[1] - scores[0] == pytest.approx(np.log(3), abs=0.1)


def test_lengths_near_those_seen_are_likelier_than_far_ones():
    lengths = np.array([[0.0, 60, 0, 0, 0, 0], [10, 10, 10, 10, 10, 10]])
    scores = LabelModel(np.ones((2, 3)), lengths).scores([[], []], [2, 5])
    near, far = scores[:, 0] - scores[:, 1]
    assert near > far


def test_counts_of_nothing_at_all_give_finite_scores():
    model = LabelModel(np.zeros((3, 5)), np.zeros((3, 4)))
    scores = model.scores([[], [4]], [0, 3])
    assert scores.shape == (2, 3)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores[0], scores[0, 0])
