"""Gaussian noise that nobody can replay: every draw is keyed by the OS anew."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import numpy as np

from tfpriv import _validation


def fresh_generator() -> np.random.Generator:
    """Returns a generator keyed with 128 bits that the operating system just gave.

    Use it for one draw and let it go: nothing holds its key, so no checkpoint,
    graph or seed (`numpy.random.seed`, `tf.random.set_seed`,
    `keras.utils.set_random_seed`) can bring the same numbers back.
    """
    return np.random.Generator(np.random.Philox(key=secrets.randbits(128)))


def gaussian_noise(
    shapes: Sequence[Sequence[int]], stddev: float, dtype: str = "float32"
) -> list[np.ndarray]:
    """Draws independent N(0, stddev^2) for every coordinate of every shape.

    The numbers are drawn in float64 (Ziggurat, whose tail is not cut off where
    a float32 Box-Muller draw ends, near 5.7 standard deviations) and cast once.
    They are floating-point numbers, not a discrete Gaussian: an attack on the
    low bits of a single released coordinate is not excluded, as with
    TF-Privacy's own noise.

    Args:
        shapes: one shape a tensor; `()` is a scalar.
        stddev: float. At least 0; 0 gives zeros, which protect nothing.
        dtype: str. "float32" or "float64".

    Returns:
        One array a shape.

    Raises:
        InputError: if `stddev` is negative, NaN or infinite, or `dtype` narrower
            than float32.
    """
    _validation.non_negative(stddev=stddev)
    _validation.one_of(("float32", "float64"), dtype=dtype)
    generator = fresh_generator()
    return [
        (generator.standard_normal(tuple(shape)) * float(stddev)).astype(dtype)
        for shape in shapes
    ]
