"""The one-run audit: its bound holds, its ceiling is printed, its input is checked."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfpriv._errors import InputError
from tfpriv.attacks.one_run import audit_one_run, epsilon_from_guesses


def test_a_thousand_records_cannot_refute_a_claim_above_5_8():
    assert epsilon_from_guesses(1000, 1000, 1000, delta=0) == pytest.approx(
        5.81, abs=0.01
    )
    # All guesses right: e^eps / (1 + e^eps) = .05^(1 / m), worked out by hand.
    rate = 0.05 ** (1 / 1000)
    by_hand = math.log(rate / (1 - rate))
    found = epsilon_from_guesses(1000, 1000, 1000, delta=0)
    assert found == pytest.approx(by_hand, abs=1e-5)


def test_the_ceiling_stands_beside_the_bound():
    coins = np.arange(1000) % 2 == 0
    audit = audit_one_run(coins, np.random.default_rng(0).normal(size=1000))
    assert audit.epsilon_lower < audit.ceiling == audit.records_ceiling < 5.82
    assert f"{audit.records_ceiling:.2f}" in str(audit)
    fewer = audit_one_run(coins, coins.astype(float), guesses=200)
    assert fewer.correct == 200
    assert fewer.epsilon_lower == fewer.ceiling < fewer.records_ceiling


def test_no_evidence_is_not_called_safe():
    coins = np.arange(100) % 2 == 0
    text = str(audit_one_run(coins, np.zeros(100)))
    assert "no evidence" in text
    assert "safe" not in text


@given(
    guesses=st.integers(2, 300), correct=st.integers(0, 300), delta=st.floats(0, 1e-3)
)
def test_more_right_guesses_never_lower_the_bound_nor_delta_raise_it(
    guesses, correct, delta
):
    correct = min(correct, guesses)
    bound = epsilon_from_guesses(300, guesses, correct, delta=delta)
    assert 0 <= bound <= epsilon_from_guesses(300, guesses, correct, delta=0) + 1e-5
    if correct < guesses:
        more = epsilon_from_guesses(300, guesses, correct + 1, delta=delta)
        assert bound <= more + 1e-5


def test_more_audits_lower_the_bound():
    one, ten = (
        epsilon_from_guesses(300, 300, 240, audits_tried=tried) for tried in (1, 10)
    )
    assert 0 < ten < one


def test_the_highest_are_guessed_in_and_the_lowest_out():
    coins = np.array([True, True, False, True, False, False])
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    assert audit_one_run(coins, scores, guesses=4).correct == 4
    assert audit_one_run(coins, scores).correct == 4
    assert audit_one_run(coins, -scores, guesses=4).correct == 0


@pytest.mark.parametrize(
    ("coins", "scores", "settings", "words"),
    [
        ([1, 0], [0.0, 1.0], {}, "True or False"),
        ([True, False], [0.0], {}, "one score a coin"),
        ([True, False], [0.0, np.nan], {}, "position 1"),
        ([True, False], [0.0, 1.0], {"guesses": 3}, "even number"),
        ([True, False], [0.0, 1.0], {"guesses": 4}, "at most 2"),
        ([True, False], [0.0, 1.0], {"delta": 2.0}, "delta"),
        ([True, False], [0.0, 1.0], {"confidence": 1.0}, "confidence"),
    ],
)
def test_bad_input_is_named(coins, scores, settings, words):
    with pytest.raises(InputError, match=words) as caught:
        audit_one_run(coins, scores, **settings)
    assert "\n" not in str(caught.value)
