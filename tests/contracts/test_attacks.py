"""What an attack must satisfy, and twins that must not pass.

An attack here is called with training and test representations and private labels and
gives a result with `worst.auc` and `leaks`. Intervals of the checks hold with
probability 1 - 1e-9, so that a false alarm is out of the question.
"""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tfpriv.attacks import AttributeInferenceAttack


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(limits=1):
        yield


ATTACKERS = ("logistic_regression", "balanced_logistic_regression", "mlp")


def noise(n, seed, d=40):
    rng = np.random.default_rng(seed)
    return rng.laplace(size=(n, d)), np.r_[0, 1, rng.integers(0, 2, n - 2)]


class Honest:
    """The attack of the package."""

    def __call__(self, x_train, y_train, x_test, y_test):
        attack = AttributeInferenceAttack(
            ATTACKERS, seeds=(0, 1), confidence=1 - 1e-9, resamples=200
        )
        return attack.fit_score(x_train, y_train, x_test, y_test)


class TestedOnTrainingRows(Honest):
    __test__ = False

    def __call__(self, x_train, y_train, x_test, y_test):
        return super().__call__(x_train, y_train, x_train, y_train)


class TrainedOnTestRows(Honest):
    def __call__(self, x_train, y_train, x_test, y_test):
        return super().__call__(x_test, y_test, x_test, y_test)


class SeesTheLabel(Honest):
    def __call__(self, x_train, y_train, x_test, y_test):
        parts = ((x_train, y_train), (x_test, y_test))
        a, b = (np.concatenate([x, y[:, None]], axis=1) for x, y in parts)
        return super().__call__(a, y_train, b, y_test)


class ShufflesItsLabels(Honest):
    def __call__(self, x_train, y_train, x_test, y_test):
        mixed = np.random.default_rng(0).permutation(y_train)
        return super().__call__(x_train, mixed, x_test, y_test)


class LosesTheOrderOfRows(Honest):
    def __call__(self, x_train, y_train, x_test, y_test):
        order = np.random.default_rng(0).permutation(len(x_test))
        return super().__call__(x_train, y_train, x_test[order], y_test)


def check_noise_is_no_leak(attack):
    result = attack(*noise(200, 0), *noise(200, 1))
    worst = result.worst.adjusted_auc
    assert worst.low <= 0.5 <= worst.high
    assert not result.leaks


def check_what_is_told_is_found(attack):
    parts = []
    for seed in (0, 1):
        x, y = noise(200, seed)
        x[:, 0] += 6 * y
        parts += [x, y]
    result = attack(*parts)
    assert result.worst.adjusted_auc.low > 0.5
    assert result.worst.macro_f1.value > 0.8


CHECKS = [value for name, value in globals().copy().items() if name[:6] == "check_"]
TWINS = [
    (TestedOnTrainingRows, check_noise_is_no_leak),
    (TrainedOnTestRows, check_noise_is_no_leak),
    (SeesTheLabel, check_noise_is_no_leak),
    (ShufflesItsLabels, check_what_is_told_is_found),
    (LosesTheOrderOfRows, check_what_is_told_is_found),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_attribute_inference(check):
    check(Honest())


@pytest.mark.parametrize(("twin", "check"), TWINS, ids=[t.__name__ for t, _ in TWINS])
def test_a_broken_twin_is_rejected(twin, check):
    with pytest.raises(AssertionError):
        check(twin())


def test_noise_is_called_a_leak_as_seldom_as_the_confidence_says():
    """Seeded, so that the outcome is the same each time."""
    attack = AttributeInferenceAttack(ATTACKERS[:1], seeds=(0,), resamples=200)
    results = [
        attack.fit_score(*noise(60, 2 * i, d=3), *noise(60, 2 * i + 1, d=3))
        for i in range(50)
    ]
    assert sum(result.leaks for result in results) <= 6
    inside = [r.attackers[0].auc.low <= 0.5 <= r.attackers[0].auc.high for r in results]
    assert sum(inside) >= 43
