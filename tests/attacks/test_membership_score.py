from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from sklearn.metrics import roc_auc_score, roc_curve

from tfpriv._errors import InputError
from tfpriv.attacks import MembershipScore, score_membership
from tfpriv.attacks import _membership_rates as rates
from tfpriv.attacks.membership_score import epsilon_ceiling

scores = st.lists(st.integers(0, 6), min_size=2, max_size=40).map(np.array)


def normal(seed: int, shift: float, members: int = 200, others: int = 300):
    rng = np.random.default_rng(seed)
    return rng.normal(shift, 1, members), rng.normal(0, 1, others)


@given(scores, scores)
def test_figures_are_those_of_scikit_learn(members, others):
    found = score_membership("x", members, others)
    truth = np.r_[np.ones(len(members)), np.zeros(len(others))]
    every = np.r_[members, others]
    assert found.auc.value == pytest.approx(roc_auc_score(truth, every))
    fpr, tpr, _ = roc_curve(truth, every, drop_intermediate=False)
    assert found.advantage.value == pytest.approx(np.max(tpr - fpr))
    for rate, value in found.tpr.items():
        assert value.value == pytest.approx(tpr[fpr <= rate + 1e-9].max())
    for value in (found.auc, found.advantage, *found.tpr.values()):
        assert 0 <= value.low <= value.value <= value.high <= 1


@given(scores, scores)
def test_only_the_order_of_scores_counts(members, others):
    plain = score_membership("x", members, others).to_json()
    assert score_membership("x", np.exp(members), np.exp(others)).to_json() == plain
    everywhere = np.where(members > 5, np.inf, members)
    assert score_membership("x", everywhere, others).auc.value <= 1


def test_a_bound_worked_out_by_hand():
    """One threshold, so that nothing but the two intervals is in the bound."""
    members, others = np.r_[np.ones(40), np.zeros(10)], np.zeros(1)
    low, high = rates.bounds_at_ranks(members, others, error=0.1)
    assert low == pytest.approx(beta.ppf(0.05, 40, 11))
    # The share above one draw is uniform: below .95 with probability .95.
    assert high == pytest.approx(0.95)


def test_an_epsilon_worked_out_by_hand():
    """Nine members above one non-member: the rate B above that one is uniform.

    All nine are above with probability E min(1, e^epsilon B)^9, which is
    1 - .9 e^-epsilon: .45, the error of this direction, at e^epsilon = .9 / .55.
    """
    members, others = np.ones(9), np.zeros(1)
    found = rates.epsilon_from_below(members, others, error=0.9, delta=0)
    assert found == pytest.approx(math.log(0.9 / 0.55), abs=0.01)
    assert found <= math.log(0.9 / 0.55)


def test_an_attack_that_is_never_wrong_reaches_the_ceiling():
    found = score_membership("x", np.arange(500) + 500, np.arange(500))
    assert found.auc.value == found.advantage.value == 1
    assert found.auc.low > 0.97
    assert found.epsilon_lower == pytest.approx(epsilon_ceiling(500, 500))
    assert found.succeeds
    # More records, fewer attacks, less certainty: the ceiling is higher.
    assert 4 < epsilon_ceiling(500, 500) < epsilon_ceiling(1000, 1000)
    assert epsilon_ceiling(500, 500, attacks_tried=10) < epsilon_ceiling(500, 500)
    assert epsilon_ceiling(500, 500, confidence=0.5) > epsilon_ceiling(500, 500)
    assert epsilon_ceiling(500, 500, delta=0.5) < epsilon_ceiling(500, 500)


def test_members_that_alone_score_low_count_too():
    """Who certainly was not in it is told as well, by the complement."""
    others = np.r_[np.zeros(400), np.ones(100)]
    assert score_membership("x", np.ones(500), others).epsilon_lower > 3


def test_an_attack_the_wrong_way_round_does_not_succeed():
    members, others = normal(0, -1)
    found = score_membership("x", members, others)
    assert found.auc.high < 0.5
    assert not found.succeeds


def test_a_low_rate_that_so_few_records_cannot_show_is_left_open():
    few = score_membership("x", np.arange(100) + 100, np.arange(100))
    assert few.tpr[0.001].low == 0
    many = score_membership("x", np.arange(100) + 10_000, np.arange(10_000))
    assert many.tpr[0.001].low > 0.9


def test_attacks_that_were_tried_are_paid_for():
    members, others = normal(1, 1)
    one = score_membership("x", members, others)
    ten = score_membership("x", members, others, attacks_tried=10)
    assert one.auc.value == ten.auc.value
    for narrow, wide in (
        (one.auc, ten.auc),
        (one.advantage, ten.advantage),
        (one.tpr[0.01], ten.tpr[0.01]),
    ):
        assert wide.low <= narrow.low
        assert wide.high >= narrow.high
    assert ten.auc.low < one.auc.low
    assert 0 < ten.epsilon_lower < one.epsilon_lower


def test_the_curve_is_short_and_keeps_both_ends():
    members, others = normal(2, 1, 3000, 3000)
    found = score_membership("x", members, others)
    fpr, tpr = found.curve
    assert 100 < len(fpr) == len(tpr) <= 200
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert (np.diff(fpr) > 0).sum() >= len(fpr) - 2
    assert (np.diff(tpr) >= 0).all()
    assert (fpr < 0.01).sum() > 20  # a logarithmic axis has something to show


