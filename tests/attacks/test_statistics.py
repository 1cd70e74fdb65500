from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from tfpriv.attacks import Estimate, _statistics

RNG = np.random.default_rng(7)


def guesses(n: int, classes: int, decimals: int) -> tuple[np.ndarray, np.ndarray]:
    """Rounded probabilities, so that many rows tie, and truths of every class."""
    truth = np.r_[np.arange(classes), RNG.integers(0, classes, n - classes)]
    guess = RNG.dirichlet(np.ones(classes), n).round(decimals)
    return guess / guess.sum(axis=1, keepdims=True), truth


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("decimals", [1, 8])
def test_scores_are_those_of_scikit_learn(classes, decimals):
    guess, truth = guesses(60, classes, decimals)
    measured = _statistics.measure(guess, truth, np.ones((1, 60)))
    one_hot = truth[:, None] == np.arange(classes)
    predicted = guess.argmax(axis=1)
    expected = {
        "auc": roc_auc_score(one_hot, guess, average="macro"),
        "macro_f1": f1_score(truth, predicted, average="macro"),
        "balanced_accuracy": balanced_accuracy_score(truth, predicted),
        "accuracy": np.mean(truth == predicted),
    }
    assert set(measured) == set(expected)
    for name, value in expected.items():
        assert measured[name] == pytest.approx([value], abs=1e-12), name


def test_a_weight_is_a_number_of_copies():
    guess, truth = guesses(40, 3, 1)
    weights = RNG.integers(0, 4, (5, 40)).astype(float)
    measured = _statistics.measure(guess, truth, weights)
    for i, weight in enumerate(weights):
        rows = np.repeat(np.arange(40), weight.astype(int))
        whole = np.ones((1, len(rows)))
        copied = _statistics.measure(guess[rows], truth[rows], whole)
        for name, values in measured.items():
            assert values[i] == pytest.approx(copied[name][0], abs=1e-12), name


def test_a_class_that_is_not_drawn_is_left_out_of_the_means():
    guess, truth = np.eye(3)[[0, 1, 2, 2]], np.array([0, 1, 2, 2])
    measured = _statistics.measure(
        guess, truth, np.array([[1.0, 1, 0, 0], [2, 0, 0, 0]])
    )
    assert measured["macro_f1"].tolist() == [1, 1]
    assert measured["balanced_accuracy"].tolist() == [1, 1]
    assert measured["auc"][0] == 1
    assert np.isnan(measured["auc"][1])


def test_a_guess_of_a_class_without_test_rows_is_wrong():
    guess = np.array([[0.1, 0.2, 0.7], [0.2, 0.3, 0.5], [0.9, 0.1, 0.0]])
    measured = _statistics.measure(guess, np.array([1, 1, 0]), np.ones((1, 3)))
    assert measured["accuracy"] == pytest.approx([1 / 3])
    assert measured["macro_f1"] == pytest.approx([0.5])
    assert measured["auc"] == pytest.approx([1.0])


def test_permuted_auc_is_the_auc_of_permuted_truths():
    guess, truth = guesses(30, 3, 1)
    areas = _statistics.permuted_auc(np.random.default_rng(3), [[guess]], truth, 6)
    permuted = np.random.default_rng(3).permuted(np.tile(truth, (6, 1)), axis=1)
    expected = [_statistics.auc(guess, row, np.ones((1, 30)))[0] for row in permuted]
    assert areas[0][0] == pytest.approx(expected, abs=1e-12)


def test_work_in_pieces_gives_as_many_resamples(monkeypatch):
    monkeypatch.setattr(_statistics, "_MOST_CELLS", 100)
    groups = np.repeat(np.arange(10), 3)
    weights = np.concatenate(
        list(_statistics.resample(np.random.default_rng(0), groups, 25))
    )
    assert weights.shape == (25, 30)
    # Rows of a group have the same weight, and ten groups are drawn each time.
    assert (weights[:, ::3] == weights[:, 1::3]).all()
    assert (weights[:, ::3].sum(axis=1) == 10).all()
    guess, truth = guesses(30, 2, 1)
    areas = _statistics.permuted_auc(np.random.default_rng(0), [[guess]], truth, 25)
    assert areas[0][0].shape == (25,)
    assert (areas[0][0] > 0).all()


def test_an_interval_joins_rows_and_trainings():
    rows = np.random.default_rng(0).normal(0.6, 0.03, 200_000)
    alone = Estimate.combine([0.6], rows, confidence=0.95)
    assert alone.high - alone.value == pytest.approx(1.96 * 0.03, rel=0.01)
    same = Estimate.combine([0.6, 0.6, 0.6], rows, confidence=0.95)
    assert same == alone
    # s = .05: s^2 / 3 = .00083; with .0009, t has 2 (.00173 / .00083)^2 = 8.65 degrees.
    apart = Estimate.combine([0.55, 0.6, 0.65], rows, confidence=0.95)
    assert apart.high - apart.value == pytest.approx(2.276 * 0.04163, rel=0.01)


def test_an_interval_ends_at_0_and_1():
    estimate = Estimate.combine([0.99], np.array([0.9, 1.0]), confidence=0.95)
    # Sixty of sixty right: Clopper and Pearson's .025^(1/60).
    right = Estimate.combine([1.0], np.ones(9), confidence=0.95, rows=60)
    assert (right.low, right.high) == (pytest.approx(0.94037, abs=1e-5), 1.0)
    assert estimate.high == 1
    assert str(estimate) == f"0.990 [{estimate.low:.3f}, 1.000]"
    assert estimate.to_json() == {"value": 0.99, "low": estimate.low, "high": 1.0}
