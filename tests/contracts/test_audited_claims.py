"""Small audits on neighbouring inputs: what is claimed must survive, twins must not.

An audit draws many releases of either of two neighbouring inputs and counts how many
lie in a set that was fixed beforehand. Exact bounds of the two probabilities
(Clopper & Pearson 1934) give a lower bound on epsilon: e^epsilon >= (p - delta) / q.
Each is wrong once in 10^10 audits, so a sound mechanism practically never fails.
"""

from __future__ import annotations

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from tests.dp_training import models
from tfpriv.accounting import DPSGDPlan, Gaussian, LaplaceCertificate, PureDP, epsilon
from tfpriv.dp_training import DPTrainer
from tfpriv.layers import LaplaceNoise, RandomizedResponseCode
from tfpriv.mechanisms import GaussianCounts, RandomizedResponse

MISTAKE = 1e-10
DELTA = 0.01


def lower_bound(hits: int, others: int, draws: int, delta: float) -> float:
    """Epsilon that `hits` of one input and `others` of its neighbour rule out below."""
    p = stats.beta.ppf(MISTAKE, hits, draws - hits + 1) if hits else 0.0
    q = 1.0
    if others < draws:
        q = stats.beta.ppf(1 - MISTAKE, others + 1, draws - others)
    return math.log((p - delta) / q) if p > delta else 0.0


def audit(releases, neighbours, inside, delta=0.0):
    """The larger lower bound of a set and of its complement, either way round."""
    first, second = inside(releases), inside(neighbours)
    a, b, draws = int(first.sum()), int(second.sum()), len(first)
    pairs = [(a, b), (b, a), (draws - a, draws - b), (draws - b, draws - a)]
    return max(lower_bound(*pair, draws, delta) for pair in pairs)


def test_the_lower_bound_is_one():
    # Of 1000 draws each: exact bounds, worked out by hand for no hit at all.
    q = 1 - MISTAKE ** (1 / 1000)
    p = MISTAKE ** (1 / 1000)
    assert lower_bound(1000, 0, 1000, 0.0) == pytest.approx(math.log(p / q))
    assert lower_bound(500, 500, 1000, 0.0) < 0
    assert lower_bound(0, 0, 1000, 0.0) == 0.0


# Mechanisms: (lower bound, claim).


def audit_counts(mechanism):
    """Every bin is a count of its own; one record moves it by 1."""
    size = 4000
    with_record = mechanism.release(np.ones(size))
    without = mechanism.release(np.zeros(size))
    bound = audit(with_record, without, lambda x: x > 1.0, DELTA)
    return bound, epsilon(mechanism.event(), DELTA)


def audit_response(mechanism):
    size = 20_000
    yes = np.array(mechanism.release([1] * size))
    no = np.array(mechanism.release([0] * size))
    claim = epsilon(mechanism.event(), 1e-9)
    return audit(yes, no, lambda x: x == 1), claim


def audit_step(kind, draws=250):
    """One record that pulls as hard as it can, against none at all."""
    plan = DPSGDPlan(1, 1, draws, noise_multiplier=2.0, l2_norm_clip=3.0)

    def releases(rows):
        trainer = kind(models.linear(), models.linear_loss, plan, learning_rate=1e-9)
        inputs = np.full((rows, 2), 1e4, np.float32)
        return np.array(
            [trainer.step((inputs,))["noised_gradient_norm"] for _ in range(draws)]
        )

    with_record, without = releases(1), releases(0)
    # Half the clipping norm, for noise that is missing; ten times the noise, for a
    # record that was not clipped.
    bound = max(
        audit(with_record, without, lambda x: x > 1.5, DELTA),
        audit(with_record, without, lambda x: x > 60.0, DELTA),
    )
    return bound, epsilon(plan.step_event(), DELTA)


def audit_representation(layer):
    """Opposite corners of the ball, which no two texts' vectors exceed."""
    size = 20_000
    corner = np.zeros((size, 3), np.float32)
    corner[:, 0] = layer.radius
    first, second = np.asarray(layer(corner)), np.asarray(layer(-corner))
    certificate = LaplaceCertificate(3, layer.scale, "l1_ball", layer.radius)
    claim = epsilon(certificate.event(), 1e-9)
    return audit(first[:, 0], second[:, 0], lambda x: x > layer.radius), claim


