"""Rollouts in one loop have the law of rollouts made one prefix at a time."""

import numpy as np
import pytest
import tensorflow as tf

from tfpriv.seqgan import complete_prefixes
from tfpriv.seqgan.sampling import fresh_seed


def complete(generator, ids, rollouts, seed=0, effects=None):
    graph = tf.function(
        lambda x: complete_prefixes(
            generator, x, rollouts, fresh_seed(seed), effects=effects
        ),
        autograph=False,
    )
    return graph(tf.constant(ids, tf.int32)).numpy()


def histogram(rows, base):
    return np.bincount(
        rows @ base ** np.arange(rows.shape[1]), minlength=base ** rows.shape[1]
    ) / len(rows)


@pytest.mark.parametrize("fixture", ["generator", "fixed_generator"])
def test_rollouts_have_the_law_of_naive_ones(fixture, request):
    generator = request.getfixturevalue(fixture)
    base, length, count = generator.vocabulary_size, generator.max_length, 5_000
    ids = np.array([[3, 3, 3, 3], [1 if length == 3 else 4, 3, 3, 2]])[:, :length]
    batched = complete(generator, ids, count)
    assert batched.shape == (length - 1, 2, count, length)
    for p in range(1, length):
        for b in range(2):
            prefix = np.tile(ids[b : b + 1, :p], (count, 1))
            naive = generator.sample(count, prefix=prefix, seed=p, chunk=count)
            difference = histogram(batched[p - 1, b], base) - histogram(naive, base)
            assert np.abs(difference).sum() / 2 < 0.05


@pytest.mark.parametrize("fixture", ["generator", "fixed_generator"])
def test_each_rollout_alone_has_the_law_whatever_the_order(fixture, request):
    """Strata tie the rollouts of a prefix together, never the tokens of one."""
    generator = request.getfixturevalue(fixture)
    base, length, count = generator.vocabulary_size, generator.max_length, 4_000
    ids = np.full((count, length), 3)
    effects = np.random.default_rng(0).normal(size=(length, base))
    finished = complete(generator, ids, 3, effects=tf.constant(effects, tf.float32))
    for p in range(1, length):
        naive = generator.sample(count, prefix=ids[:, :p], seed=p, chunk=count)
        for k in range(3):
            drawn = histogram(finished[p - 1, :, k], base)
            assert np.abs(drawn - histogram(naive, base)).sum() / 2 < 0.055


def test_first_tokens_fall_into_strata_of_the_blocks_of_the_order(fixed_generator):
    length = fixed_generator.max_length
    effects = tf.tile([[0.0, 2.0, 1.0, 3.0]], [length, 1])
    ids = fixed_generator.sample(5, seed=0)
    finished = complete(fixed_generator, ids, 2_000, effects=effects)
    states = fixed_generator.states(ids)[0][:, 1]
    law = tf.nn.softmax(fixed_generator.head(states)).numpy()
    for b in range(5):
        share = np.bincount(finished[0, b, :, 1], minlength=4) / 2_000
        # Blocks of two words, 0 and 2, 1 and 3; independent draws are off by .01.
        assert share[[0, 2]].sum() == pytest.approx(law[b, [0, 2]].sum(), abs=6e-4)


def test_every_rollout_keeps_its_prefix_and_ends_in_pads(generator):
    ids = generator.sample(30, seed=4)
    finished = complete(generator, ids, 5)
    for p in range(1, 4):
        for b in range(30):
            rows = finished[p - 1, b]
            assert (rows[:, :p] == ids[b, :p]).all()
            assert (generator.token_mask(rows).numpy() == (rows != 0)).all()


def test_a_prefix_that_has_ended_comes_back_as_it_is(generator):
    finished = complete(generator, [[3, 2, 0, 0], [2, 0, 0, 0]], 7)
    assert (finished[1:, 0] == [3, 2, 0, 0]).all()
    assert (finished[:, 1] == [2, 0, 0, 0]).all()


def test_rollouts_differ_from_each_other_and_repeat_with_their_seed(fixed_generator):
    ids = fixed_generator.sample(8, seed=0)
    first = complete(fixed_generator, ids, 16, seed=1)
    assert (first[0, :, 0] != first[0, :, 1]).any()
    np.testing.assert_array_equal(first, complete(fixed_generator, ids, 16, seed=1))
    assert (first != complete(fixed_generator, ids, 16, seed=2)).any()


def test_the_batch_may_be_unknown_when_the_graph_is_built(generator):
    graph = tf.function(
        lambda x: complete_prefixes(generator, x, 3, fresh_seed(0)),
        input_signature=[tf.TensorSpec([None, 4], tf.int32)],
        autograph=False,
    )
    assert graph(generator.sample(5, seed=0)).shape == (3, 5, 3, 4)
