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


def mean_of_one(sums, public=None, stddev=1.0):
    return noise.noised_mean(sums, stddev, public, 1.0)


def added_up_eagerly(sizes):
    return [x.numpy() for x in mean_of_one([tf.zeros(n, tf.float64) for n in sizes])]


@pytest.mark.parametrize("draw", [draw_eagerly, draw_in_a_graph, added_up_eagerly])
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


def test_by_pieces_every_sum_is_divided_in_its_place(monkeypatch):
    monkeypatch.setattr(noise, "_CHUNK", 2**17)
    generator = np.random.default_rng(0)
    shapes = [(3,), (2**10, 2**8), (), (7, 5)]
    dtypes = ["float32", "float64", "float32", "float32"]
    sums, public = (
        [
            generator.normal(size=shape).astype(dtype)
            for shape, dtype in zip(shapes, dtypes, strict=True)
        ]
        for _ in range(2)
    )
    tensors = [tf.constant(x) for x in sums]
    for extra in (None, [tf.constant(x) for x in public]):
        means = noise.noised_mean(tensors, 0.0, extra, 3.0)
        for mean, one, other in zip(means, sums, public, strict=True):
            exact = (one + (0 if extra is None else other.astype("float64"))) / 3
            assert (mean.dtype, mean.shape) == (one.dtype, one.shape)
            np.testing.assert_allclose(mean, exact.astype(one.dtype), rtol=2**-24)


def rounded_before_the_noise(sums, public, stddev):
    first = mean_of_one(sums, stddev=stddev)
    return [one + other for one, other in zip(first, public, strict=True)]


def check_nothing_is_rounded_between(mean, size):
    # Neighbours of 2^24 in float32 are two apart: what is rounded there is whole.
    large = tf.fill([size], tf.constant(2.0**24))
    (found,) = mean([large], [-large], 0.25)
    assert np.std(found) == pytest.approx(0.25, rel=0.2)
    assert len(np.unique(found)) > 0.9 * size


@pytest.mark.parametrize("size", [2**10, 2**18 + 1], ids=["as is", "by pieces"])
def test_sums_meet_noise_and_public_sums_before_anything_is_rounded(size):
    check_nothing_is_rounded_between(mean_of_one, size)
    with pytest.raises(AssertionError):
        check_nothing_is_rounded_between(rounded_before_the_noise, size)


@pytest.mark.parametrize("size", [2**18 + 1])
def test_pieces_are_never_noised_alike(size, monkeypatch):
    monkeypatch.setattr(noise, "_CHUNK", 2**16)
    (numbers,) = mean_of_one([tf.zeros(size, tf.float64)])
    assert len(np.unique(numbers)) == size


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
