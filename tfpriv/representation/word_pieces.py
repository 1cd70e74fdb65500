"""Strings to word-piece ids, a fixed number of whole words, in the graph."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import keras
import tensorflow as tf

from tfpriv._validation import integer

# Of a word: one of more than a hundred bytes is a single [UNK] to tensorflow-text.
_MOST_PIECES = 100


@keras.saving.register_keras_serializable(package="tfpriv")
class WordPieces(keras.layers.Layer):
    """Tokenises texts and keeps the first `max_words` words of each, whole.

    A word is what BERT's pre-tokenizer gives, a run of letters or one punctuation
    mark, with all of its pieces. Cutting at a number of words and not of pieces
    matters for privacy: how many pieces a word has must not decide which other words
    are read, since `RandomMask` hides a word and its number of pieces with it.

    Text that spells a special token, "[MASK]" say, is ordinary text here: a tokenizer
    that would take it for one is refused by the models.

    Args:
        tokenizer: `keras_nlp.models.BertTokenizer`.
        max_words: int >= 1.

    Raises:
        InputError: max_words is no positive integer.
    """

    def __init__(self, tokenizer: Any, *, max_words: int = 30, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        integer(max_words=max_words)
        self.tokenizer = tokenizer
        self.max_words = int(max_words)
        self.supports_jit = False
        self.built = True

    @cached_property
    def continuation_ids(self) -> list[int]:
        """Ids of pieces that continue a word, "##" in BERT's vocabulary."""
        mark = self.tokenizer.suffix_indicator
        vocabulary = self.tokenizer.get_vocabulary()
        return [i for i, piece in enumerate(vocabulary) if piece.startswith(mark)]

    def call(self, texts: tf.Tensor) -> tf.Tensor:
        """Tokenises a batch.

        Args:
            texts: string tensor (B,), UTF-8.

        Returns:
            int32 ids (B, T), padded on the right; T is that of the longest text. No
            [CLS] or [SEP].
        """
        return self._tokenized(tf.reshape(tf.convert_to_tensor(texts), [-1]))

    # Out of a graph the tokenizer gives Python lists, and is slow.
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def _tokenized(self, texts: tf.Tensor) -> tf.Tensor:
        # What is behind these can be in no word that is read, and a text of megabytes
        # would make all rows of its batch as wide.
        pieces = self.tokenizer.tokenize(texts)[:, : self.max_words * _MOST_PIECES]
        pad = self.tokenizer.pad_token_id
        ids = tf.cast(pieces.to_tensor(default_value=pad), tf.int32)
        continues = tf.scatter_nd(
            tf.constant(self.continuation_ids, tf.int64)[:, None],
            tf.ones([len(self.continuation_ids)], tf.bool),
            [self.tokenizer.vocabulary_size()],
        )
        starts = (ids != pad) & ~tf.gather(continues, ids)
        within = tf.cumsum(tf.cast(starts, tf.int32), axis=1) <= self.max_words
        ids = tf.where(within, ids, pad)
        longest = tf.reduce_max(tf.reduce_sum(tf.cast(ids != pad, tf.int32), 1))
        return ids[:, : tf.maximum(longest, 1)]

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """Returns (B, T), T unknown."""
        return (input_shape[0], None)

    def compute_output_spec(self, texts: Any) -> keras.KerasTensor:
        """Returns the symbolic output."""
        return keras.KerasTensor((texts.shape[0], None), "int32")

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, JSON-serialisable."""
        return {
            **super().get_config(),
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            "max_words": self.max_words,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> WordPieces:
        """Builds the layer that `get_config` described."""
        tokenizer = keras.saving.deserialize_keras_object(config.pop("tokenizer"))
        return cls(tokenizer, **config)
