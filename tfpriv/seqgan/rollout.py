"""Monte Carlo rollouts: every prefix of every sequence, finished many times.

A rollout of the first p tokens goes on from the LSTM state after them, so those
states are computed once for the whole sequence, and all prefixes and rollouts then
run in ONE loop over positions: at position t the rows of prefixes 1..t-1 take a
step together, and prefix t joins. That is T steps on large matrices instead of
the T * (T - 1) / 2 * rollouts small ones of a loop over prefixes. The first token
behind a prefix has one distribution for all its rollouts: they draw from it
together.

Rollouts of one prefix are a Latin hypercube sample: at each position their draws fall
into as many strata of the vocabulary, in an order that the caller may choose. Each
rollout alone is an exact draw of the generator, whatever the order; a mean over them
varies the less, the better the order tells what a token does to what is averaged.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfpriv.seqgan import sampling
from tfpriv.seqgan.generator import Generator


def open_prefixes(generator: Generator, ids: tf.Tensor) -> tf.Tensor:
    """Which prefixes can still go on.

    Args:
        generator: the model whose end and pad tokens count.
        ids: int (batch, T).

    Returns:
        bool (T - 1, batch): whether the first p tokens, p = 1..T - 1, hold no end.
    """
    if generator.end_id is None:
        return tf.ones([ids.shape[1] - 1, tf.shape(ids)[0]], tf.bool)
    closed = (ids == generator.end_id) | (ids == generator.pad_id)
    closed = tf.cumsum(tf.cast(closed, tf.int32), axis=1) > 0
    return tf.transpose(~closed[:, :-1])


def complete_prefixes(
    generator: Generator,
    ids: tf.Tensor,
    rollouts: int,
    seed: tf.Tensor,
    temperature: float = 1.0,
    *,
    effects: tf.Tensor | None = None,
) -> tf.Tensor:
    """Finishes every proper prefix of `ids`, `rollouts` times.

    To be called inside a graph. Its work is bounded by what is still open: rows
    that have drawn their end leave the scan.

    Args:
        generator: draws the tokens.
        ids: int32 (batch, T), T static.
        rollouts: int K.
        seed: int32 (2,).
        temperature: positive float.
        effects: float (T, V). At each position the vocabulary is put into the order
            of these; None leaves it as it is.

    Returns:
        int32 (T - 1, batch, K, T). At index p - 1 the first p tokens are those of
        `ids`; behind an end token there are pads.
    """
    length = int(ids.shape[1])
    batch = tf.shape(ids)[0] if ids.shape[0] is None else int(ids.shape[0])
    size = batch * rollouts  # Rows of one prefix length.
    ids = tf.cast(ids, tf.int32)
    given = tf.repeat(ids, rollouts, axis=0)
    # Time first: one position is one contiguous slice.
    hidden_at, carry_at = (
        tf.transpose(state, [1, 0, 2]) for state in generator.states(ids)
    )
    still_open = tf.repeat(open_prefixes(generator, ids), rollouts, axis=1)
    if effects is None:
        effects = tf.zeros([length, generator.vocabulary_size])
    orders = tf.argsort(effects, axis=1, stable=True)

    def draw(t: Any, hidden: tf.Tensor, uniforms: tf.Tensor) -> tf.Tensor:
        head = generator.drawing_head(temperature, order=orders[t])
        hidden = tf.cast(hidden, tf.float32)
        drawn = sampling.draw_tokens(hidden, uniforms, *head, generator.vocabulary_size)
        return tf.gather(orders[t], drawn)

    def body(
        t: Any, number: Any, tokens: Any, hidden: Any, carry: Any, output: Any
    ) -> tuple:
        seeds = tf.random.split(
            tf.random.fold_in(seed, t, alg="philox"), 2, alg="philox"
        )
        hidden, carry = generator.step(tokens, hidden, carry)
        strata = sampling.stratified_uniforms((t - 1) * batch, rollouts, seeds[0])
        strata = tf.gather(tf.reshape(strata, [-1, 1, 2]), number)
        tokens = draw(t, hidden, strata)[:, 0]
        strata = sampling.stratified_uniforms(batch, rollouts, seeds[1])
        joining = (
            tf.range(size) + (t - 1) * size,
            tf.reshape(draw(t, hidden_at[t], strata), [-1]),
            tf.repeat(hidden_at[t], rollouts, axis=0),
            tf.repeat(carry_at[t], rollouts, axis=0),
        )
        if generator.end_id is not None:
            joining = _keep(joining, still_open[t - 1])
        rows = tuple(
            tf.concat(pair, axis=0)
            for pair in zip((number, tokens, hidden, carry), joining, strict=True)
        )
        # Prefixes longer than t hold the given token; closed ones a pad.
        column = tf.concat(
            [
                tf.fill([t * size], generator.pad_id),
                tf.tile(given[:, t], [length - 1 - t]),
            ],
            axis=0,
        )
        column = tf.tensor_scatter_nd_update(column, rows[0][:, None], rows[1])
        if generator.end_id is not None:
            rows = _keep(rows, rows[1] != generator.end_id)
        return t + 1, *rows, output.write(t, column)

    units = generator.units
    nothing = tf.zeros([0, units], generator.compute_dtype)
    output = tf.TensorArray(tf.int32, length, element_shape=[None])
    output = output.write(0, tf.tile(given[:, 0], [length - 1]))
    result = tf.while_loop(
        lambda t, *_: t < length,
        body,
        (1, tf.zeros([0], tf.int32), tf.zeros([0], tf.int32), nothing, nothing, output),
        shape_invariants=(
            tf.TensorShape([]),
            tf.TensorShape([None]),
            tf.TensorShape([None]),
            tf.TensorShape([None, units]),
            tf.TensorShape([None, units]),
            tf.TensorShape(None),
        ),
        parallel_iterations=1,
    )
    columns = tf.reshape(result[-1].stack(), [length, length - 1, batch, rollouts])
    return tf.transpose(columns, [1, 2, 3, 0])


def _keep(rows: tuple[tf.Tensor, ...], which: tf.Tensor) -> tuple[tf.Tensor, ...]:
    return tuple(tf.boolean_mask(part, which) for part in rows)
