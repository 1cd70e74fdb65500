"""Gaussian noise that nobody can replay: every draw is keyed by the OS anew."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tfpriv import _validation

# Below as many numbers, compiling the transform costs more than it saves.
_WORTH_COMPILING = 2**18
# XLA vectorises loops whose length is a multiple of this.
_LANES = 2**10
# Zeros are enciphered in pieces that stay in the processor's cache.
_PIECE = 2**18


def fresh_generator() -> np.random.Generator:
    """Returns a generator keyed with 128 bits that the operating system just gave.

    Use it for one draw and let it go: nothing holds its key, so no checkpoint,
    graph or seed (`numpy.random.seed`, `tf.random.set_seed`,
    `keras.utils.set_random_seed`) can bring the same numbers back.
    """
    return np.random.Generator(np.random.Philox(key=secrets.randbits(128)))


def random_words(count: int) -> np.ndarray:
    """Draws int64 (count,), every bit fair: a key stream of AES-256 in counter mode.

    Key and first counter come from the operating system and are forgotten. Who could
    tell the words from fair coins could break AES.
    """
    words = np.empty(count, np.int64)
    key = algorithms.AES(secrets.token_bytes(32))
    cipher = Cipher(key, modes.CTR(os.urandom(16))).encryptor()
    stream, zeros = memoryview(words).cast("B"), bytes(_PIECE)
    for start in range(0, len(stream), _PIECE):
        piece = stream[start : start + _PIECE]
        cipher.update_into(zeros[: len(piece)], piece)
    return words


def gaussian_noise(
    shapes: Sequence[Sequence[int]], stddev: float, dtype: str = "float32"
) -> list[np.ndarray]:
    """Draws independent N(0, stddev^2) for every coordinate of every shape.

    Args:
        shapes: one shape a tensor; `()` is a scalar.
        stddev: float. At least 0; 0 gives zeros, which protect nothing.
        dtype: str. "float32" or "float64".

    Returns:
        One array a shape. See `gaussian_tensors` for what they are worth.

    Raises:
        InputError: if `stddev` is negative, NaN or infinite, or `dtype` narrower
            than float32.
    """
    _validation.one_of(("float32", "float64"), dtype=dtype)
    with tf.init_scope():  # On the host, also while a graph is traced.
        return [x.numpy().astype(dtype) for x in gaussian_tensors(shapes, stddev)]


def gaussian_tensors(shapes: Sequence[Sequence[int]], stddev: float) -> list[tf.Tensor]:
    """Draws independent N(0, stddev^2), float64, anew whenever the operation runs.

    Two words of `random_words` make two numbers (Box and Muller 1958): their radius
    from 52 bits and a sign each, their angle from 52 bits. So the tail goes on to
    8.4 standard deviations, where a float32 draw ends near 5.7. They are
    floating-point numbers, not a discrete Gaussian: an attack on the low bits of a
    single released coordinate is not excluded, as with TF-Privacy's own noise.

    Args:
        shapes: one shape a tensor.
        stddev: float. At least 0.

    Raises:
        InputError: if `stddev` is negative, NaN or infinite.
    """
    _validation.non_negative(stddev=stddev)
    shapes = tuple(tuple(int(n) for n in shape) for shape in shapes)
    sizes = [math.prod(shape) for shape in shapes]
    half = _LANES * math.ceil(sum(sizes) / 2 / _LANES)
    # In two, for what is above 32 MB comes from the kernel page by page every time.
    if tf.executing_eagerly():
        words = [tf.convert_to_tensor(random_words(half)) for _ in range(2)]
    else:
        # An op that calls back, so that a traced step draws anew every time it runs;
        # numbers drawn while tracing would be baked into the graph.
        words = [
            tf.numpy_function(lambda: random_words(half), [], tf.int64)
            for _ in range(2)
        ]
    words = [tf.reshape(x, [half]) for x in words]
    large = 2 * half > _WORTH_COMPILING
    box_muller, cut = (
        (_compiled_box_muller, _compiled_cut) if large else (_box_muller, _cut)
    )
    normals = box_muller(*words, tf.constant(stddev, tf.float64))
    return [
        tf.reshape(part, shape)
        for part, shape in zip(cut(normals, tuple(sizes)), shapes, strict=True)
    ]


def combine_sums(
    private: Sequence[tf.Tensor],
    noise: Sequence[tf.Tensor],
    public: Sequence[tf.Tensor] | None,
    size: tf.Tensor | float,
) -> list[tf.Tensor]:
    """Returns (private + noise + public) / size, rounded once, when all is done."""
    public = [] if public is None else list(public)
    large = sum(math.prod(x.shape) for x in private) > _WORTH_COMPILING
    combine = _compiled_combine if large else _combine
    return combine(list(private), list(noise), public, tf.cast(size, tf.float64))


def _combine(
    private: list[tf.Tensor],
    noise: list[tf.Tensor],
    public: list[tf.Tensor],
    size: tf.Tensor,
) -> list[tf.Tensor]:
    totals = [
        tf.cast(x, tf.float64) + tf.cast(n, tf.float64)
        for x, n in zip(private, noise, strict=True)
    ]
    if public:
        pairs = zip(totals, public, strict=True)
        totals = [total + tf.cast(x, tf.float64) for total, x in pairs]
    pairs = zip(totals, private, strict=True)
    return [tf.cast(total / size, x.dtype) for total, x in pairs]


_compiled_combine = tf.function(_combine, autograph=False, jit_compile=True)


def _box_muller(
    first: tf.Tensor, second: tf.Tensor, stddev: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Normals, twice (n,), from as many words: r (cos, sin) of a random angle.

    XLA computes the logarithms and sines of float64 one by one; in these few sums
    and products it computes four at once.
    """
    # From 2^-52 to 1, all multiples of 2^-52 alike.
    uniform = 2.0 - _from_one_to_two(first)
    radius = stddev * math.sqrt(0.5) * tf.sqrt(-2.0 * _log(uniform))
    # Of the angle less pi / 4.
    angle = (_from_one_to_two(second) - 1.5) * (math.pi / 2)
    square = angle * angle
    cosine = _polynomial(square, [(-1) ** k / math.factorial(2 * k) for k in range(9)])
    sine = angle * _polynomial(
        square, [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]
    )
    return (
        _with_sign_of(first, radius * (cosine - sine)),
        _with_sign_of(second, radius * (cosine + sine)),
    )


