"""Coins of an exact probability."""

import numpy as np
import pytest
import tensorflow as tf

from tfpriv.layers import _coins, _randomness


def as_ints(words):
    """Whole numbers from (..., num_words) words, as a flat list."""
    lines = np.asarray(words).reshape(-1, words.shape[-1])
    return [int.from_bytes(line.astype(">u4").tobytes(), "big") for line in lines]


def test_words_are_the_digits_of_a_number():
    values = [0, 1, 2**64 - 1, 2**32 + 7, 2**95]
    assert as_ints(_coins.to_words(values, 3)) == values
    with pytest.raises(OverflowError):
        _coins.to_words([2**96], 3)


def test_less_is_that_of_whole_numbers():
    rng = np.random.default_rng(0)
    left, right = rng.integers(3, size=(2, 4000, 3), dtype=np.uint32)
    right[rng.random(4000) < 0.3, 0] = 2**32 - 1
    expected = [a < b for a, b in zip(as_ints(left), as_ints(right), strict=True)]
    assert 0.2 < np.mean(expected) < 0.8
    assert _coins.less(tf.constant(left), tf.constant(right)).numpy().tolist() == (
        expected
    )


def test_a_coin_compares_all_of_its_bits(monkeypatch):
    """With words of two bits ties are frequent, and settled by further words."""
    rng = np.random.default_rng(0)
    drawn = []

    def words(shape):
        drawn.append(rng.integers(4, size=tuple(np.asarray(shape)), dtype=np.uint32))
        return tf.constant(drawn[-1])

    monkeypatch.setattr(_randomness, "fresh_words", words)
    thresholds = [2**64 + 5, 3 * 2**64 + 2 * 2**32 + 1, 2**33, 0]
    coins = _coins.fresh_coins(thresholds, 3, [500]).numpy()
    tops, rests = drawn
    ties = tops == _coins.to_words(thresholds, 3)[:, 0]
    assert len(rests) == ties.sum() > 100
    full = np.zeros((500, 4, 3), np.uint32)
    full[..., 0] = tops
    full[ties, 1:] = rests
    uniform = np.array(as_ints(full), object).reshape(500, 4)
    assert np.array_equal(coins, uniform < np.array(thresholds, object))


def test_coins_come_up_as_often_as_they_say_and_independently():
    thresholds = [2**63, 2**62, 3 * 2**60, 1, 2**64 - 1]
    coins = _coins.fresh_coins(thresholds, 2, [20_000, 4]).numpy().reshape(-1, 5)
    expected = np.array(thresholds, float) / 2.0**64
    error = np.sqrt(expected * (1 - expected) / len(coins))
    assert (np.abs(coins.mean(0) - expected) <= 7 * error + 1e-15).all()
    centred = coins[:, :3] - expected[:3]
    correlation = np.corrcoef(centred.T) - np.eye(3)
    assert np.abs(correlation).max() < 7 / np.sqrt(len(coins))
    neighbours = (centred[1:] * centred[:-1]).mean(0) / centred.var(0)
    assert np.abs(neighbours).max() < 7 / np.sqrt(len(coins))
