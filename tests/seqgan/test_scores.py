"""Scores of many sequences: in parts, and of completions that share beginnings."""

import numpy as np
import pytest
import tensorflow as tf

from tfpriv.seqgan import (
    Discriminator,
    Generator,
    complete_prefixes,
    rollout_reward,
    scores,
)
from tfpriv.seqgan.rollout import open_prefixes
from tfpriv.seqgan.sampling import fresh_seed


@pytest.mark.parametrize("rows", [1, 5, 6, 7, 20])
def test_scores_do_not_depend_on_how_rows_are_grouped(discriminator, monkeypatch, rows):
    ids = np.random.default_rng(0).integers(0, 6, (rows, 4))
    whole = discriminator.real_probability(tf.constant(ids, tf.int32))
    monkeypatch.setattr(scores, "_SCORED_AT_ONCE", 6)
    graph = tf.function(lambda x: scores.score(discriminator, x), autograph=False)
    np.testing.assert_allclose(graph(tf.constant(ids, tf.int32)), whole, rtol=1e-5)
    unknown = graph.get_concrete_function(tf.TensorSpec([None, 4], tf.int32))
    np.testing.assert_allclose(unknown(tf.constant(ids, tf.int32)), whole, rtol=1e-5)


def test_no_rows_have_no_scores(discriminator, monkeypatch):
    monkeypatch.setattr(discriminator, "real_probability", refusing_no_rows)
    assert scores.score(discriminator, tf.zeros([0, 4], tf.int32)).shape == (0,)


def refusing_no_rows(rows, *more):
    assert rows.shape[0] > 0
    return tf.zeros([rows.shape[0]])


def test_sequences_that_have_all_ended_are_not_scored(
    generator, discriminator, monkeypatch
):
    monkeypatch.setattr(scores, "_completion_scorer", lambda *_: refusing_no_rows)
    ids = tf.constant([[3, 2, 0, 0], [2, 0, 0, 0]])
    finished = complete_prefixes(generator, ids, 7, fresh_seed(0))
    closed = tf.zeros([3, 2], bool)
    got = scores.completion_scores(discriminator, ids, finished, closed)
    np.testing.assert_array_equal(got, np.zeros([3, 2]))


def test_sequences_that_have_all_ended_have_rewards():
    """OneDNN's convolution of no rows has another shape: it must not be asked."""
    generator = Generator(50, 20, 8, 8, seed=0)
    discriminator = Discriminator(50, 20, 8, widths=(2, 3), filters=24, seed=0)
    reward = tf.function(rollout_reward(generator, discriminator, rollouts=4))
    ids = np.zeros([6, 20], np.int32)
    ids[:, 0], ids[:, 1] = 5, generator.end_id
    rewards = reward(tf.constant(ids), fresh_seed(0)).numpy()
    np.testing.assert_array_equal(rewards[:, 2:], 0)


@pytest.mark.parametrize("widths", [(1,), (2, 3), (1, 2, 3, 4)])
@pytest.mark.parametrize("together", [1, 2, 3])
def test_completions_score_what_each_scores_alone(
    generator, widths, together, monkeypatch
):
    monkeypatch.setattr(scores, "_TOGETHER", together)
    monkeypatch.setattr(scores, "_SCORED_AT_ONCE", 5)
    discriminator = Discriminator(
        generator.vocabulary_size, 4, 5, widths=widths, filters=6, highway=True, seed=0
    )
    ids = tf.constant([[3, 4, 5, 3], [4, 5, 2, 0], [2, 0, 0, 0], [5, 5, 5, 2]])
    finished = complete_prefixes(generator, ids, 7, fresh_seed(0))
    still_open = open_prefixes(generator, ids)
    got = scores.completion_scores(discriminator, ids, finished, still_open).numpy()
    alone = discriminator.real_probability(tf.reshape(finished, [-1, 4]))
    expected = alone.numpy().reshape(3, 4, 7).mean(-1) * still_open.numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    if together == 1:
        # A twin that took the windows of another sequence for known would show here.
        wrong = tf.reverse(ids, [0])
        twin = scores.completion_scores(discriminator, wrong, finished, still_open)
        assert np.abs(twin - expected).max() > 1e-3


def test_effects_are_exact_where_the_score_is_nearly_linear():
    discriminator = Discriminator(9, 3, 4, widths=(3,), filters=1, seed=0)
    (convolution,) = discriminator.convolutions
    convolution.bias.assign([5.0])
    discriminator.head.kernel.assign([[0.0, 1e-3]])
    ids = tf.constant([[1, 2, 3], [4, 5, 6]])
    effects = scores.token_effects(discriminator, ids).numpy()
    for position in range(3):
        other = ids.numpy().copy()
        other[:, position] = 8
        change = discriminator.real_probability(tf.constant(other))
        change -= discriminator.real_probability(ids)
        predicted = effects[position, 8] - effects[position, ids.numpy()[:, position]]
        np.testing.assert_allclose(change, predicted, rtol=0.01, atol=1e-7)
