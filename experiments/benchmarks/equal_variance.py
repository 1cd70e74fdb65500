"""How many of our rollouts vary as little as the published algorithm's.

Measured where SeqGAN computes rewards: after maximum likelihood and some training of
the discriminator, on data of an oracle.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import keras
import numpy as np
import tensorflow as tf

from experiments.benchmarks.rollouts import PublishedRewards, Runs, contestants
from tfpriv.seqgan import sampling
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.rewards import rollout_reward

BATCH, VOCABULARY, LENGTH = 64, 5000, 20
SEQUENCES, GENERATOR_STEPS, DISCRIMINATOR_STEPS = 4000, 250, 150
ROLLOUTS, TRIED, CALLS = 16, 10, 8


@dataclasses.dataclass(frozen=True)
class EqualVariance:
    """What was measured; variances are means over all prefixes of one batch.

    Attributes:
        rollouts: of the published algorithm.
        published: variance of its rewards.
        ours: number of rollouts -> variance of our rewards.
        equal: the fewest of our rollouts, by 1/K from `TRIED`, that vary as little.
    """

    rollouts: int
    published: float
    ours: dict[int, float]
    equal: int


def make_equal_rewards(seed: int) -> Runs:
    """Rewards of equal variance: 16 published rollouts, and as many as we need."""
    return contestants(
        *trained_pair(seed), BATCH, (ROLLOUTS, measure(seed).equal), seed
    )


@functools.cache
def measure(seed: int) -> EqualVariance:
    """Variances of both; ours from `CALLS` calls, the published from its rollouts."""
    generator, discriminator = trained_pair(seed)
    ids = tf.constant(generator.sample(BATCH, seed=seed))
    scores = PublishedRewards(generator, discriminator, ROLLOUTS).scores(ids).numpy()
    # Its rollouts are independent.
    published = float(scores.var(axis=0, ddof=1).mean()) / ROLLOUTS

    def ours(rollouts: int) -> float:
        reward = rollout_reward(generator, discriminator, rollouts=rollouts)
        drawn = [reward(ids, sampling.fresh_seed(seed, i)) for i in range(CALLS)]
        return float(np.var(drawn, axis=0, ddof=1)[:, :-1].mean())

    tried = {TRIED: ours(TRIED)}
    equal = math.ceil(TRIED * tried[TRIED] / published)
    if equal not in tried:
        tried[equal] = ours(equal)
    return EqualVariance(ROLLOUTS, published, tried, equal)


@functools.cache
def trained_pair(seed: int) -> tuple[Generator, Discriminator]:
    """A generator near an oracle, and a discriminator that learns to tell them."""
    oracle = Generator(
        VOCABULARY, LENGTH, units=32, end_id=None, initializer_stddev=1.0, seed=seed + 1
    )
    real = oracle.sample(SEQUENCES, seed=seed)
    generator = Generator(VOCABULARY, LENGTH, units=32, end_id=None, seed=seed)
    _fit(
        generator,
        keras.optimizers.Adam(1e-2),
        lambda ids, _: -tf.reduce_mean(generator.token_log_probs(ids, training=True)),
        (real, np.zeros(SEQUENCES, np.int32)),
        GENERATOR_STEPS,
        seed,
    )
    discriminator = Discriminator.seqgan(VOCABULARY, LENGTH, seed=seed)
    written = generator.sample(SEQUENCES, seed=seed + 1)
    labels = np.repeat(np.array([1, 0], np.int32), SEQUENCES)
    _fit(
        discriminator,
        keras.optimizers.Adam(1e-3),
        lambda ids, real: tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(
                real, discriminator(ids, training=True)
            )
        ),
        (np.concatenate([real, written]), labels),
        DISCRIMINATOR_STEPS,
        seed,
    )
    return generator, discriminator


def _fit(model, optimizer, loss, data, steps: int, seed: int) -> None:
    variables = model.trainable_variables

    @tf.function(autograph=False)
    def step(ids: tf.Tensor, labels: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            value = loss(ids, labels)
        optimizer.apply(tape.gradient(value, variables), variables)

    optimizer.build(variables)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        rows = rng.integers(0, len(data[0]), BATCH)
        step(*(tf.constant(part[rows]) for part in data))
