"""The seed corpus's language model of one class, as a graph that draws texts.

What `tfpriv.text.TiltedModel` and `tfpriv.seqgan.SeedModel` do in NumPy: the tables are
the same, a token is drawn by the inverse of cumulative sums over a part of one long
row. All of it is post-processing of counts that were released.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfpriv.layers import _randomness
from tfpriv.mechanisms.record_counts import LENGTH_EDGES
from tfpriv.text import tilted_model as tilted
from tfpriv.text.label_model import TEMPERATURE
from tfpriv.text.vocabulary import END, PAD, START, UNK

LONGEST = 60
"""Tokens of a text, at most."""

_MAX_TRIES = 20
_STEPS = LONGEST + tilted.RESTARTS
_DRAWS = 3


class TiltedGraph:
    """Draws token ids of one class like `SeedModel.sample`.

    The temperature is that of each component of the mixture (neighbours, bigram,
    trigram, single tokens), not of their shares: at 1 the law is the model's own.

    Args:
        seed_model: a fitted `SeedModel`.
        number: of the class.
    """

    def __init__(self, seed_model: Any, number: int) -> None:
        model = seed_model.language_model(number)
        prior = model.prior
        self._number = number
        self._size = len(model.frequencies)
        self._shares = np.array(tilted.ORDERS)
        self._trust, self._prior_weight = model.trust, model.prior_weight
        self._single = _Rows(np.array([0, self._size]), None, model.frequencies)
        self._bigram = _ngrams(prior.bigram, model.tilt, self._size)
        self._trigram = _ngrams(prior.trigram, model.tilt, None)
        self._contexts = prior.trigram.contexts
        self._pairs = _pairs(model.pairs, self._size)
        self._labels = seed_model.labels
        lengths = seed_model.lengths[number] + 1e-6
        self._buckets = np.cumsum(lengths / lengths.sum())

    def sample(self, count: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
        """Returns int32 (count, 60): the tokens of a text, then PAD.

        A text is drawn again, some times, until the label model gives it this class.
        """
        power = 1 / tf.cast(temperature, tf.float64)
        tables = [
            rows.at(power)
            for rows in (self._pairs, self._bigram, self._trigram, self._single)
        ]

        def again(
            tries: tf.Tensor, texts: tf.Tensor, kept: tf.Tensor
        ) -> tuple[tf.Tensor, ...]:
            drawn = self._draw(count, tables)
            texts = tf.where(kept[:, None], texts, drawn)
            return tries + 1, texts, self.accepts(texts)

        start = (0, tf.fill([count, LONGEST], PAD), tf.zeros([count], tf.bool))
        _, texts, _ = tf.while_loop(
            lambda tries, _, kept: (tries < _MAX_TRIES) & ~tf.reduce_all(kept),
            again,
            start,
            parallel_iterations=1,
        )
        return texts

    def _draw(self, count: tf.Tensor, tables: list[tf.Tensor]) -> tf.Tensor:
        uniforms = fresh_uniforms([_STEPS, count, _DRAWS])
        length = self._draw_lengths(count)
        column = tf.range(LONGEST)[None]

        def step(
            t: Any, texts: Any, size: Any, before: Any, previous: Any, restarts: Any,
            done: Any,
        ) -> tuple:  # fmt: skip
            u = uniforms[t]
            token = self._next(before, previous, u, tables)
            ends = token == END
            enough = tf.maximum(tf.cast(length, tf.float64) * tilted.LONG_ENOUGH, 1)
            stops = ends & (tf.cast(size, tf.float64) >= enough)
            restarts += tf.cast(ends & ~stops, tf.int32)
            # Of a text that begins again too often, any token goes on.
            forced = ends & ~stops & (restarts > tilted.RESTARTS)
            token = tf.where(forced, self._single.draw(tables[3], 0, u[:, 1]), token)
            begins = ends & ~stops
            before = tf.where(begins, START, before)
            previous = tf.where(begins, START, previous)
            done |= stops
            adds = ~done & (~ends | forced)
            texts = tf.where(
                adds[:, None] & (column == size[:, None]), token[:, None], texts
            )
            before, previous = (
                tf.where(adds, previous, before),
                tf.where(adds, token, previous),
            )
            size += tf.cast(adds, tf.int32)
            return (
                t + 1,
                texts,
                size,
                before,
                previous,
                restarts,
                done | (size >= length),
            )

        zeros = tf.zeros([count], tf.int32)
        state = (
            0,
            tf.fill([count, LONGEST], PAD),
            zeros,
            zeros + START,
            zeros + START,
            zeros,
            tf.zeros([count], tf.bool),
        )
        return tf.while_loop(
            lambda t, *rest: (t < _STEPS) & ~tf.reduce_all(rest[-1]),
            step,
            state,
            parallel_iterations=1,
        )[1]

    def _next(
        self,
        before: tf.Tensor,
        previous: tf.Tensor,
        uniforms: tf.Tensor,
        tables: list[tf.Tensor],
    ) -> tf.Tensor:
        """Returns the next token, int32 (count,); see `TiltedModel`."""
        key = tf.cast(before, tf.int64) * self._size + tf.cast(previous, tf.int64)
        contexts = tf.constant(self._contexts)
        place = tf.searchsorted(contexts, key)
        place = tf.minimum(place, len(self._contexts) - 1)
        seen = tf.gather(contexts, place) == key
        share = self._shares
        bigram = share[1] * self._bigram.mass(previous)
        trigram = share[2] * tf.where(seen, self._trigram.mass(place), 0.0)
        both = bigram + trigram
        pairs = self._trust * tf.minimum(self._pairs.mass(previous), 1.0)
        known = (1 - pairs) * self._prior_weight * both / (both + share[0])
        which, within = uniforms[:, 0], uniforms[:, 1]
        second = uniforms[:, 2] * both < bigram
        return tf.where(
            which < pairs,
            self._pairs.draw(tables[0], previous, within),
            tf.where(
                which < pairs + known,
                tf.where(
                    second,
                    self._bigram.draw(tables[1], previous, within),
                    self._trigram.draw(tables[2], place, within),
                ),
                self._single.draw(tables[3], 0, within),
            ),
        )

    def _draw_lengths(self, count: tf.Tensor) -> tf.Tensor:
        uniforms = fresh_uniforms([count, 2])
        bucket = tf.searchsorted(self._buckets, uniforms[:, 0], side="right")
        bucket = tf.minimum(bucket, len(self._buckets) - 1)
        low = tf.gather(np.array(LENGTH_EDGES, np.int32), bucket)
        upper = np.array([*LENGTH_EDGES[1:], LONGEST + 1], np.int32)
        span = tf.cast(tf.gather(upper, bucket) - low, tf.float64)
        return low + tf.cast(tf.floor(uniforms[:, 1] * span), tf.int32)

    def accepts(self, texts: tf.Tensor) -> tf.Tensor:
        """Whether the label model gives each text this class; see `LabelModel`."""
        ordered = tf.sort(texts, axis=1)
        first = tf.concat(
            [tf.ones_like(ordered[:, :1], tf.bool), ordered[:, 1:] != ordered[:, :-1]],
            axis=1,
        )
        counted = tf.cast(first & (ordered > UNK), tf.float64)
        evidence = tf.gather(self._labels.log_tokens.T, ordered) * counted[..., None]
        size = tf.reduce_sum(tf.cast(texts != PAD, tf.int32), axis=1)
        edges = np.array(LENGTH_EDGES, np.int32)
        bucket = tf.searchsorted(edges, tf.maximum(size, 1), side="right") - 1
        scores = TEMPERATURE * tf.reduce_sum(evidence, axis=1)
        scores += tf.gather(self._labels.log_lengths.T, bucket)
        return tf.argmax(scores, axis=1, output_type=tf.int32) == self._number


class _Rows:
    """Weighted tokens of many contexts, one row after another.

    Args:
        starts: (C + 1,) where the row of each context begins.
        tokens: (N,) ids, or None where they are the places themselves.
        weights: (N,) non-negative.
    """

    def __init__(
        self, starts: np.ndarray, tokens: np.ndarray | None, weights: np.ndarray
    ) -> None:
        self._starts = starts.astype(np.int32)
        self._tokens = None if tokens is None else tokens.astype(np.int32)
        sums = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
        self._mass = np.diff(sums[self._starts])
        # Relative to the largest of a row: a power of it neither vanishes nor grows.
        sizes = np.diff(self._starts)
        largest = np.zeros(len(sizes))
        some = sizes > 0
        if some.any():
            largest[some] = np.maximum.reduceat(weights, self._starts[:-1][some])
        self._relative = weights / np.maximum(np.repeat(largest, sizes), 1e-300)

    def at(self, power: tf.Tensor) -> tf.Tensor:
        """Cumulative weights to a power, float64 (N + 1,)."""
        weights = tf.constant(self._relative)
        raised = tf.where(weights > 0, tf.pow(weights, power), 0.0)
        return tf.concat([tf.zeros([1], tf.float64), tf.cumsum(raised)], axis=0)

    def mass(self, row: tf.Tensor) -> tf.Tensor:
        """The sum of a row's weights as given, float64."""
        return tf.gather(tf.constant(self._mass), row)

    def draw(
        self, cumulative: tf.Tensor, row: tf.Tensor | int, uniforms: tf.Tensor
    ) -> tf.Tensor:
        """One token of each row, int32; anything where the row is empty."""
        if not len(self._relative):
            return tf.zeros(tf.shape(uniforms), tf.int32)
        starts = tf.constant(self._starts)
        start, end = tf.gather(starts, row), tf.gather(starts, tf.add(row, 1))
        low, high = tf.gather(cumulative, start), tf.gather(cumulative, end)
        target = low + uniforms * (high - low)
        place = tf.searchsorted(cumulative[1:], target, side="right")
        place = tf.clip_by_value(place, start, tf.maximum(end - 1, start))
        place = tf.minimum(place, len(self._relative) - 1)
        return place if self._tokens is None else tf.gather(self._tokens, place)


