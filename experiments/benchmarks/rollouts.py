"""The reward matrix of SeqGAN: the published algorithm beside ours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tfpriv.seqgan import sampling
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.rewards import rollout_reward

PUBLISHED, OURS = "one rollout a prefix at a time", "tfpriv"
Runs = dict[str, Callable[[], None]]


def make_rewards(
    batch: int, length: int, vocabulary: int, rollouts: int, seed: int
) -> Runs:
    """Name -> a call that computes rewards (batch, length) of the same sequences."""
    generator = Generator(vocabulary, length, units=32, end_id=None, seed=seed)
    discriminator = Discriminator.seqgan(vocabulary, length, seed=seed)
    return contestants(generator, discriminator, batch, (rollouts, rollouts), seed)


def contestants(
    generator: Generator,
    discriminator: Discriminator,
    batch: int,
    rollouts: tuple[int, int],
    seed: int,
) -> Runs:
    """Both ways to the rewards of one batch, with so many rollouts a prefix each."""
    ids = tf.constant(generator.sample(batch, seed=seed))
    published = PublishedRewards(generator, discriminator, rollouts[0])
    ours = rollout_reward(generator, discriminator, rollouts=rollouts[1])
    return {
        PUBLISHED: lambda: np.asarray(published(ids)),
        OURS: lambda: np.asarray(ours(ids, sampling.fresh_seed(None))),
    }


class PublishedRewards:
    """Algorithm 1 of Yu et al. 2017 (arXiv:1609.05473), read literally.

    For every rollout and every prefix length: the whole sequence is generated from
    its start, the prefix being given, and the discriminator is asked once.

    Args:
        generator: draws the tokens.
        discriminator: scores whole sequences.
        rollouts: per prefix.
    """

    def __init__(
        self, generator: Generator, discriminator: Discriminator, rollouts: int
    ) -> None:
        self._generator = generator
        self._rollouts = rollouts
        self._complete = tf.function(self._completed, autograph=False)
        self._score = tf.function(discriminator.real_probability, autograph=False)

    def __call__(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns float32 (batch, T)."""
        means = tf.reduce_mean(self.scores(ids), axis=0)
        return tf.concat([means, self._score(ids)[:, None]], axis=1)

    def scores(self, ids: tf.Tensor) -> tf.Tensor:
        """Of every rollout, float32 (rollouts, batch, T - 1)."""
        columns = [
            [
                self._score(self._complete(ids, tf.constant(given)))
                for _ in range(self._rollouts)
            ]
            for given in range(1, ids.shape[1])
        ]
        return tf.transpose(tf.convert_to_tensor(columns), [1, 2, 0])

    def _completed(self, ids: tf.Tensor, given: tf.Tensor) -> tf.Tensor:
        batch, length = ids.shape
        kernel, bias = self._generator.drawing_head(1.0)
        vocabulary = self._generator.vocabulary_size

        def drawn(hidden: tf.Tensor) -> tf.Tensor:
            logits = (tf.matmul(hidden, kernel) + bias)[:, :vocabulary]
            return tf.random.categorical(logits, 1, dtype=tf.int32)[:, 0]

        def body(t, tokens, hidden, carry, rows):
            hidden, carry = self._generator.step(tokens, hidden, carry)
            tokens = tf.cond(t < given, lambda: ids[:, t], lambda: drawn(hidden))
            return t + 1, tokens, hidden, carry, rows.write(t, tokens)

        hidden, carry = self._generator.initial_state(batch)
        start = tf.fill([batch], self._generator.start_id)
        rows = tf.TensorArray(tf.int32, length, element_shape=[batch])
        *_, rows = tf.while_loop(
            lambda t, *_: t < length, body, (0, start, hidden, carry, rows)
        )
        return tf.transpose(rows.stack())
