"""Events of an exact probability, by comparing random bits with whole numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfpriv.layers import _randomness

WORD_BITS = 32


def to_words(values: Sequence[int], num_words: int) -> np.ndarray:
    """Returns uint32 (len(values), num_words): the digits in base 2**32, high first.

    Args:
        values: whole numbers in [0, 2**(32 * num_words)).
        num_words: int. Words a value.
    """
    size = num_words * WORD_BITS // 8
    data = b"".join(value.to_bytes(size, "big") for value in values)
    return np.frombuffer(data, ">u4").astype(np.uint32).reshape(-1, num_words)


def less(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """Compares whole numbers that are given as words, high first, on the last axis.

    Args:
        left: uint32 (..., num_words).
        right: uint32 (..., num_words), broadcast against `left`.

    Returns:
        bool (...): left < right.
    """
    differ = tf.cast(left != right, tf.int32)
    first = tf.one_hot(
        tf.argmax(differ, axis=-1), tf.shape(differ)[-1], True, False, dtype=tf.bool
    )
    # Of two equal numbers `first` names the top word, which is not less either.
    return tf.reduce_any(first & (left < right), axis=-1)


def fresh_coins(
    thresholds: Sequence[int], num_words: int, shape: _randomness.Shape
) -> tf.Tensor:
    """Tosses independent coins with probabilities that are exact fractions.

    Coin j shows True with probability `thresholds[j] / 2**(32 * num_words)` exactly,
    for perfectly random bits: it asks whether a uniform number of that many bits is
    less than the threshold. The top words settle nearly every coin; only where they
    are equal, once in 2**32, are more words drawn. That saves most of the bits and
    changes no probability.

    Args:
        thresholds: n whole numbers in [0, 2**(32 * num_words)).
        num_words: int >= 2.
        shape: how many tosses of each coin.

    Returns:
        bool (*shape, n), on the CPU.
    """
    table = to_words(thresholds, num_words)
    with tf.device("/CPU:0"):
        shape = tf.cast(tf.convert_to_tensor(shape), tf.int64)
        tops = _randomness.fresh_words(tf.concat([shape, [len(table)]], axis=0))
        top = tf.constant(table[:, 0])
        heads, ties = tops < top, tf.equal(tops, top)

        def settle() -> tf.Tensor:
            where = tf.where(ties)
            rests = tf.gather(tf.constant(table[:, 1:]), where[:, -1])
            drawn = _randomness.fresh_words(tf.shape(rests))
            return tf.tensor_scatter_nd_update(heads, where, less(drawn, rests))

        return tf.cond(tf.reduce_any(ties), settle, lambda: heads)