def _cut(
    halves: tuple[tf.Tensor, tf.Tensor], sizes: tuple[int, ...]
) -> list[tf.Tensor]:
    """Cuts what is two vectors, one after the other, into parts of these sizes."""
    first, second = halves
    middle = first.shape[0]
    parts, start = [], 0
    for size in sizes:
        stop = start + size
        pieces = [
            first[start:stop],
            second[max(start - middle, 0) : max(stop - middle, 0)],
        ]
        if start >= middle:
            parts.append(pieces[1])
        elif stop <= middle:
            parts.append(pieces[0])
        else:
            parts.append(tf.concat(pieces, axis=0))
        start = stop
    return parts


# Apart from each other: fused, the loops would lose their even sizes.
_compiled_box_muller = tf.function(_box_muller, autograph=False, jit_compile=True)
_compiled_cut = tf.function(_cut, autograph=False, jit_compile=True)


def _log(x: tf.Tensor) -> tf.Tensor:
    """The natural logarithm of float64 numbers from 2^-52 to 1, at most 0."""
    bits = tf.bitcast(x, tf.int64)
    # A whole number until it is a float: graphs are optimised by adding constants up,
    # and next to a large one a small one is lost.
    exponent = tf.bitwise.right_shift(bits, tf.constant(52, tf.int64)) - 1023
    exponent = tf.cast(exponent, tf.float64)
    fraction = _from_one_to_two(bits)
    # log m = log sqrt(2) + 2 artanh((m - sqrt 2) / (m + sqrt 2))
    y = (fraction - math.sqrt(2.0)) / (fraction + math.sqrt(2.0))
    artanh = y * _polynomial(y * y, [1 / (2 * k + 1) for k in range(11)])
    return tf.minimum((exponent + 0.5) * math.log(2.0) + 2.0 * artanh, 0.0)


def _from_one_to_two(bits: tf.Tensor) -> tf.Tensor:
    """The float64 number in [1, 2) whose fraction is the low 52 bits."""
    fraction = tf.bitwise.bitwise_and(bits, tf.constant(2**52 - 1, tf.int64))
    one = tf.constant(0x3FF << 52, tf.int64)
    return tf.bitcast(tf.bitwise.bitwise_or(fraction, one), tf.float64)


def _with_sign_of(bits: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    sign = tf.bitwise.bitwise_and(bits, tf.constant(-(2**63), tf.int64))
    return tf.bitcast(tf.bitwise.bitwise_xor(tf.bitcast(x, tf.int64), sign), tf.float64)


def _polynomial(x: tf.Tensor, coefficients: Sequence[float]) -> tf.Tensor:
    total = coefficients[-1] * tf.ones_like(x)
    for coefficient in coefficients[-2::-1]:
        total = total * x + coefficient
    return total