def audit_code(layer):
    size = 20_000
    logits = np.tile(np.float32([5.0, 0.0, 0.0]), (size, 1))
    first = np.asarray(layer(logits))[:, 0]
    second = np.asarray(layer(logits[:, ::-1]))[:, 0]
    return audit(first, second, lambda x: x > 0.5), epsilon(PureDP(1.0), 1e-9)


class QuietCounts(GaussianCounts):
    """A third of the noise."""

    def release(self, counts):
        return counts + (super().release(counts) - counts) / 3


class CandidResponse(RandomizedResponse):
    """Tells the truth every other time, whatever the draw was."""

    def release(self, values):
        drawn = super().release(values)
        pairs = zip(values, drawn, strict=True)
        return [true if i % 2 else answer for i, (true, answer) in enumerate(pairs)]


class NoNoise(DPTrainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.optimizer.noise_multiplier = 0.0


class ClipSkipped(DPTrainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # Not 1e30: sums are whole multiples of a unit that grows with it.
        self.engine.l2_norm_clip = 1e6


class UnitSensitivity(keras.layers.Layer):
    """The papers' reading: noise for a sensitivity of 1, where it is 2 radius."""

    def __init__(self, scale, radius):
        super().__init__()
        self.scale, self.radius = scale, radius
        self.inner = LaplaceNoise(scale / (2 * radius), radius=radius)

    def call(self, inputs):
        return self.inner(inputs)


class Unbounded(keras.layers.Layer):
    """Adds the noise and leaves the vector as long as it is."""

    def __init__(self, scale, radius):
        super().__init__()
        self.scale, self.radius = scale, radius

    def call(self, inputs):
        uniform = tf.random.uniform(tf.shape(inputs), -0.5, 0.5)
        noise = -tf.sign(uniform) * tf.math.log1p(-2 * tf.abs(uniform)) * self.scale
        return 4 * inputs + noise


class LouderCode(keras.layers.Layer):
    """Thrice the epsilon."""

    def __init__(self):
        super().__init__()
        self.inner = RandomizedResponseCode(3, 3.0)

    def call(self, inputs):
        return self.inner(inputs)


SOUND = {
    "counts": lambda: audit_counts(GaussianCounts(1.0, 1.0)),
    "counts, loud": lambda: audit_counts(GaussianCounts(1.0, 4.0)),
    "response": lambda: audit_response(RandomizedResponse((0, 1, 2), 1.0)),
    "step": lambda: audit_step(DPTrainer),
    "representation": lambda: audit_representation(LaplaceNoise(2.0, radius=1.0)),
    "representation, wide": lambda: audit_representation(LaplaceNoise(8.0, radius=4.0)),
    "code": lambda: audit_code(RandomizedResponseCode(3, 1.0)),
}
TWINS = {
    "a third of the noise": lambda: audit_counts(QuietCounts(1.0, 1.0)),
    "every other truth": lambda: audit_response(CandidResponse((0, 1, 2), 1.0)),
    "no noise": lambda: audit_step(NoNoise),
    "no clipping": lambda: audit_step(ClipSkipped),
    "sensitivity taken as 1": lambda: audit_representation(UnitSensitivity(8.0, 4.0)),
    "no bound on the vector": lambda: audit_representation(Unbounded(2.0, 1.0)),
    "a code of thrice the epsilon": lambda: audit_code(LouderCode()),
}


@pytest.mark.parametrize("name", SOUND)
def test_no_audit_refutes_a_claim(name):
    bound, claim = SOUND[name]()
    assert bound <= claim


@pytest.mark.parametrize("name", sorted(SOUND.keys() - {"counts, loud", "step"}))
def test_an_audit_finds_part_of_what_is_claimed(name):
    # An audit that sees nothing could refute nothing.
    bound, claim = SOUND[name]()
    assert bound > 0.15 * claim


@pytest.mark.parametrize("name", TWINS)
def test_a_broken_twin_is_refuted(name):
    bound, claim = TWINS[name]()
    assert bound > claim


def test_the_claims_are_not_so_large_that_no_audit_could_refute_them():
    most = lower_bound(4000, 0, 4000, DELTA)
    assert epsilon(Gaussian(1.0), DELTA) < most
