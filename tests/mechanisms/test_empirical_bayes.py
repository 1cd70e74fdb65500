"""Shrinking helps where it should, and never makes what a model cannot use."""

import hypothesis
import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import numpy as np
import pytest

from tfpriv.mechanisms.empirical_bayes import shrink_pairs, shrink_tokens

NOISE = 2.0


def _vocabulary(rng, size=1500, classes=2):
    """A public expectation, and true counts that stray from it in a few words."""
    expected = 3000 * rng.dirichlet(np.full(size, 0.3), classes).mean(0) + 1e-3
    truth = np.tile(expected, (classes, 1)) * np.exp(rng.normal(0, 0.3, size))
    truth[0, :40] *= 8
    truth[1, 40:80] *= 8
    return np.tile(expected, (classes, 1)), truth


@pytest.fixture(scope="module")
def tokens():
    rng = np.random.default_rng(0)
    expected, truth = _vocabulary(rng)
    noisy = truth + rng.normal(0, NOISE, truth.shape)
    return expected, truth, noisy, shrink_tokens(noisy, NOISE, expected)


def _error(estimate, truth):
    return np.sqrt(np.mean((estimate - truth) ** 2))


def test_shrunk_counts_are_nearer_to_the_truth_than_noisy_and_public_ones(tokens):
    expected, truth, noisy, shrunk = tokens
    assert _error(shrunk, truth) < 0.6 * _error(np.maximum(noisy, 0), truth)
    assert _error(shrunk, truth) < 0.5 * _error(expected, truth)


def test_classes_differ_less_by_noise_than_they_did(tokens):
    _, _, noisy, shrunk = tokens
    same = slice(80, None)
    gap = np.abs(shrunk[0, same] - shrunk[1, same]).mean()
    assert gap < 0.2 * np.abs(noisy[0, same] - noisy[1, same]).mean()


def test_a_class_takes_sides_where_its_counts_say_so():
    expected = np.full((2, 50), 10.0)
    noisy = expected.copy()
    noisy[0, 0], noisy[1, 0] = 120.0, 0.0
    shrunk = shrink_tokens(noisy, 2.0, expected)
    assert shrunk[0, 0] == pytest.approx(120, rel=0.15)
    assert shrunk[1, 0] < 5
    np.testing.assert_allclose(shrunk[:, 1:], 10, rtol=0.15)


def test_where_noise_drowns_everything_the_public_ratios_remain():
    rng = np.random.default_rng(1)
    expected, _ = _vocabulary(rng, size=400)
    noise = 1e3
    shrunk = shrink_tokens(
        expected + rng.normal(0, noise, expected.shape), noise, expected
    )
    assert np.corrcoef(np.log(shrunk).ravel(), np.log(expected).ravel())[0, 1] > 0.8


def test_shrunk_pairs_are_nearer_to_the_truth_and_keep_their_shape():
    rng = np.random.default_rng(2)
    expected = rng.gamma(0.2, 1.0, (40, 40)) + 1e-4
    truth = expected.copy()
    truth[:10, :10] *= 50
    noisy = truth + rng.normal(0, 1.5, truth.shape)
    shrunk = shrink_pairs(noisy, 1.5, expected)
    assert shrunk.shape == (40, 40)
    assert _error(shrunk, truth) < 0.7 * _error(np.maximum(noisy, 0), truth)
    flat = shrink_pairs(noisy.ravel(), 1.5, expected.ravel())
    np.testing.assert_allclose(flat, shrunk.ravel())


@hypothesis.settings(max_examples=25)
@hypothesis.given(
    arrays.arrays(np.float64, (2, 6), elements=st.floats(-1e6, 1e6)),
    st.floats(1e-3, 1e5),
    arrays.arrays(np.float64, (2, 6), elements=st.floats(1e-4, 1e5)),
)
def test_whatever_was_released_the_result_is_positive_and_finite(
    noisy, noise, expected
):
    for shrunk in (
        shrink_tokens(noisy, noise, expected, iterations=5),
        shrink_pairs(noisy, noise, expected, iterations=5),
    ):
        assert np.all(np.isfinite(shrunk) & (shrunk > 0))
