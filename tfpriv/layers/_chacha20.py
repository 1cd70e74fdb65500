"""The ChaCha20 block function as TensorFlow operations, many blocks at once."""

from __future__ import annotations

import tensorflow as tf

KEY_WORDS = 8
BLOCK_WORDS = 16

_DOUBLE_ROUNDS = 10
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)  # "expand 32-byte k"

# Rows of the state, turned by one, two and three places.
_TURNS = ([1, 2, 3, 0], [2, 3, 0, 1], [3, 0, 1, 2])


def chacha20_blocks(
    key: tf.Tensor, counters: tf.Tensor, nonce: tf.Tensor | None = None
) -> tf.Tensor:
    """Returns one keystream block for each counter.

    Args:
        key: uint32 (8,).
        counters: uint32 (n,). No two alike under one key and nonce.
        nonce: uint32 (3,), or None for zeros: right for a key that is used once.

    Returns:
        uint32 (16, n): block i is column i, its first word on top.

    References:
        Nir and Langley 2018, RFC 8439, section 2.3.
    """
    if nonce is None:
        nonce = tf.zeros([3], tf.uint32)
    count = tf.shape(counters)[0]

    def rows(words: tf.Tensor) -> tf.Tensor:
        return tf.tile(words[:, tf.newaxis], [1, count])

    # The state is a 4 x 4 matrix of words for every block; one tensor a row lets
    # the four quarter rounds of a column or diagonal round run as one.
    start = (
        rows(tf.constant(_CONSTANTS, tf.uint32)),
        rows(key[:4]),
        rows(key[4:]),
        tf.concat([counters[tf.newaxis], rows(nonce)], axis=0),
    )

    # Unrolled: a loop's own overhead is several times the work of its few words.
    a, b, c, d = start
    for _ in range(_DOUBLE_ROUNDS):
        a, b, c, d = _quarter_rounds(a, b, c, d)
        b, c, d = (
            tf.gather(b, _TURNS[0]),
            tf.gather(c, _TURNS[1]),
            tf.gather(d, _TURNS[2]),
        )
        a, b, c, d = _quarter_rounds(a, b, c, d)
        b, c, d = (
            tf.gather(b, _TURNS[2]),
            tf.gather(c, _TURNS[1]),
            tf.gather(d, _TURNS[0]),
        )
    end = a, b, c, d
    return tf.concat([x + y for x, y in zip(start, end, strict=True)], axis=0)


def _quarter_rounds(
    a: tf.Tensor, b: tf.Tensor, c: tf.Tensor, d: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
    a += b
    d = _rotate(tf.bitwise.bitwise_xor(d, a), 16)
    c += d
    b = _rotate(tf.bitwise.bitwise_xor(b, c), 12)
    a += b
    d = _rotate(tf.bitwise.bitwise_xor(d, a), 8)
    c += d
    b = _rotate(tf.bitwise.bitwise_xor(b, c), 7)
    return a, b, c, d


def _rotate(words: tf.Tensor, left: int) -> tf.Tensor:
    high = tf.bitwise.left_shift(words, tf.constant(left, tf.uint32))
    low = tf.bitwise.right_shift(words, tf.constant(32 - left, tf.uint32))
    return tf.bitwise.bitwise_or(high, low)
