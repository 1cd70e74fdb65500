"""Rewards: what each action is worth, worked out the slow way."""

import numpy as np
import pytest
import tensorflow as tf

from tfpriv.seqgan import (
    Discriminator,
    Generator,
    advantages,
    constant_reward,
    make_reward,
    per_step_reward,
    rewards,
    rollout_reward,
    sampling,
)
from tfpriv.seqgan.sampling import fresh_seed

SEED = fresh_seed(0)


def test_rollout_reward_is_the_expected_score_of_the_finished_prefix(
    generator, discriminator
):
    ids = tf.constant([[3, 4, 5, 3], [4, 5, 2, 0]], tf.int32)
    reward = rollout_reward(generator, discriminator, rollouts=3_000)
    got = reward(ids, SEED).numpy()
    for b, t in ((0, 0), (0, 2), (1, 1)):
        prefix = np.tile(ids[b : b + 1, : t + 1], (3_000, 1))
        rows = generator.sample(3_000, prefix=prefix, seed=t, chunk=3_000)
        expected = discriminator.real_probability(rows).numpy().mean()
        assert got[b, t] == pytest.approx(expected, abs=0.025)
    final = discriminator.real_probability(ids).numpy()
    assert got[0, 3] == pytest.approx(final[0], rel=1e-5)
    assert got[1, 2] == pytest.approx(final[1], rel=1e-5)
    assert got[1, 3] == 0


def test_sequences_that_ended_at_once_need_no_rollout(generator, discriminator):
    ids = tf.constant([[2, 0, 0, 0], [2, 0, 0, 0]])
    got = rollout_reward(generator, discriminator, rollouts=3)(ids, SEED).numpy()
    np.testing.assert_allclose(got[:, 0], discriminator.real_probability(ids))
    assert (got[:, 1:] == 0).all()


def test_a_sequence_of_one_token_has_its_own_score_as_reward():
    generator = Generator(6, 1, 4, 4, end_id=None, seed=0)
    discriminator = Discriminator(6, 1, 4, widths=(1,), filters=3, seed=0)
    ids = tf.constant([[3], [4]])
    got = rollout_reward(generator, discriminator, rollouts=3)(ids, SEED).numpy()
    np.testing.assert_allclose(got[:, 0], discriminator.real_probability(ids))


def test_rewards_vary_less_than_those_of_independent_rollouts(monkeypatch):
    """Of a score that is linear in the tokens, nearly nothing but noise is left."""
    generator = Generator(60, 5, 8, 8, end_id=None, seed=0)
    discriminator = Discriminator(60, 5, 8, widths=(5,), filters=1, seed=0)
    # One filter on one window, always above 0: no maximum and no ReLU that acts.
    (convolution,) = discriminator.convolutions
    convolution.bias.assign([20.0])
    discriminator.head.kernel.assign([[0.0, 0.3]])
    discriminator.head.bias.assign([0.0, -6.0])
    ids = tf.constant(generator.sample(4, seed=0))

    def variance():
        reward = rollout_reward(generator, discriminator, rollouts=16)
        drawn = [reward(ids, fresh_seed(0, i)).numpy() for i in range(40)]
        return np.var(drawn, axis=0)[:, :-1].mean()

    stratified = variance()
    monkeypatch.setattr(
        sampling,
        "stratified_uniforms",
        lambda groups, draws, seed: sampling.uniform([groups, draws, 2], seed),
    )
    assert stratified < variance() / 10


def test_per_step_reward_scores_each_prefix_followed_by_pads(generator, discriminator):
    ids = tf.constant([[3, 4, 2, 0]], tf.int32)
    prefixes = np.array([[3, 0, 0, 0], [3, 4, 0, 0], [3, 4, 2, 0]])
    got = per_step_reward(generator, discriminator)(ids, SEED).numpy()[0]
    expected = discriminator.real_probability(prefixes).numpy()
    np.testing.assert_allclose(got[:3], expected, rtol=1e-5)
    assert got[3] == 0


def test_constant_reward_stops_at_the_end(generator):
    got = constant_reward(generator, 2.0)(tf.constant([[3, 2, 0, 0]]), SEED)
    np.testing.assert_array_equal(got, [[2, 2, 0, 0]])


def test_a_random_cut_keeps_a_prefix_of_every_length(generator):
    ids = tf.constant(np.tile([[3, 4, 5, 3]], (400, 1)), tf.int32)
    cut = rewards.cut_at_random(ids, 0, SEED).numpy()
    kept = (cut != 0).sum(1)
    assert (cut == np.where(np.arange(4) < kept[:, None], ids, 0)).all()
    assert np.bincount(kept, minlength=5)[1:].min() > 60


def test_the_baseline_is_the_mean_of_the_other_sequences_at_that_step():
    values = tf.constant([[1.0, 4.0], [3.0, 9.0], [8.0, 0.0]])
    mask = tf.constant([[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    got = advantages(values, mask).numpy()
    expected = [[1 - 5.5, 4 - 9], [3 - 4.5, 9 - 4], [8 - 2, 0]]
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_step_only_one_sequence_reaches_takes_the_others_mean():
    values = tf.constant([[1.0, 7.0], [3.0, 0.0]])
    mask = tf.constant([[1.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(advantages(values, mask)[0, 1], 7 - 3)
    np.testing.assert_allclose(advantages(values[:1], mask[:1]), values[:1])


def test_a_reward_of_another_name_is_refused(generator, discriminator):
    with pytest.raises(ValueError, match="rollout, per_step, constant"):
        make_reward("bleu", generator, discriminator)
