"""What every layer that draws noise must satisfy, and twins that must not pass.

Thresholds are such that a correct layer fails with probability below 1e-9.
"""

from __future__ import annotations

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras.src.trainers.trainer import model_supports_jit

from tests.layers.layer_checks import replay_bits
from tfpriv.layers import (
    GradientReversal,
    LaplaceNoise,
    RandomizedResponseCode,
    RandomMask,
)

SHAPE = (500, 40)
SIZE = SHAPE[0] * SHAPE[1]
BOX = {"scale": 0.5, "domain": "unit_box"}
BALL = {"scale": 1.5, "domain": "l1_ball", "radius": 2.0}
GAUSSIAN_TAIL = 7.0
# Dvoretzky-Kiefer-Wolfowitz with Massart's constant: P < 2 exp(-2 n D^2) = 2e-10.
KOLMOGOROV = np.sqrt(np.log(1e10) / (2 * SIZE))


def noise_of(layer, value=0.0):
    return np.asarray(layer(tf.fill(SHAPE, value)), np.float64) - value


# ------------------------------------------------------- the law of Laplace noise


def check_the_law_is_laplace_at_the_certified_scale(layer, monkeypatch):
    """Both directions: neither less noise than is paid for, nor more."""
    noise = np.sort(noise_of(layer).ravel())
    tail = np.exp(-np.abs(noise) / layer.scale) / 2
    law = np.where(noise < 0, tail, 1 - tail)
    below, above = np.arange(SIZE) / SIZE, np.arange(1, SIZE + 1) / SIZE
    assert max((above - law).max(), (law - below).max()) < KOLMOGOROV


def check_the_variance_is_that_of_the_scale(layer, monkeypatch):
    ratio = np.mean(noise_of(layer) ** 2) / (2 * layer.scale**2)
    # Var K^2 = 24 b^4 - 4 b^4, so this is eight standard errors.
    assert abs(ratio - 1) < 8 * np.sqrt(5 / SIZE)


def check_the_noise_has_no_hard_tail(layer, monkeypatch):
    """P(|K| > 5 b) is e^-5: 135 of these on average, none of which is infinite."""
    noise = np.abs(noise_of(layer))
    assert np.isfinite(noise).all()
    assert 50 < np.sum(noise > 5 * layer.scale) < 250


def check_every_coordinate_and_record_has_its_own_draw(layer, monkeypatch):
    noise = noise_of(layer)
    assert len(np.unique(noise)) > 0.9 * SIZE
    for a, b in [
        (noise[:, 1:], noise[:, :-1]),
        (noise[1:], noise[:-1]),
        (noise[:, 20:], noise[:, :20]),
        (noise[250:], noise[:250]),
    ]:
        correlation = np.corrcoef(a.ravel(), b.ravel())[0, 1]
        assert abs(correlation) < GAUSSIAN_TAIL / np.sqrt(a.size)


def check_every_call_has_its_own_draw(layer, monkeypatch):
    compiled = tf.function(layer)
    draws = [noise_of(layer), noise_of(layer), noise_of(compiled), noise_of(compiled)]
    for a, b in itertools.combinations(draws, 2):
        correlation = np.corrcoef(a.ravel(), b.ravel())[0, 1]
        assert abs(correlation) < GAUSSIAN_TAIL / np.sqrt(SIZE)


def check_a_seed_has_no_power(layer, monkeypatch):
    def seeded():
        keras.utils.set_random_seed(3)  # Python, numpy and TensorFlow
        return noise_of(layer)

    assert np.mean(seeded() == seeded()) < 0.01


def check_the_noise_does_not_depend_on_the_record(layer, monkeypatch):
    quiet, loud = noise_of(layer).std(), noise_of(layer, 0.03125).std()
    assert abs(loud / quiet - 1) < 2 * 8 * np.sqrt(5 / SIZE) / 2


def check_outputs_lie_on_the_grid(layer, monkeypatch):
    values = tf.random.uniform(SHAPE) * layer.radius / SHAPE[1]
    steps = np.asarray(layer(values), np.float64) / layer.grid
    assert np.array_equal(steps, np.round(steps))
    assert np.abs(steps).max() < 2**40


def check_what_is_finer_than_the_grid_stays_inside(layer, monkeypatch):
    """With the same bits, records that round alike give the very same release."""
    replay_bits(monkeypatch)
    whole = np.random.default_rng(0).integers(100, 2**14, size=SHAPE)
    released = [
        np.asarray(layer(tf.constant((whole + part) * layer.grid, tf.float32)))
        for part in (0.0, 0.25, -0.25, 0.375)
    ]
    assert all(np.array_equal(released[0], other) for other in released)


