"""Where the bits come from."""

import os

import numpy as np
import pytest
import tensorflow as tf

from tfpriv.layers import RANDOMNESS_ASSUMPTION, _randomness
from tfpriv.layers._chacha20 import chacha20_blocks

SIZE = 200_000


def words_of(data):
    return np.frombuffer(data, "<u4").astype(np.uint32)


def test_chacha20_gives_the_block_of_the_standard():
    key = words_of(bytes(range(32)))
    nonce = words_of(bytes.fromhex("000000090000004a00000000"))
    block = chacha20_blocks(
        tf.constant(key), tf.constant([1], tf.uint32), tf.constant(nonce)
    )
    expected = bytes.fromhex(  # RFC 8439, section 2.3.2
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    assert np.array_equal(block.numpy()[:, 0], words_of(expected))


def test_chacha20_agrees_with_a_library_on_many_blocks():
    ciphers = pytest.importorskip("cryptography.hazmat.primitives.ciphers")
    key = os.urandom(32)
    cipher = ciphers.Cipher(ciphers.algorithms.ChaCha20(key, bytes(16)), None)
    expected = cipher.encryptor().update(bytes(64 * 20))
    blocks = chacha20_blocks(
        tf.constant(words_of(key)), tf.cast(tf.range(20), tf.uint32)
    )
    assert np.array_equal(blocks.numpy().T.ravel(), words_of(expected))


def test_each_key_is_new_and_each_of_its_bits_fair():
    keys = np.stack([_randomness._fresh_key().numpy() for _ in range(100)])
    assert len(np.unique(keys, axis=0)) == len(keys)
    bits = keys[..., None] >> np.arange(32, dtype=np.uint32) & 1
    assert abs(bits.mean() - 0.5) < 7 * 0.5 / np.sqrt(bits.size)
    # Each place by itself, with 256 places looked at.
    assert np.abs(bits.mean(0) - 0.5).max() < 7.5 * 0.5 / np.sqrt(len(keys))


@pytest.mark.parametrize(
    ("draw", "width"), [(_randomness.fresh_words, 32), (_randomness.fresh_bits, 63)]
)
def test_words_are_uniform_and_independent_of_each_other(draw, width):
    values = draw([SIZE]).numpy()
    assert values.min() >= 0
    bits = np.stack([values >> values.dtype.type(place) & 1 for place in range(width)])
    assert np.abs(bits.mean(1) - 0.5).max() < 7.5 * 0.5 / np.sqrt(SIZE)
    centred = bits.astype(float) - 0.5
    correlation = centred @ centred.T / SIZE * 4 - np.eye(width)
    assert np.abs(correlation).max() < 8 / np.sqrt(SIZE)
    neighbours = (centred[:, 1:] * centred[:, :-1]).mean(1) * 4
    assert np.abs(neighbours).max() < 7.5 / np.sqrt(SIZE)
    assert values.max() > 0.99 * 2**width


def test_shapes_may_be_known_late_and_empty():
    assert _randomness.fresh_words([2, 0, 3]).shape == (2, 0, 3)
    assert _randomness.fresh_bits([]).shape == ()

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def draw(values):
        return _randomness.fresh_bits(tf.shape(values))

    assert draw(tf.zeros([5, 2])).shape == (5, 2)


def test_two_draws_of_one_graph_and_two_calls_of_it_differ():
    @tf.function
    def draw():
        return _randomness.fresh_words([4]), _randomness.fresh_words([4])

    tf.random.set_seed(0)
    first = draw()
    tf.random.set_seed(0)
    values = np.stack([*first, *draw()])
    assert len(np.unique(values, axis=0)) == len(values)


def test_without_the_device_nothing_is_drawn(monkeypatch, tmp_path):
    monkeypatch.setattr(_randomness, "_DEVICE", str(tmp_path / "missing"))
    with pytest.raises(tf.errors.NotFoundError):
        _randomness._fresh_key()
    short = tmp_path / "short"
    short.write_bytes(b"\xff" * 20 + b"\n" * 10)
    monkeypatch.setattr(_randomness, "_DEVICE", str(short))
    with pytest.raises(tf.errors.InvalidArgumentError):
        _randomness._fresh_key()
    poor = tmp_path / "poor"
    poor.write_bytes(b"\n" * 32)
    monkeypatch.setattr(_randomness, "_DEVICE", str(poor))
    with pytest.raises(tf.errors.InvalidArgumentError):
        _randomness._fresh_key()


def test_xla_refuses_rather_than_replays():
    compiled = tf.function(lambda: _randomness.fresh_words([4]), jit_compile=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="TextLineDataset"):
        compiled()


def test_the_assumption_can_be_quoted():
    assert "\n" not in RANDOMNESS_ASSUMPTION
    assert RANDOMNESS_ASSUMPTION.endswith(".")
