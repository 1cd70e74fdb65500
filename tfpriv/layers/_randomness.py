"""Random bits inside a graph that nobody can replay or guess.

What TensorFlow itself offers does not do. A `keras.random.SeedGenerator`, and
`tf.random.*` under a global seed, start anew with every reload of a SavedModel: the
same noise again. `NonDeterministicInts` is fresh on each call, but all it ever gives
in a process comes from one Mersenne Twister that was seeded with 32 bits
(`tsl/platform/random.cc`): a reader of one release can try every seed, find the one
that explains it, and subtract the noise; and a process that forks after the first
draw repeats itself.

So each draw reads a new key from /dev/urandom, by the one kind of operation that can
read a device (lines of a text file), and stretches it with ChaCha20. Nothing here
needs Python once it is traced: TensorFlow Serving runs it. XLA does not, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from tfpriv.layers._chacha20 import BLOCK_WORDS, KEY_WORDS, chacha20_blocks

RANDOMNESS_ASSUMPTION = (
    "The random bits come from ChaCha20 with a 256-bit key that the operating system "
    "(/dev/urandom) gave for that draw alone. The guarantee is against readers who "
    "cannot tell such bits from perfectly random ones and who cannot see the memory "
    "of the process that draws them."
)

_DEVICE = "/dev/urandom"
# A line ends where a random byte is a line feed, after 255 bytes on average. That 32
# lines together hold fewer than 37 usable bytes has a probability below 2**-140; the
# reshape below then fails, and nothing is released.
_LINES = 32
_KEY_BITS = 32 * KEY_WORDS
_KEY_BYTES = math.ceil(_KEY_BITS / 7)

Shape = Sequence[int] | tf.Tensor


def fresh_words(shape: Shape) -> tf.Tensor:
    """Draws independent uniform 32-bit words, new ones on every call and reload.

    No seed has power over them: `tf.random.set_seed`, `keras.utils.set_random_seed`
    and a stored seed generator are not asked. Every layer that draws takes its bits
    from here and from nowhere else, so that a test has one place to replace.

    Args:
        shape: whole numbers, or an int32 or int64 tensor (rank,).

    Returns:
        uint32 tensor of that shape, on the CPU.

    Raises:
        tf.errors.NotFoundError: a host without /dev/urandom, when the operation runs.
    """
    with tf.device("/CPU:0"):
        shape = tf.cast(tf.convert_to_tensor(shape), tf.int64)
        return tf.reshape(_keystream(tf.reduce_prod(shape)), shape)


def fresh_bits(shape: Shape) -> tf.Tensor:
    """Draws independent uniform whole numbers in [0, 2**63), as `fresh_words` does.

    Args:
        shape: whole numbers, or an int32 or int64 tensor (rank,).

    Returns:
        int64 tensor of that shape.
    """
    with tf.device("/CPU:0"):
        shape = tf.cast(tf.convert_to_tensor(shape), tf.int64)
        words = tf.cast(fresh_words(tf.concat([shape, [2]], axis=0)), tf.int64)
        return words[..., 0] // 2 * 2**32 + words[..., 1]


# A function of its own: called eagerly it is still one graph, and traced once.
@tf.function(
    autograph=False, input_signature=[tf.TensorSpec([], tf.int64)], jit_compile=False
)
def _keystream(count: tf.Tensor) -> tf.Tensor:
    blocks = (count + BLOCK_WORDS - 1) // BLOCK_WORDS
    counters = tf.cast(tf.range(blocks), tf.uint32)
    words = chacha20_blocks(_fresh_key(), counters)
    return tf.reshape(words, [-1])[:count]


def _fresh_key() -> tf.Tensor:
    """Returns uint32 (8,): 256 bits from the operating system, exactly uniform."""
    # ReadFile would read a device for ever; a line ends by itself.
    lines = tf.raw_ops.TextLineDataset(
        filenames=[_DEVICE], compression_type="", buffer_size=1 << 13
    )
    types, shapes = [tf.string], [[_LINES]]
    batch = tf.raw_ops.BatchDatasetV2(
        input_dataset=lines,
        batch_size=tf.constant(_LINES, tf.int64),
        drop_remainder=True,
        output_types=types,
        output_shapes=shapes,
    )
    first = tf.raw_ops.TakeDataset(
        input_dataset=batch,
        count=tf.constant(1, tf.int64),
        output_types=types,
        output_shapes=shapes,
    )
    (text,) = tf.raw_ops.DatasetToSingleElement(
        dataset=first, output_types=types, output_shapes=shapes
    )
    data = tf.cast(tf.io.decode_raw(tf.strings.reduce_join(text), tf.uint8), tf.int32)
    # Line feeds and carriage returns are lost on the way. Both are below 128, so the
    # bytes from 128 up are all there: seven uniform bits each.
    usable = tf.boolean_mask(data, data >= 128)[:_KEY_BYTES]
    bits = tf.bitwise.right_shift(
        tf.reshape(usable, [_KEY_BYTES, 1]), tf.range(7)[tf.newaxis]
    )
    bits = tf.reshape(bits % 2, [-1])[:_KEY_BITS]
    weights = tf.constant([1 << place for place in range(32)], tf.int64)
    words = tf.reshape(tf.cast(bits, tf.int64), [KEY_WORDS, 32]) * weights
    return tf.cast(tf.reduce_sum(words, axis=1), tf.uint32)