def fresh_uniforms(shape: list) -> tf.Tensor:
    """Independent uniforms in [0, 1), float64, from the operating system."""
    return tf.cast(_randomness.fresh_words(shape), tf.float64) * 2.0**-32


def _ngrams(table: Any, tilt: np.ndarray, size: int | None) -> _Rows:
    """Rows of a table, tilted, words alone; by token if `size`, else as they are."""
    totals = np.add.reduceat(table.counts, table.starts[:-1])
    share = table.counts / np.repeat(totals, np.diff(table.starts))
    weights = np.where(table.tokens > UNK, share * tilt[table.tokens], 0.0)
    starts = table.starts
    if size is not None:
        sizes = np.zeros(size, np.int64)
        sizes[table.contexts] = np.diff(table.starts)
        starts = np.concatenate([[0], np.cumsum(sizes)])
    return _Rows(starts, table.tokens, weights)


def _pairs(pairs: Any, size: int) -> _Rows:
    sizes = np.zeros(size, np.int64)
    for first, (ids, _) in pairs.items():
        sizes[first] = len(ids)
    order = sorted(pairs)
    empty = [np.zeros(0)]
    tokens = np.concatenate([*empty, *(pairs[first][0] for first in order)])
    weights = np.concatenate([*empty, *(pairs[first][1] for first in order)])
    return _Rows(np.concatenate([[0], np.cumsum(sizes)]), tokens, weights)
