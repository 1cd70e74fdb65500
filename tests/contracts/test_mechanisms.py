"""What every mechanism that adds noise must satisfy, and twins that must not pass.

A mechanism here has `release(array) -> array`, `l2_sensitivity` and `event()`. False
alarms are seven standard errors away.
"""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

from tfpriv.accounting import Gaussian
from tfpriv.mechanisms import GaussianCounts

SIZE = 3000
TRUE = np.arange(SIZE, dtype=np.float64) % 7


def _noise(mechanism):
    return mechanism.release(TRUE) - TRUE


def _correlation(a, b):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nan_to_num(np.corrcoef(a, b)[0, 1], nan=1.0)


def check_noise_has_the_scale_that_is_accounted(mechanism):
    claimed = mechanism.event().noise_multiplier * mechanism.l2_sensitivity
    ratio = np.sqrt(np.mean(_noise(mechanism) ** 2)) / claimed
    assert abs(ratio - 1) < 7 / np.sqrt(2 * SIZE)


def check_noise_is_centred(mechanism):
    noise = _noise(mechanism)
    assert abs(noise.mean()) < 7 * noise.std() / np.sqrt(SIZE)


def check_every_coordinate_has_its_own_draw(mechanism):
    noise = _noise(mechanism)
    assert len(np.unique(noise)) > 0.9 * SIZE
    assert abs(_correlation(noise[1:], noise[:-1])) < 7 / np.sqrt(SIZE)


def check_every_call_has_its_own_draw(mechanism):
    assert abs(_correlation(_noise(mechanism), _noise(mechanism))) < 7 / np.sqrt(SIZE)


def check_a_seed_has_no_power(mechanism):
    np.random.seed(0)  # noqa: NPY002
    first = _noise(mechanism)
    np.random.seed(0)  # noqa: NPY002
    assert not np.array_equal(first, _noise(mechanism))


def check_noise_is_gaussian(mechanism):
    noise = _noise(mechanism)
    kurtosis = np.mean(noise**4) / np.mean(noise**2) ** 2
    assert abs(kurtosis - 3) < 7 * np.sqrt(24 / SIZE)


def check_noise_does_not_depend_on_the_counts(mechanism):
    quiet = mechanism.release(np.zeros(SIZE)).std()
    loud = (mechanism.release(np.full(SIZE, 1e6)) - 1e6).std()
    assert abs(loud / quiet - 1) < 14 / np.sqrt(2 * SIZE)


CHECKS = [value for name, value in globals().copy().items() if name[:6] == "check_"]


@dataclasses.dataclass
class Twin:
    """Gaussian counts without OpenDP; each subclass gets one thing wrong."""

    l2_sensitivity: float = 2.0
    noise_multiplier: float = 1.5

    def event(self):
        return Gaussian(self.noise_multiplier)

    def draw(self, values):
        scale = self.noise_multiplier * self.l2_sensitivity
        return np.random.default_rng().normal(0, scale, values.shape)

    def release(self, values):
        return values + self.draw(values)


class DrawnOnce(Twin):
    def draw(self, values):
        if not hasattr(self, "kept"):
            self.kept = super().draw(values)
        return self.kept


class OneDrawForAll(Twin):
    def draw(self, values):
        return np.full(values.shape, super().draw(values[:1])[0])


class TwoThirds(Twin):
    def draw(self, values):
        return super().draw(values) * 2 / 3


class ThreeHalves(Twin):
    def draw(self, values):
        return super().draw(values) * 3 / 2


class ForgetsSensitivity(Twin):
    def draw(self, values):
        return super().draw(values) / self.l2_sensitivity


class Seeded(Twin):
    def draw(self, values):
        scale = self.noise_multiplier * self.l2_sensitivity
        return np.random.normal(0, scale, values.shape)  # noqa: NPY002


class Laplace(Twin):
    def draw(self, values):
        scale = self.noise_multiplier * self.l2_sensitivity / np.sqrt(2)
        return np.random.default_rng().laplace(0, scale, values.shape)


@dataclasses.dataclass
class ClampsAtZero(Twin):
    # Wide enough that half of it is cut off: at 1.5 one twin in a hundred passed.
    noise_multiplier: float = 15.0

    def release(self, values):
        return np.maximum(super().release(values), 0)


class Multiplies(Twin):
    def draw(self, values):
        return super().draw(values) * (1 + np.abs(values))


TWINS = [
    (DrawnOnce, check_every_call_has_its_own_draw),
    (OneDrawForAll, check_every_coordinate_has_its_own_draw),
    (TwoThirds, check_noise_has_the_scale_that_is_accounted),
    (ThreeHalves, check_noise_has_the_scale_that_is_accounted),
    (ForgetsSensitivity, check_noise_has_the_scale_that_is_accounted),
    (Seeded, check_a_seed_has_no_power),
    (Laplace, check_noise_is_gaussian),
    (ClampsAtZero, check_noise_is_centred),
    (Multiplies, check_noise_does_not_depend_on_the_counts),
]
MECHANISMS = [GaussianCounts(2.0, 1.5), GaussianCounts(10**0.5, 0.01), Twin()]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_mechanism(mechanism, check):
    check(mechanism)


@pytest.mark.parametrize(("twin", "check"), TWINS, ids=[t.__name__ for t, _ in TWINS])
def test_a_broken_twin_is_rejected(twin, check):
    with pytest.raises(AssertionError):
        check(twin())