def test_json_holds_all_of_it():
    found = score_membership("x", *normal(3, 1), attacks_tried=3, delta=1e-6)
    value = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert value["tpr"]["0.01"] == found.tpr[0.01].to_json()
    assert value["members"], value["non_members"] == (200, 300)
    again = MembershipScore.from_json(value)
    assert again.to_json() == found.to_json()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"member_scores": [1.0]}, "shape (1,)"),
        ({"member_scores": [[1.0, 2.0]]}, "shape (1, 2)"),
        ({"non_member_scores": [1.0, math.nan]}, "position 1"),
        ({"confidence": 1.0}, "confidence=1.0"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"delta": math.nan}, "delta=nan"),
        ({"attacks_tried": 0}, "attacks_tried=0"),
    ],
)
def test_what_cannot_be_scored_is_refused(change, words):
    given = {"member_scores": [0.0, 1.0], "non_member_scores": [0.0, 1.0]}
    with pytest.raises(InputError) as caught:
        score_membership("x", **(given | change))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


# How often a bound is wrong. An audit tries several attacks and reports the worst.

AUDITS, ATTACKS = 200, 5


class Corrected:
    """The bounds of the package."""

    def epsilon(self, members, others):
        error = 0.05 / ATTACKS
        return rates.epsilon_from_below(members, others, error=error, delta=0)

    def area(self, members, others):
        return rates.area(members, others, error=0.05 / ATTACKS)


class ThresholdOfTheSameRecords(Corrected):
    """The best threshold is chosen where it is tested, and not paid for."""

    def epsilon(self, members, others):
        thresholds = np.sort(others)[::10]
        hits = (members[:, None] > thresholds).sum(axis=0)
        alarms = (others[:, None] > thresholds).sum(axis=0)
        low = rates.share_from_below(hits, len(members), error=0.025)
        high = beta.ppf(0.975, alarms + 1, len(others) - alarms)
        return math.log(max(np.max(low / high), 1))


class EachThresholdAlone(Corrected):
    """The test of the package at every rank, in both directions, for every attack,
    each as if it were the only one."""

    def epsilon(self, members, others):
        looks = 2 * len(rates.preset_ranks(len(others)))
        return rates.epsilon_from_below(members, others, error=0.05 * looks, delta=0)


class OneAttackOfFive(Corrected):
    """The best of five attacks, as if it were the only one."""

    def area(self, members, others):
        return rates.area(members, others, error=0.05)


class NoInterval(Corrected):
    """The rates of these records, as if they were those of all."""

    def epsilon(self, members, others):
        hits = (members > 0).mean()
        return math.log(hits / max((others > 0).mean(), 1e-9))


def check_bounds_on_nothing(bounds):
    """Where nothing is told, at most one audit in twenty says that something is."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(AUDITS):
        attacks = [(rng.normal(size=100), rng.normal(size=150)) for _ in range(ATTACKS)]
        alarms += any(
            bounds.epsilon(*attack) > 0 or bounds.area(*attack)[1] > 0.5
            for attack in attacks
        )
    assert alarms <= 0.05 * AUDITS


def check_bounds_on_a_known_epsilon(bounds):
    """Randomised response of epsilon 2: the bound stays below it."""
    rng = np.random.default_rng(1)
    told = math.exp(2) / (1 + math.exp(2))
    found = [
        bounds.epsilon(rng.random(200) < told, rng.random(200) > told)
        for _ in range(AUDITS)
    ]
    assert np.mean(np.array(found) > 2) <= 0.05
    assert np.mean(found) > 0.5  # and says something


class Bits(Corrected):
    def epsilon(self, members, others):
        return super().epsilon(members.astype(float), others.astype(float))


def test_bounds_pay_for_thresholds_and_attacks():
    check_bounds_on_nothing(Corrected())
    check_bounds_on_a_known_epsilon(Bits())


@pytest.mark.parametrize(
    ("twin", "check"),
    [
        (ThresholdOfTheSameRecords, check_bounds_on_nothing),
        (EachThresholdAlone, check_bounds_on_nothing),
        (OneAttackOfFive, check_bounds_on_nothing),
        (NoInterval, check_bounds_on_a_known_epsilon),
    ],
)
def test_a_broken_twin_is_rejected(twin, check):
    with pytest.raises(AssertionError):
        check(twin())


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say():
    rng = np.random.default_rng(2)
    # Members are one unit higher: the area is Phi(1 / sqrt 2), the best advantage
    # 2 Phi(1/2) - 1, the true positive rate at .01 is 1 - Phi(2.3263 - 1).
    truth = {"auc": 0.76025, "advantage": 0.38292, 0.01: 0.09236}
    missed = dict.fromkeys(truth, 0)
    for _ in range(200):
        members, others = rng.normal(1, 1, 400), rng.normal(0, 1, 600)
        found = score_membership("x", members, others)
        values = {"auc": found.auc, "advantage": found.advantage, 0.01: found.tpr[0.01]}
        for name, value in values.items():
            missed[name] += not value.low <= truth[name] <= value.high
    assert missed["auc"] <= 18
    assert missed["advantage"] <= 10
    assert missed[0.01] <= 10


def test_an_area_of_0_or_1_has_an_interval_too():
    """Few records that are apart do not show that all are."""
    few, more = (score_membership("x", np.ones(n), np.zeros(n)).auc for n in (60, 600))
    assert few.value == few.high == 1
    assert 0.9 < few.low < more.low < 0.999
    none = score_membership("x", np.zeros(60), np.ones(60)).auc
    assert (none.low, none.high) == (0, pytest.approx(1 - few.low))


def test_an_interval_near_1_holds_as_often_as_it_says():
    rng = np.random.default_rng(3)
    truth = 0.99766  # Phi(4 / sqrt 2)
    missed = 0
    for _ in range(100):
        found = score_membership("x", rng.normal(4, 1, 60), rng.normal(0, 1, 60)).auc
        missed += not found.low <= truth <= found.high
    assert missed <= 11
