from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv.dp_training import gaussian_noise, noise


def test_shapes_and_types_are_kept():
    scalar, matrix, empty = gaussian_noise([(), (2, 3), (0, 4)], 1.0)
    assert (scalar.shape, matrix.shape, empty.shape) == ((), (2, 3), (0, 4))
    assert matrix.dtype == np.float32
    assert gaussian_noise([(2,)], 1.0, dtype="float64")[0].dtype == np.float64


def test_no_standard_deviation_is_no_noise():
    assert not np.any(gaussian_noise([(5,)], 0.0)[0])


@pytest.mark.parametrize("stddev", [-1.0, float("nan"), float("inf")])
def test_a_bad_standard_deviation_is_refused(stddev):
    with pytest.raises(InputError, match="stddev"):
        gaussian_noise([(5,)], stddev)


def test_half_precision_noise_is_refused():
    with pytest.raises(InputError, match="dtype"):
        gaussian_noise([(5,)], 1.0, dtype="float16")


def draw_eagerly(sizes):
    return [x.numpy() for x in noise.gaussian_tensors(sizes, 1.0)]


def draw_in_a_graph(sizes):
    run = tf.function(lambda: noise.gaussian_tensors(sizes, 1.0), autograph=False)
    return [x.numpy() for x in run()]


@pytest.mark.parametrize("draw", [draw_eagerly, draw_in_a_graph])
@pytest.mark.parametrize("size", [2**12, 2**18 + 77], ids=["as is", "compiled"])
def test_numbers_are_gaussian_to_the_tail_and_all_different(draw, size):
    parts = draw([(size // 2,), (size - size // 2,)])
    numbers = np.concatenate(parts)
    assert numbers.dtype == np.float64
    assert len(np.unique(numbers)) == size
    assert scipy.stats.kstest(numbers, "norm").pvalue > 1e-6
    beyond = (np.abs(numbers) > 3).sum()
    expected = size * 2 * scipy.stats.norm.sf(3)
    assert abs(beyond - expected) < 6 * np.sqrt(expected)


def test_words_are_fair_bits_and_never_the_same():
    first, second = (noise.random_words(2**15) for _ in range(2))
    bits = np.unpackbits(np.concatenate([first, second]).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 6 * 0.5 / np.sqrt(bits.size)
    assert len(np.unique(np.concatenate([first, second]))) == 2**16


@pytest.mark.parametrize("compiled", [False, True])
def test_the_logarithm_is_one_to_the_end_of_the_tail(compiled):
    x = np.concatenate(
        [2.0 ** -np.arange(53), np.random.default_rng(0).uniform(size=999)]
    )
    log = tf.function(noise._log, autograph=False, jit_compile=compiled)
    np.testing.assert_allclose(log(tf.constant(x)), np.log(x), rtol=1e-12, atol=1e-15)
