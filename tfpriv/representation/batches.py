"""Batches of texts of like length: padding all to one length costs twice the time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfpriv.representation.word_pieces import WordPieces

# Texts that are sorted together: batches stay nearly random.
_POOL = 16
_TOKENISED_TOGETHER = 1024


class TextBatches:
    """Tokenised texts with targets, batched by length, in a new order every epoch.

    Args:
        pieces: WordPieces.
        texts: sequence of n str.
        targets: name -> array (n, ...); also per-record weights, if any.
        batch_size: int.
        shuffle: False keeps the order of the texts.
        seed: int or None, of the order.
    """

    def __init__(
        self,
        pieces: WordPieces,
        texts: Any,
        targets: Mapping[str, np.ndarray],
        batch_size: int,
        *,
        shuffle: bool,
        seed: int | None = None,
    ) -> None:
        self.rows = tokenise(pieces, texts)
        self.targets = dict(targets)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.pad = pieces.tokenizer.pad_token_id
        self._lengths = np.array([len(row) for row in self.rows], np.int64)
        self._random = np.random.default_rng(seed)

    def __len__(self) -> int:
        return math.ceil(len(self.rows) / self.batch_size)

    def __iter__(self) -> Iterator[tuple[np.ndarray, dict[str, np.ndarray]]]:
        for index in self._order():
            yield (
                pad(self.rows, index, self.pad),
                {name: values[index] for name, values in self.targets.items()},
            )

    def dataset(self) -> tf.data.Dataset:
        """Returns batches of (ids (B, T), targets) as a tf.data.Dataset."""
        signature = (
            tf.TensorSpec([None, None], tf.int32),
            {
                name: tf.TensorSpec([None, *values.shape[1:]], values.dtype)
                for name, values in self.targets.items()
            },
        )
        dataset = tf.data.Dataset.from_generator(
            lambda: iter(self), output_signature=signature
        )
        dataset = dataset.apply(tf.data.experimental.assert_cardinality(len(self)))
        return dataset.prefetch(2)

    def _order(self) -> list[np.ndarray]:
        size = self.batch_size
        order = np.arange(len(self.rows))
        if not self.shuffle:
            return [order[i : i + size] for i in range(0, len(order), size)]
        self._random.shuffle(order)
        batches = []
        for start in range(0, len(order), size * _POOL):
            pool = order[start : start + size * _POOL]
            pool = pool[np.argsort(self._lengths[pool], kind="stable")]
            batches += [pool[i : i + size] for i in range(0, len(pool), size)]
        # A short batch of the longest texts stays what it is, wherever it lands.
        self._random.shuffle(batches)
        return batches


def tokenise(pieces: WordPieces, texts: Any) -> list[np.ndarray]:
    """Returns the word-piece ids of each text, int32, unpadded."""
    rows: list[np.ndarray] = []
    pad_id = pieces.tokenizer.pad_token_id
    for start in range(0, len(texts), _TOKENISED_TOGETHER):
        part = [str(text) for text in texts[start : start + _TOKENISED_TOGETHER]]
        ids = pieces(tf.constant(part, tf.string)).numpy()
        lengths = (ids != pad_id).sum(axis=1)
        rows += [row[:n].copy() for row, n in zip(ids, lengths, strict=True)]
    return rows


def pad(rows: list[np.ndarray], index: np.ndarray, pad_id: int) -> np.ndarray:
    """Returns int32 (len(index), T), padded on the right."""
    width = max(1, *(len(rows[i]) for i in index))
    ids = np.full((len(index), width), pad_id, np.int32)
    for line, i in enumerate(index):
        ids[line, : len(rows[i])] = rows[i]
    return ids
