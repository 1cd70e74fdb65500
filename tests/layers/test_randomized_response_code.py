import decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from tests.layers.layer_checks import replay_bits, run_layer_test
from tfpriv._errors import InputError
from tfpriv.layers import RandomizedResponseCode, _coins, _randomness

WHOLE = 2**128


def test_layer(tmp_path):
    run_layer_test(RandomizedResponseCode(5, 1.0), tf.random.normal([3, 5]), tmp_path)


def check_weights(num_codes, epsilon, keep, other):
    """In whole numbers: a distribution, within e^epsilon, and no worse than that."""
    assert keep + (num_codes - 1) * other == WHOLE
    assert 0 < other <= keep
    with decimal.localcontext() as context:
        context.prec = 120
        odds = decimal.Decimal(epsilon).exp()
        assert keep <= other * odds
        exact = odds / (odds + num_codes - 1)
        assert abs(decimal.Decimal(keep) / WHOLE - exact) < (
            decimal.Decimal(num_codes) / WHOLE
        )


@pytest.mark.parametrize("num_codes", [2, 3, 64, 1 << 20])
@pytest.mark.parametrize("epsilon", [2.0**-40, 0.1, 1.0, 4.0, 60.0, 1000.0])
def test_the_odds_are_at_most_e_to_the_epsilon_exactly(num_codes, epsilon):
    layer = RandomizedResponseCode(num_codes, epsilon)
    check_weights(num_codes, epsilon, layer.keep_weight, layer.other_weight)


def test_broken_weights_are_rejected():
    layer = RandomizedResponseCode(4, 1.0)
    with pytest.raises(AssertionError):  # rounded to the other side
        check_weights(4, 1.0, layer.keep_weight + 3, layer.other_weight - 1)
    keep = int(np.float32(layer.keep_probability) * 2.0**128)
    with pytest.raises(AssertionError):  # drawn in float32
        check_weights(4, 1.0, keep, (WHOLE - keep) // 3)
    keep, other = int(WHOLE * 0.9), WHOLE // 30
    with pytest.raises(AssertionError):
        check_weights(4, 1.0, keep, other)


@pytest.mark.parametrize(("num_codes", "epsilon"), [(2, 0.5), (5, 2.0)])
def test_codes_come_as_often_as_they_should(num_codes, epsilon):
    layer = RandomizedResponseCode(num_codes, epsilon)
    size, code = 60_000, num_codes - 2
    logits = tf.tile(tf.one_hot([code], num_codes) * 3.0, [size, 1])
    released = layer(logits).numpy()
    assert (released.sum(-1) == 1).all()
    assert set(np.unique(released)) == {0.0, 1.0}
    expected = np.full(num_codes, layer.other_weight / WHOLE) * size
    expected[code] = layer.keep_probability * size
    statistic = np.sum((released.sum(0) - expected) ** 2 / expected)
    assert statistic < scipy.stats.chi2.isf(1e-10, num_codes - 1)
    codes = released.argmax(-1)
    kept = (codes == code).astype(float)
    assert abs(np.corrcoef(kept[1:], kept[:-1])[0, 1]) < 7 / np.sqrt(size)


def test_each_uniform_number_leads_where_its_bound_says(monkeypatch):
    layer = RandomizedResponseCode(4, 1.0)
    keep, other = layer.keep_weight, layer.other_weight
    uniform = [0, keep - 1, keep, keep + other - 1, keep + other, WHOLE - 1]
    words = tf.constant(_coins.to_words(uniform, 4))[:, tf.newaxis]
    monkeypatch.setattr(_randomness, "fresh_words", lambda shape: words)
    logits = tf.one_hot([3] * 6, 4)
    assert layer(logits).numpy().argmax(-1).tolist() == [3, 3, 0, 0, 1, 2]


def test_what_is_not_finite_has_code_0(monkeypatch):
    replay_bits(monkeypatch)
    layer = RandomizedResponseCode(3, 1000.0)
    logits = [[0.0, 1.0, np.nan], [0.0, -np.inf, 5.0], [np.inf, 9.0, 0.0], [0, 0, 1.0]]
    assert layer(tf.constant(logits)).numpy().argmax(-1).tolist() == [0, 0, 0, 2]


def test_the_gradient_is_that_of_softmax():
    logits = tf.constant([[0.3, -1.0, 2.0], [np.nan, 1.0, 2.0]])
    weights = tf.constant([[1.0, 2.0, -3.0]])
    layer = RandomizedResponseCode(3, 1.0)
    for run in (layer, tf.function(layer)):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(logits)
            released = tf.reduce_sum(run(logits) * weights)
            soft = tf.reduce_sum(tf.nn.softmax(logits) * weights)
        ours, expected = (tape.gradient(loss, logits) for loss in (released, soft))
        np.testing.assert_allclose(ours[0], expected[0], atol=1e-6)
        assert (ours[1].numpy() == 0).all()


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_is_widened(policy):
    layer = RandomizedResponseCode(3, 1000.0, dtype=policy)
    logits = tf.constant([[1.0, 1.0001, 0.0]])
    released = layer(logits)
    assert released.dtype == tf.float32
    assert released.numpy().argmax() == 1


def test_bad_input():
    for bad in ({"num_codes": 1}, {"num_codes": 2.5}, {"num_codes": 1 << 21}):
        with pytest.raises(InputError, match="num_codes"):
            RandomizedResponseCode(**{"epsilon": 1.0, **bad})
    for epsilon in (0, -1, float("nan"), float("inf"), 1e-13, 2000.0):
        with pytest.raises(InputError, match="epsilon"):
            RandomizedResponseCode(3, epsilon)
    with pytest.raises(InputError, match="length 2"):
        RandomizedResponseCode(3, 1.0)(tf.zeros([4, 2]))
    assert Fraction(RandomizedResponseCode(3, 1.0).keep_weight, WHOLE) < 1
