"""Gaussian noise that nobody can replay: every draw is keyed by the OS anew."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from cryptography.hazmat.primitives.ciphers import (
    Cipher,
    CipherContext,
    algorithms,
    modes,
)

from tfpriv import _validation

# Below as many numbers, compiling the transform costs more than it saves.
_WORTH_COMPILING = 2**18
# Numbers that are made and added at once, at most: few enough to stay in the
# processor's cache, enough for the call not to count.
_CHUNK = 2**19
# XLA vectorises loops whose length is a multiple of this.
_LANES = 2**10
# Where TensorFlow's memory starts: multiples of this.
_ALIGNMENT = 64
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
    _fill(words, _key_stream())
    return words


def _key_stream() -> CipherContext:
    key = algorithms.AES(secrets.token_bytes(32))
    return Cipher(key, modes.CTR(os.urandom(16))).encryptor()


def _fill(words: np.ndarray, cipher: CipherContext) -> None:
    stream, zeros = memoryview(words).cast("B"), bytes(_PIECE)
    for start in range(0, len(stream), _PIECE):
        piece = stream[start : start + _PIECE]
        cipher.update_into(zeros[: len(piece)], piece)


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
    box_muller = _compiled_box_muller if 2 * half > _WORTH_COMPILING else _box_muller
    normals = tf.concat(box_muller(*words, tf.constant(stddev, tf.float64)), axis=0)
    parts = tf.split(normals, [*sizes, 2 * half - sum(sizes)])
    return [
        tf.reshape(part, shape) for part, shape in zip(parts[:-1], shapes, strict=True)
    ]


def noised_mean(
    private: Sequence[tf.Tensor],
    stddev: float,
    public: Sequence[tf.Tensor] | None,
    size: tf.Tensor | float,
) -> list[tf.Tensor]:
    """Returns (private + N(0, stddev^2) + public) / size, rounded when all is done.

    The noise is that of `gaussian_tensors`, and what is added and divided is
    float64. Where there is much of it, it is made, added and forgotten by pieces, so
    that no more than one piece of it is ever held.

    Args:
        private: float32 or float64.
        stddev: float. At least 0.
        public: of the same shapes, or None.
        size: what the sums are divided by.

    Returns:
        Tensors of the shapes and types of `private`.

    Raises:
        InputError: if `stddev` is negative, NaN or infinite.
    """
    _validation.non_negative(stddev=stddev)
    size = tf.cast(size, tf.float64)
    sums = [list(private)] + ([] if public is None else [list(public)])
    total = sum(math.prod(x.shape) for x in private)
    if tf.executing_eagerly() and total > _WORTH_COMPILING:
        return _noised_by_pieces(sums, stddev, size)
    noise = gaussian_tensors([x.shape for x in private], stddev)
    return [
        _combine(*(tf.cast(x, x.dtype) for x in own), noise=n, size=size)
        for n, *own in zip(noise, *sums, strict=True)
    ]


def _noised_by_pieces(
    sums: list[list[tf.Tensor]], stddev: float, size: tf.Tensor
) -> list[tf.Tensor]:
    flat_sums = [[x.numpy().reshape(-1) for x in own] for own in sums]
    total = sum(map(len, flat_sums[0]))
    half = _LANES * math.ceil(total / 2 / math.ceil(total / _CHUNK) / _LANES)
    cipher, stddev = _key_stream(), tf.constant(stddev, tf.float64)
    # On the host, where its words come from, also where there is a GPU.
    with tf.device("CPU:0"):
        words = _shared((2, half), np.int64)
        added = [_shared((2, half), np.result_type(*own)) for own in flat_sums]
        noised = [_shared(x.shape, x.dtype.as_numpy_dtype) for x in sums[0]]
        flat_added = [x.array.reshape(-1) for x in added]
        flat_noised = [x.array.reshape(-1) for x in noised]
        for pieces in _pieces([len(x) for x in flat_sums[0]], 2 * half):
            _fill(words.array.reshape(-1), cipher)
            for buffer, own in zip(flat_added, flat_sums, strict=True):
                for tensor, part, place in pieces:
                    buffer[place] = own[tensor][part]
            done = _compiled_noised(
                [x.tensor for x in added], words.tensor, stddev, size
            )
            # Waits until they are there; then the buffers are free again.
            for row, half_done in zip(added[0].array, done, strict=True):
                row[:] = half_done.numpy()
            for tensor, part, place in pieces:
                flat_noised[tensor][part] = flat_added[0][place]
    return [x.tensor for x in noised]


class _Shared(NamedTuple):
    """Memory that is an array and a tensor at once, so that nothing is copied."""

    array: np.ndarray
    tensor: tf.Tensor


def _shared(shape: Sequence[int], dtype: np.dtype) -> _Shared:
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array = memory[start : start + size].view(dtype).reshape(shape)
    return _Shared(array, tf.experimental.dlpack.from_dlpack(array.__dlpack__()))


def _pieces(
    sizes: Sequence[int], chunk: int
) -> Iterator[list[tuple[int, slice, slice]]]:
    """Cuts vectors that lie one after the other into chunks.

    Yields, for each chunk, what is in it: (number of the vector, which part of it,
    where that part lies in the chunk).
    """
    pieces, place = [], 0
    for number, size in enumerate(sizes):
        start = 0
        while start < size:
            length = min(size - start, chunk - place)
            part = slice(start, start + length)
            pieces.append((number, part, slice(place, place + length)))
            start, place = start + length, place + length
            if place == chunk:
                yield pieces
                pieces, place = [], 0
    if pieces:
        yield pieces


def _noised(
    sums: list[tf.Tensor], words: tf.Tensor, stddev: tf.Tensor, size: tf.Tensor
) -> list[tf.Tensor]:
    """`_combine` for both rows of sums (2, half) and noise of as many words."""
    noise = _box_muller(words[0], words[1], stddev)
    return [
        _combine(*own, noise=n, size=size)
        for *own, n in zip(*map(tf.unstack, sums), noise, strict=True)
    ]


_compiled_noised = tf.function(_noised, autograph=False, jit_compile=True)


def _combine(
    private: tf.Tensor,
    public: tf.Tensor | None = None,
    *,
    noise: tf.Tensor,
    size: tf.Tensor,
) -> tf.Tensor:
    total = tf.cast(private, tf.float64) + noise
    if public is not None:
        total += tf.cast(public, tf.float64)
    # XLA computes one division in the time of several products.
    return tf.cast(total * (1.0 / size), private.dtype)


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


_compiled_box_muller = tf.function(_box_muller, autograph=False, jit_compile=True)


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