def check_two_records_are_no_further_apart_than_is_paid_for(layer, monkeypatch):
    replay_bits(monkeypatch)
    wild = [0.0, 1.0, -1.0, 1e9, -1e9, np.nan, np.inf, 0.05]
    ramp = np.linspace(-3, 3, SHAPE[1])
    records = [np.full(SHAPE[1], value) for value in wild] + [ramp, -1e20 * ramp]
    steps = np.concatenate(
        [
            np.asarray(layer(tf.constant(record[np.newaxis], tf.float32)), np.float64)
            for record in records
        ]
    )
    steps = np.round(steps / layer.grid)
    assert np.isfinite(steps).all()
    apart = np.abs(steps[:, np.newaxis] - steps).sum(-1)
    # What float32 rounds beyond 2^24 steps is the last term.
    assert apart.max() <= layer.integer_sensitivity(SHAPE[1]) + SHAPE[1] * 4
    assert apart.max() > 0.3 * layer.integer_sensitivity(SHAPE[1])


LAW = [value for name, value in globals().copy().items() if name[:6] == "check_"]
LAYERS = [
    LaplaceNoise(**BOX),
    LaplaceNoise(**BALL),
    LaplaceNoise(**BALL, dtype="mixed_float16"),
]


@pytest.mark.parametrize("check", LAW, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("layer", LAYERS, ids=["box", "ball", "mixed"])
def test_noise(layer, check, monkeypatch):
    check(layer, monkeypatch)


class FloatLaplace(LaplaceNoise):
    """-b sgn(u) log(1 - 2|u|) on top of x: off the grid, with a hard tail."""

    def call(self, inputs):
        u = tf.random.uniform(tf.shape(inputs)) - 0.5
        return inputs - self.scale * tf.sign(u) * tf.math.log1p(-2 * tf.abs(u))


class AddsTheDifference(LaplaceNoise):
    """The usual straight-through estimator, whose sum rounds differently for each x."""

    def call(self, inputs):
        return inputs + tf.stop_gradient(super().call(inputs) - inputs)


class OneDrawForTheVector(LaplaceNoise):
    def call(self, inputs):
        noise = super().call(tf.zeros_like(inputs[:, :1]))
        return inputs + noise


class OneDrawForTheBatch(LaplaceNoise):
    def call(self, inputs):
        return inputs + super().call(tf.zeros_like(inputs[:1]))


class DrawnAtBuild(LaplaceNoise):
    def build(self, shape):
        self.kept = super().call(tf.zeros(shape))
        self.built = True

    def call(self, inputs):
        return inputs + self.kept


class DrawnWhileTraced(LaplaceNoise):
    def call(self, inputs):
        u = np.random.default_rng().laplace(0, self.scale, SHAPE)
        return inputs + tf.constant(u, tf.float32)


class Seeded(LaplaceNoise):
    def call(self, inputs):
        u = tf.random.uniform(tf.shape(inputs)) - 0.5
        return inputs - self.scale * tf.sign(u) * tf.math.log1p(-2 * tf.abs(u))


class TwoThirds(LaplaceNoise):
    def call(self, inputs):
        return inputs + super().call(tf.zeros_like(inputs)) * 2 / 3


class ThreeHalves(LaplaceNoise):
    def call(self, inputs):
        return inputs + super().call(tf.zeros_like(inputs)) * 3 / 2


class Gaussian(LaplaceNoise):
    def call(self, inputs):
        noise = np.random.default_rng().normal(0, self.scale * 2**0.5, SHAPE)
        return inputs + tf.constant(noise, tf.float32)


class CutOff(LaplaceNoise):
    def call(self, inputs):
        noise = super().call(tf.zeros_like(inputs))
        return inputs + tf.clip_by_value(noise, -4 * self.scale, 4 * self.scale)


class ForgetsTheDomain(LaplaceNoise):
    def _enforce(self, values):
        values = tf.clip_by_value(values, -1e6, 1e6)
        return tf.cast(tf.round(values / self.grid), tf.int64), tf.ones_like(values)


class BoxForABall(LaplaceNoise):
    """Clips coordinates where the norm is what was paid for."""

    def _enforce(self, values):
        values = tf.clip_by_value(values, -self.radius, self.radius)
        return tf.cast(tf.round(values / self.grid), tf.int64), tf.ones_like(values)


class Multiplies(LaplaceNoise):
    def call(self, inputs):
        noise = super().call(tf.zeros_like(inputs))
        return inputs + noise * (1 + 100 * tf.abs(inputs))


TWINS = [
    (FloatLaplace, check_outputs_lie_on_the_grid),
    (FloatLaplace, check_what_is_finer_than_the_grid_stays_inside),
    (AddsTheDifference, check_outputs_lie_on_the_grid),
    (AddsTheDifference, check_what_is_finer_than_the_grid_stays_inside),
    (OneDrawForTheVector, check_every_coordinate_and_record_has_its_own_draw),
    (OneDrawForTheBatch, check_every_coordinate_and_record_has_its_own_draw),
    (DrawnAtBuild, check_every_call_has_its_own_draw),
    (DrawnWhileTraced, check_every_call_has_its_own_draw),
    (Seeded, check_a_seed_has_no_power),
    (TwoThirds, check_the_law_is_laplace_at_the_certified_scale),
    (ThreeHalves, check_the_law_is_laplace_at_the_certified_scale),
    (TwoThirds, check_the_variance_is_that_of_the_scale),
    (ThreeHalves, check_the_variance_is_that_of_the_scale),
    (Gaussian, check_the_law_is_laplace_at_the_certified_scale),
    (CutOff, check_the_noise_has_no_hard_tail),
    (ForgetsTheDomain, check_two_records_are_no_further_apart_than_is_paid_for),
    (BoxForABall, check_two_records_are_no_further_apart_than_is_paid_for),
    (Multiplies, check_the_noise_does_not_depend_on_the_record),
]


@pytest.mark.parametrize(
    ("twin", "check"), TWINS, ids=[f"{t.__name__}-{c.__name__[6:]}" for t, c in TWINS]
)
def test_a_broken_twin_is_rejected(twin, check, monkeypatch):
    with pytest.raises(AssertionError):
        check(twin(**BALL), monkeypatch)


# --------------------------------------------- freshness, of every layer that draws


class SeedGenerator(keras.layers.Layer):
    """Keras's own way to noise: its state is saved, so a reload replays it."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator()

    def call(self, inputs):
        return inputs + keras.random.normal(
            keras.ops.shape(inputs), seed=self.seed_generator
        )


class GlobalSeed(keras.layers.Layer):
    """TensorFlow's own way to noise: a reload under a global seed replays it."""

    def call(self, inputs):
        return inputs + tf.random.normal(tf.shape(inputs))


def float_model(layer):
    inputs = keras.Input([8])
    return keras.Model(inputs, layer(inputs)), tf.zeros([64, 8])


def mask_model(mode):
    inputs = keras.Input([40], dtype="int32")
    layer = RandomMask(0.5, 1, continuation=[], mode=mode)
    return keras.Model(inputs, layer(inputs)[0]), tf.fill([64, 40], 7)


MODELS = {
    "laplace": lambda: float_model(LaplaceNoise(**BALL)),
    "exact mask": lambda: mask_model("exact"),
    "bernoulli mask": lambda: mask_model("bernoulli"),
    "code": lambda: float_model(RandomizedResponseCode(8, 0.5)),
}


def check_all_differ(draws):
    for a, b in itertools.combinations(draws, 2):
        assert not np.array_equal(a, b)


def check_rows_calls_and_reloads_are_fresh(make, folder):
    model, inputs = make()
    rows = np.asarray(model(inputs))
    assert len(np.unique(rows, axis=0)) > 4
    model.save(folder / "model.keras")
    model.export(folder / "served", verbose=False)
    draws = [rows, model(inputs), model.predict(inputs, verbose=0)]
    for _ in range(2):
        keras.utils.set_random_seed(5)
        draws.append(keras.models.load_model(folder / "model.keras")(inputs))
        keras.utils.set_random_seed(5)
        served = tf.saved_model.load(str(folder / "served"))
        draws += [served.serve(inputs), served.serve(inputs)]
        keras.utils.set_random_seed(5)
        draws.append(model(inputs))
    check_all_differ([np.asarray(draw) for draw in draws])


@pytest.mark.parametrize("name", MODELS)
def test_every_row_call_and_reload_is_fresh(name, tmp_path):
    check_rows_calls_and_reloads_are_fresh(MODELS[name], tmp_path)


@pytest.mark.parametrize("twin", [SeedGenerator, GlobalSeed])
def test_a_layer_that_replays_is_rejected(twin, tmp_path):
    keras.saving.get_custom_objects()[twin.__name__] = twin
    try:
        with pytest.raises(AssertionError):
            check_rows_calls_and_reloads_are_fresh(
                lambda: float_model(twin()), tmp_path
            )
    finally:
        del keras.saving.get_custom_objects()[twin.__name__]


@pytest.mark.parametrize("name", MODELS)
def test_xla_is_not_asked_and_refuses(name):
    model, inputs = MODELS[name]()
    assert not model_supports_jit(model)
    model.compile(loss="mse")
    assert not model.jit_compile
    with pytest.raises(tf.errors.InvalidArgumentError, match="TextLineDataset"):
        tf.function(model, jit_compile=True)(inputs)


def test_a_layer_that_draws_nothing_may_be_compiled():
    model, _ = float_model(GradientReversal())
    assert model_supports_jit(model)


def test_no_seed_is_taken():
    for layer in (
        lambda: LaplaceNoise(1.0, seed=0),
        lambda: RandomMask(0.5, 1, continuation=[], seed=0),
        lambda: RandomizedResponseCode(3, 1.0, seed=0),
    ):
        with pytest.raises((TypeError, ValueError), match="seed"):
            layer()
