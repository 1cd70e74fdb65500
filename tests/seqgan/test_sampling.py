"""Inverse-CDF drawing: the right law, never an impossible word."""

import numpy as np
import pytest
import tensorflow as tf

from tfpriv.seqgan import sampling


def draw(logits, rows, seed=0):
    """Draws from one distribution, given as the bias of an output layer."""
    size = len(logits)
    kernel, bias = sampling.pad_to_blocks(
        tf.zeros([1, size]), tf.constant(logits, tf.float32)
    )
    uniforms = sampling.uniform([rows, 1, 2], tf.constant([seed, 1]))
    hidden = tf.zeros([rows, 1])
    return sampling.draw_tokens(hidden, uniforms, kernel, bias, size).numpy()[:, 0]


@pytest.mark.parametrize("size", [1, 2, 7, 16, 50])
def test_frequencies_are_the_softmax(size):
    logits = np.random.default_rng(size).normal(size=size)
    counts = np.bincount(draw(logits, 20_000), minlength=size) / 20_000
    expected = np.exp(logits) / np.exp(logits).sum()
    deviation = np.sqrt(expected * (1 - expected) / 20_000)
    assert (np.abs(counts - expected) <= 5 * deviation + 1e-9).all()


def test_many_groups_of_rows_draw_like_one(monkeypatch):
    logits = np.random.default_rng(0).normal(size=30)
    whole = draw(logits, 1_000)
    monkeypatch.setattr(sampling, "_GROUP_ELEMENTS", 30 * 37)
    np.testing.assert_array_equal(whole, draw(logits, 1_000))


def test_impossible_words_are_not_drawn_at_the_edges_of_the_unit_interval():
    weights = tf.constant([[0.0, 0.3, 0.0, 0.0, 0.7, 0.0]])
    edges = tf.constant(
        [[0.0, np.nextafter(np.float32(1), np.float32(0)), 0.3, 0.2999]]
    )
    got = sampling.inverse_cdf(weights, edges).numpy()[0]
    assert set(got) <= {1, 4}
    assert got[0] == 1
    assert got[1] == 4


def test_several_draws_a_row_are_independent():
    kernel, bias = sampling.pad_to_blocks(tf.zeros([1, 4]), tf.zeros([4]))
    uniforms = sampling.uniform([4_000, 2, 2], tf.constant([0, 1]))
    tokens = sampling.draw_tokens(tf.zeros([4_000, 1]), uniforms, kernel, bias, 4)
    pairs = np.bincount(tokens.numpy() @ [4, 1], minlength=16) / 4_000
    np.testing.assert_allclose(pairs, 1 / 16, atol=0.02)


def test_seeds_repeat_by_path_and_are_fresh_without_one():
    same = sampling.fresh_seed(3, 1), sampling.fresh_seed(3, 1)
    assert (same[0].numpy() == same[1].numpy()).all()
    assert (same[0].numpy() != sampling.fresh_seed(3, 2).numpy()).any()
    fresh = sampling.fresh_seed(None), sampling.fresh_seed(None)
    assert (fresh[0].numpy() != fresh[1].numpy()).any()
