"""LaplaceNoise without its noise, which tests/contracts/test_layer_noise.py tests."""

import numpy as np
import pytest
import tensorflow as tf

from tests.layers.layer_checks import replay_bits, run_layer_test
from tfpriv._errors import InputError
from tfpriv.layers import LaplaceNoise

BOX = {"scale": 0.25, "domain": "unit_box"}
BALL = {"scale": 0.5, "domain": "l1_ball", "radius": 2.0}


@pytest.mark.parametrize("settings", [BOX, BALL], ids=["box", "ball"])
def test_layer(settings, tmp_path):
    run_layer_test(LaplaceNoise(**settings), tf.random.normal([3, 5]), tmp_path)


@pytest.fixture
def no_noise(monkeypatch):
    """The layer with a draw of zeros: what is left is its domain."""

    def make(**settings):
        layer = LaplaceNoise(**settings)
        monkeypatch.setattr(
            layer.noise, "draw", lambda shape: tf.zeros(shape, tf.int64)
        )
        return layer

    return make


WILD = np.array(
    [
        [0.25, 0.5, -0.125],
        [3e38, 3e38, -3e38],
        [1e-45, -1e-45, 0.0],
        [np.nan, np.inf, -np.inf],
        [np.nan, 1.0, 0.5],
        [1.0, 1.0, 1.0],
        [0.333333, 0.333333, 0.333334],
        [5e8, -1.0, 2.0],
    ],
    np.float32,
)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("settings", [BOX, BALL], ids=["box", "ball"])
def test_no_input_leaves_the_domain(settings, dtype, no_noise):
    layer = no_noise(**settings)
    rng = np.random.default_rng(0)
    random = rng.normal(size=(2000, 3)) * 10.0 ** rng.uniform(-9, 9, size=(2000, 1))
    with np.errstate(over="ignore"):
        values = np.concatenate([WILD, random]).astype(dtype)
    steps = layer(values).numpy().astype(np.float64) / layer.grid
    assert np.array_equal(steps, np.round(steps))
    reach = layer.integer_sensitivity(1) if settings is BOX else 2**21
    if settings is BOX:
        assert steps.min() >= 0
        assert steps.max() <= reach
    else:
        assert 2 * np.abs(steps).sum(-1).max() <= layer.integer_sensitivity(3)
        assert layer.integer_sensitivity(3) == layer.integer_sensitivity(300)


def test_inside_the_domain_a_record_is_only_rounded(no_noise):
    rng = np.random.default_rng(0)
    ball = rng.laplace(size=(500, 8))
    ball *= 1.999 / np.abs(ball).sum(-1, keepdims=True) * rng.random((500, 1))
    for settings, values in [(BALL, ball), (BOX, rng.random((500, 8)) * 0.999)]:
        layer = no_noise(**settings)
        values = values.astype(np.float32)
        assert np.abs(layer(values) - values).max() <= layer.grid / 2


def test_a_record_outside_the_ball_keeps_its_direction(no_noise):
    layer = no_noise(**BALL)
    values = np.array([[3.0, -1.0, 0.0], [0.0, 0.0, 100.0]], np.float32)
    np.testing.assert_allclose(
        layer(values), [[1.5, -0.5, 0], [0, 0, 2]], atol=4 * layer.grid
    )


def test_the_gradient_is_straight_through():
    values = tf.constant([[0.25, 0.5, 0.1], [2.0, -1.0, 1.0], [np.nan, 0.5, 0.25]])
    weights = tf.constant([[1.0, -2.0, 3.0]])
    expected = {
        "unit_box": [[1, -2, 3], [0, 0, 3], [0, -2, 3]],
        "l1_ball": [[1, -2, 3], [0.5, -1, 1.5], [0, -2, 3]],
    }
    for settings in (BOX, BALL):
        layer = LaplaceNoise(**settings)
        for run in (layer, tf.function(layer)):
            with tf.GradientTape() as tape:
                tape.watch(values)
                loss = tf.reduce_sum(run(values) * weights)
            gradient = tape.gradient(loss, values)
            assert gradient.numpy().tolist() == expected[settings["domain"]]


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
def test_half_precision_changes_nothing(policy, monkeypatch):
    replay_bits(monkeypatch)
    values = tf.constant([[0.12345678, 0.23456789]])
    wide = LaplaceNoise(**BOX)(values)
    narrow = LaplaceNoise(**BOX, dtype=policy)(values)
    assert narrow.dtype == tf.float32
    assert np.array_equal(wide, narrow)
    half = tf.Variable(tf.cast(values, tf.float16))
    with tf.GradientTape() as tape:
        released = LaplaceNoise(**BOX, dtype=policy)(half)
    assert released.dtype == tf.float32
    assert tape.gradient(released, half).dtype == tf.float16


def test_float64_stays():
    layer = LaplaceNoise(**BOX, dtype="float64")
    assert layer(tf.zeros([1, 2], tf.float64)).dtype == tf.float64


@pytest.mark.parametrize("scale", [1 / 300, 0.01, 0.3, 1.0, 7.0, 1e5])
@pytest.mark.parametrize("radius", [1.0, 1e-3, 2.5e7])
def test_epsilon_is_sensitivity_over_scale_and_never_more(scale, radius):
    for dimension in (1, 64, 1 << 20):
        layer = LaplaceNoise(scale * radius, radius=radius)
        bound = 2 * radius / layer.scale
        assert bound * (1 - 1e-5) < layer.epsilon(dimension) < bound
        assert layer.integer_sensitivity(dimension) * layer.grid <= 2 * radius
        assert layer.tail_delta(dimension) < 1e-37 * dimension
        box = LaplaceNoise(scale, domain="unit_box")
        bound = dimension / scale
        assert bound * (1 - 1e-5) < box.epsilon(dimension) < bound
        assert box.integer_sensitivity(dimension) * box.grid <= dimension
    mantissa, _ = np.frexp(layer.grid)
    assert mantissa == 0.5  # a power of two
    assert layer.grid <= min(layer.scale, layer.radius) / 2**20


def test_steps_never_overflow():
    for scale, radius in [(2.0**20, 1.0), (1 / 512, 1.0), (2.0**80, 2.0**60)]:
        layer = LaplaceNoise(scale, radius=radius)
        assert layer.noise.largest + layer.integer_sensitivity(1) < 2**52
        assert layer.integer_sensitivity(1) ** 2 < 2**63
        assert np.isfinite(layer(tf.fill([4, 4], radius))).all()


@pytest.mark.parametrize(
    "bad",
    [
        {"scale": 0},
        {"scale": -1.0},
        {"scale": float("nan")},
        {"scale": float("inf")},
        {"scale": 1.0, "radius": float("nan")},
        {"scale": 1.0, "radius": 0},
        {"scale": 1.0, "domain": "l2_ball"},
        {"scale": 1.0, "domain": "unit_box", "radius": 2.0},
        {"scale": 1e-3},
        {"scale": 1e9},
        {"scale": 1e25, "radius": 1e25},
    ],
)
def test_bad_settings(bad):
    with pytest.raises(InputError, match="received"):
        LaplaceNoise(**bad)


def test_bad_dimension():
    for method in ("epsilon", "tail_delta", "integer_sensitivity"):
        with pytest.raises(InputError, match="dimension"):
            getattr(LaplaceNoise(1.0), method)(0)
