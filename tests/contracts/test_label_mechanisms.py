"""What a mechanism that releases labels must satisfy, and twins that must not pass.

A mechanism here has `labels`, `release(values) -> list`, `estimate_counts` and
`event()`. False alarms are seven standard errors away.
"""

from __future__ import annotations

import collections
import math
import random
import secrets

import pytest

from tfpriv.accounting import PureDP
from tfpriv.mechanisms import RandomizedResponse

SIZE = 6000


def _near(share, probability, size=SIZE):
    error = math.sqrt(probability * (1 - probability) / size)
    return abs(share - probability) < 7 * error


def _kept(mechanism, label):
    released = mechanism.release([label] * SIZE)
    return [value == label for value in released]


def _correlated(first, second):
    """Whether two series of yes and no go together more than chance lets them."""
    size = len(first)
    a, b = sum(first) / size, sum(second) / size
    both = sum(x and y for x, y in zip(first, second, strict=True)) / size
    spread = math.sqrt(a * (1 - a) * b * (1 - b))
    return spread == 0 or abs(both - a * b) > 7 * spread / math.sqrt(size)


def check_only_declared_labels_come_out(mechanism):
    released = mechanism.release(list(mechanism.labels) * 500)
    assert len(released) == 500 * len(mechanism.labels)
    assert set(released) <= set(mechanism.labels)


def check_labels_are_kept_as_often_as_is_accounted(mechanism):
    odds = math.exp(mechanism.event().epsilon)
    for label in mechanism.labels:
        share = sum(_kept(mechanism, label)) / SIZE
        assert _near(share, odds / (odds + len(mechanism.labels) - 1))


def check_every_other_label_is_as_likely(mechanism):
    odds = math.exp(mechanism.event().epsilon)
    for label in mechanism.labels:
        seen = collections.Counter(mechanism.release([label] * SIZE))
        for other in set(mechanism.labels) - {label}:
            share = seen[other] / SIZE
            assert _near(share, 1 / (odds + len(mechanism.labels) - 1))


def check_every_record_has_its_own_draw(mechanism):
    kept = _kept(mechanism, mechanism.labels[0])
    assert not _correlated(kept[1:], kept[:-1])


def check_every_call_has_its_own_draw(mechanism):
    label = mechanism.labels[0]
    assert not _correlated(_kept(mechanism, label), _kept(mechanism, label))


def check_a_seed_has_no_power(mechanism):
    random.seed(0)
    first = _kept(mechanism, mechanism.labels[0])
    random.seed(0)
    assert first != _kept(mechanism, mechanism.labels[0])


def check_estimates_are_unbiased(mechanism):
    labels = mechanism.labels
    values = [labels[0]] * (SIZE - 1000) + [labels[1]] * 1000
    estimate = mechanism.estimate_counts(mechanism.release(values))
    odds = math.exp(mechanism.event().epsilon)
    gap = (odds - 1) / (odds + len(labels) - 1)
    for label in labels:
        error = 0.5 * math.sqrt(SIZE) / gap
        assert abs(estimate[label] - values.count(label)) < 7 * error


CHECKS = [value for name, value in globals().copy().items() if name[:6] == "check_"]


class Twin:
    """Randomised response on three labels; each subclass gets one thing wrong."""

    labels = ("a", "b", "c")
    epsilon = 1.0

    def event(self):
        return PureDP(self.epsilon)

    def keep_probability(self):
        return 1 / (1 + 2 * math.exp(-self.epsilon))

    def uniform(self):
        return secrets.randbelow(2**53) / 2**53

    def one(self, value):
        if self.uniform() < self.keep_probability():
            return value
        others = [label for label in self.labels if label != value]
        return others[int(self.uniform() * 2)]

    def release(self, values):
        return [self.one(value) for value in values]

    def estimate_counts(self, released):
        keep = self.keep_probability()
        change = (1 - keep) / 2
        return {
            label: (released.count(label) - len(released) * change) / (keep - change)
            for label in self.labels
        }


class TooHonest(Twin):
    def keep_probability(self):
        return 1 / (1 + 2 * math.exp(-1.5 * self.epsilon))


class TooShy(Twin):
    def keep_probability(self):
        return 1 / (1 + 2 * math.exp(-self.epsilon / 1.5))


class ForgetsHowManyLabels(Twin):
    """Warner's probability for two labels."""

    def keep_probability(self):
        return 1 / (1 + math.exp(-self.epsilon))


class MayDrawItselfAgain(Twin):
    def one(self, value):
        if self.uniform() < self.keep_probability():
            return value
        return self.labels[int(self.uniform() * 3)]


class AlwaysTheNext(Twin):
    def one(self, value):
        if self.uniform() < self.keep_probability():
            return value
        return self.labels[(self.labels.index(value) + 1) % 3]


class OneDrawForAll(Twin):
    def release(self, values):
        number = self.uniform()
        self.uniform = lambda: number
        try:
            return super().release(values)
        finally:
            del self.uniform


class DrawnOnce(Twin):
    def release(self, values):
        if not hasattr(self, "kept"):
            self.kept = super().release(values)
        return self.kept


class Seeded(Twin):
    def uniform(self):
        return random.random()


class CountsWhatItSees(Twin):
    def estimate_counts(self, released):
        return {label: released.count(label) for label in self.labels}


class SaysUnknown(Twin):
    def one(self, value):
        return super().one(value) if self.uniform() < 0.9 else "unknown"


TWINS = [
    (TooHonest, check_labels_are_kept_as_often_as_is_accounted),
    (TooShy, check_labels_are_kept_as_often_as_is_accounted),
    (ForgetsHowManyLabels, check_labels_are_kept_as_often_as_is_accounted),
    (MayDrawItselfAgain, check_labels_are_kept_as_often_as_is_accounted),
    (AlwaysTheNext, check_every_other_label_is_as_likely),
    (OneDrawForAll, check_every_record_has_its_own_draw),
    (DrawnOnce, check_every_call_has_its_own_draw),
    (Seeded, check_a_seed_has_no_power),
    (CountsWhatItSees, check_estimates_are_unbiased),
    (SaysUnknown, check_only_declared_labels_come_out),
]
MECHANISMS = {
    "two labels": RandomizedResponse(["ham", "spam"], 2.0),
    "five labels": RandomizedResponse(range(5), 0.5),
    "sound twin": Twin(),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("name", MECHANISMS)
def test_mechanism(name, check):
    check(MECHANISMS[name])


@pytest.mark.parametrize(("twin", "check"), TWINS, ids=[t.__name__ for t, _ in TWINS])
def test_a_broken_twin_is_rejected(twin, check):
    with pytest.raises(AssertionError):
        check(twin())
