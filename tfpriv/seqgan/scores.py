"""The discriminator's scores of many sequences, and what tokens do to them."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from tfpriv.seqgan.discriminator import Discriminator, probability

# Sequences scored at a time: bounds the memory of the convolutions' outputs.
_SCORED_AT_ONCE = 256
# Prefix lengths whose completions go through one graph: each such graph is traced.
_TOGETHER = 3


def score(discriminator: Discriminator, ids: tf.Tensor) -> tf.Tensor:
    """Probability of real, in parts that bound the memory.

    Args:
        discriminator: the scorer.
        ids: int32 (rows, T).

    Returns:
        float32 (rows,).
    """
    return _in_parts(discriminator.real_probability, ids)


def token_effects(discriminator: Discriminator, ids: tf.Tensor) -> tf.Tensor:
    """What each token would add to the score at each position, to first order.

    Args:
        discriminator: the scorer.
        ids: int32 (batch, T), sequences around which the score is made linear.

    Returns:
        float32 (T, V): the score's gradient with respect to the embedded token of a
        position, averaged over the sequences, times every token's embedding.
    """
    embedded = discriminator.embedding(ids)
    with tf.GradientTape() as tape:
        tape.watch(embedded)
        logits = discriminator.classify(discriminator.pooled(embedded))
        scores = probability(logits)
    slopes = tf.reduce_mean(tape.gradient(scores, embedded), axis=0)
    table = tf.cast(discriminator.embedding.embeddings, slopes.dtype)
    return tf.cast(tf.matmul(slopes, table, transpose_b=True), tf.float32)


def completion_scores(
    discriminator: Discriminator,
    ids: tf.Tensor,
    finished: tf.Tensor,
    still_open: tf.Tensor,
) -> tf.Tensor:
    """Mean probability of real over the completions of each prefix.

    A window of a convolution that lies in the prefix is the same in all completions: it
    is computed once, and for each completion only those that reach behind the prefix.

    Args:
        discriminator: the scorer.
        ids: int32 (batch, T), T static: the sequences whose prefixes were completed.
        finished: int32 (T - 1, batch, K, T) from `complete_prefixes`.
        still_open: bool (T - 1, batch) from `open_prefixes`.

    Returns:
        float32 (T - 1, batch); 0 where the prefix was closed.
    """
    length, rollouts = int(ids.shape[1]), int(finished.shape[2])
    embedded = discriminator.embedding(ids)
    outputs = [layer(embedded) for layer in discriminator.convolutions]
    # Of sequences of one token nothing is left to finish.
    means = [tf.zeros([0, tf.shape(ids)[0]])]
    for given in range(1, length, _TOGETHER):
        group = slice(given - 1, given - 1 + _TOGETHER)
        where = tf.where(still_open[group])
        rows = tf.reshape(tf.gather_nd(finished[group], where), [-1, length])
        sequences = tf.repeat(where[:, 1], rollouts)
        scorer = _completion_scorer(discriminator, outputs, given)
        scores = tf.reshape(_in_parts(scorer, rows, sequences), [-1, rollouts])
        shape = tf.shape(still_open[group], out_type=tf.int64)
        means.append(tf.scatter_nd(where, tf.reduce_mean(scores, axis=1), shape))
    return tf.concat(means, axis=0)


def _completion_scorer(
    discriminator: Discriminator, outputs: list[tf.Tensor], given: int
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Scores rows whose first `given` tokens are those of a sequence each.

    Args:
        discriminator: the scorer.
        outputs: of each convolution for all sequences, (batch, windows, filters).
        given: int.

    Returns:
        (rows int32 (n, T), numbers of their sequences (n,)) -> float32 (n,).
    """
    inside = [max(0, given - width + 1) for width in discriminator.widths]
    known = [
        tf.reduce_max(output[:, :count], axis=1) if count else None
        for output, count in zip(outputs, inside, strict=True)
    ]

    def scores(rows: tf.Tensor, sequences: tf.Tensor) -> tf.Tensor:
        embedded = discriminator.embedding(rows)
        pooled = []
        for layer, start, most in zip(
            discriminator.convolutions, inside, known, strict=True
        ):
            behind = tf.reduce_max(layer(embedded[:, start:]), axis=1)
            if most is not None:
                behind = tf.maximum(behind, tf.gather(most, sequences))
            pooled.append(tf.nn.relu(behind))
        return probability(discriminator.classify(tf.concat(pooled, axis=1)))

    return scores


def _in_parts(
    function: Callable[..., tf.Tensor], rows: tf.Tensor, *more: tf.Tensor
) -> tf.Tensor:
    """`function(rows, *more)`, float32 (n,), of parts of equal size at a time.

    It never gets a part without rows: of these oneDNN's convolutions have the shape of
    what went in (TensorFlow 2.21).
    """
    if rows.shape[0] is not None and 0 < rows.shape[0] <= _SCORED_AT_ONCE:
        return function(rows, *more)
    count = tf.shape(rows)[0]
    parts = tf.maximum(1, -(-count // _SCORED_AT_ONCE))
    size = tf.maximum(1, -(-count // parts))

    def divided(array: tf.Tensor) -> tf.Tensor:
        rest = array.shape[1:]
        nothing = [[0, 0]] * len(rest)
        padded = tf.pad(array, [[0, parts * size - count], *nothing])
        return tf.reshape(padded, tf.stack([parts, size, *rest]))

    scores = tf.map_fn(
        lambda part: function(*part),
        tuple(divided(array) for array in (rows, *more)),
        fn_output_signature=tf.TensorSpec([None], tf.float32),
        parallel_iterations=2,
    )
    return tf.reshape(scores, [-1])[:count]
