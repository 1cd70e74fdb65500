"""What an action is worth: rewards of every token, and the baseline under them.

A reward is a callable (ids int32 (batch, T), seed int32 (2,)) -> float32 (batch, T):
at index t the value of having drawn token t. Behind the end token it is 0.
"""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv._validation import finite, integer
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.rollout import complete_prefixes, open_prefixes
from tfpriv.seqgan.scores import completion_scores, score, token_effects

Reward = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]


def rollout_reward(
    generator: Generator,
    discriminator: Discriminator,
    *,
    rollouts: int = 16,
    temperature: float = 1.0,
) -> Reward:
    """Mean probability of real over sequences that go on from each prefix.

    Q(t) = 1/K sum_k D(y_1..y_t, rollout_k) for t < T, and D(y_1..y_T) at the end
    (Yu et al. 2017, arXiv:1609.05473, equation 4). The rollouts of a prefix are drawn
    in strata of what a token adds to the score: each is an exact draw, their mean is
    unbiased, and it varies less than that of as many independent ones.

    Args:
        generator: finishes the prefixes.
        discriminator: scores them.
        rollouts: int K.
        temperature: positive float, of the rollouts.
    """
    integer(rollouts=rollouts)

    def reward(ids: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        final = score(discriminator, ids)
        finished = complete_prefixes(
            generator,
            ids,
            rollouts,
            seed,
            temperature,
            effects=token_effects(discriminator, ids),
        )
        still_open = open_prefixes(generator, ids)
        values = completion_scores(discriminator, ids, finished, still_open)
        values = tf.where(still_open, values, final[None])
        values = tf.concat([tf.transpose(values), final[:, None]], axis=1)
        return values * generator.token_mask(ids)

    return tf.function(reward, autograph=False)


def per_step_reward(generator: Generator, discriminator: Discriminator) -> Reward:
    """Probability of real of each prefix itself, the rest of the row being pads.

    T scores a sequence instead of T * rollouts. The discriminator has to know
    prefixes: train it on rows from `cut_at_random`, as `SeqGAN` does.

    Args:
        generator: says where sequences end and what a pad is.
        discriminator: scores the prefixes.
    """

    def reward(ids: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        del seed
        length = int(ids.shape[1])
        seen = tf.linalg.band_part(tf.ones([length, length], tf.bool), -1, 0)
        prefixes = tf.where(seen[None], ids[:, None, :], generator.pad_id)
        scores = score(discriminator, tf.reshape(prefixes, [-1, length]))
        return tf.reshape(scores, [-1, length]) * generator.token_mask(ids)

    return tf.function(reward, autograph=False)


def constant_reward(generator: Generator, value: float = 1.0) -> Reward:
    """The same reward for every token: the control every reward has to beat.

    The generator is then pushed towards whatever it happened to draw, which sharpens
    it and alone lowers NLL_oracle.

    Args:
        generator: says where sequences end.
        value: float.
    """
    finite(value=value)

    def reward(ids: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
        del seed
        return value * generator.token_mask(ids)

    return tf.function(reward, autograph=False)


def make_reward(
    name: str,
    generator: Generator,
    discriminator: Discriminator,
    *,
    rollouts: int = 16,
) -> Reward:
    """The reward of a name: "rollout", "per_step" or "constant".

    Raises:
        InputError: another name.
    """
    if name == "rollout":
        return rollout_reward(generator, discriminator, rollouts=rollouts)
    if name == "per_step":
        return per_step_reward(generator, discriminator)
    if name == "constant":
        return constant_reward(generator)
    raise InputError(
        f"Expected reward to be rollout, per_step, constant or a callable, "
        f"received {name!r}."
    )


def cut_at_random(ids: tf.Tensor, pad_id: int, seed: tf.Tensor) -> tf.Tensor:
    """Keeps the first 1..T tokens of each row, the number drawn uniformly.

    Args:
        ids: int (batch, T).
        pad_id: int. Fills the rest.
        seed: int32 (2,).

    Returns:
        int (batch, T).
    """
    length = int(ids.shape[1])
    kept = tf.random.stateless_uniform(
        [tf.shape(ids)[0], 1], seed, 1, length + 1, dtype=tf.int32, alg="philox"
    )
    pad = tf.cast(pad_id, ids.dtype)
    return tf.where(tf.range(length)[None] < kept, ids, pad)


def advantages(rewards: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Rewards minus a baseline of their step: the mean over the OTHER sequences.

    Leaving a sequence's own reward out keeps the gradient unbiased. A step that only
    one sequence reaches takes the others' mean over all steps; a batch of one takes 0.

    Args:
        rewards: float32 (batch, T).
        mask: float32 (batch, T) of 0 and 1, the positions that count.

    Returns:
        float32 (batch, T), 0 where the mask is.
    """
    rewards = rewards * mask
    others = tf.reduce_sum(mask, axis=0) - mask
    total = tf.reduce_sum(rewards, axis=0) - rewards
    row_total = tf.reduce_sum(rewards, axis=1, keepdims=True)
    row_count = tf.reduce_sum(mask, axis=1, keepdims=True)
    anywhere = tf.math.divide_no_nan(
        tf.reduce_sum(rewards) - row_total, tf.reduce_sum(mask) - row_count
    )
    baseline = tf.where(others > 0.5, tf.math.divide_no_nan(total, others), anywhere)
    return (rewards - baseline) * mask
