"""Token ids to text that reads like text, as a graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfpriv.layers import _randomness
from tfpriv.text.tokenizer import KINDS, MARKS, SENTENCE_END, SMILEYS, Tokenizer

# Links, numbers and the like that stand for a kind: drawn from so many of each.
_VARIANTS = 64
_QUOTE = '"'


class TextWriter:
    """What `Tokenizer.detokenize` writes, from tables that it made.

    Which tokens are attached to which is decided pair by pair, as the tokenizer
    decides for two; a word counts like any other word.

    Args:
        tokens: of the vocabulary; an id is a place in it.
    """

    def __init__(self, tokens: Sequence[str]) -> None:
        special = [t for t in (*MARKS, *SMILEYS, *KINDS) if t in set(tokens)]
        kind = {token: i + 1 for i, token in enumerate(special)}
        self._class = np.array([kind.get(token, 0) for token in tokens], np.int32)
        writer = Tokenizer()
        self._first = np.array(
            ["" if t in KINDS else writer.detokenize([t]) for t in tokens]
        )
        self._later = np.array(
            [t if t != "i" and t[:2] != "i'" else f for t, f in
             zip(tokens, self._first, strict=True)]
        )  # fmt: skip
        shown = [[""] * _VARIANTS]
        shown += [
            [writer.detokenize([token], seed=seed) for seed in range(_VARIANTS)]
            for token in special
        ]
        self._shown = np.array(shown)
        names = ["the", *special]
        self._attached = np.array(
            [[_are_attached(writer, a, b) for b in names] for a in names]
        )
        self._ends = np.array([token in SENTENCE_END for token in tokens])
        last = [writer.detokenize([token])[-1:].isalnum() for token in tokens]
        self._alphanumeric = np.array(last)
        self._quote = kind.get(_QUOTE, -1)

    def write(self, ids: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """Returns one text a row.

        Args:
            ids: int32 (B, T).
            length: int32 (B,), tokens of each row.

        Returns:
            string (B,).
        """
        rows, width = tf.shape(ids)[0], ids.shape[1]
        chosen = _randomness.fresh_words(tf.shape(ids)) % _VARIANTS
        chosen = tf.cast(chosen, tf.int32)

        def step(t, text, begins, previous, quoted):  # noqa: ANN001
            token = ids[:, t]
            kind = tf.gather(self._class, token)
            piece = tf.where(
                kind > 0,
                tf.gather_nd(self._shown, tf.stack([kind, chosen[:, t]], axis=1)),
                tf.where(
                    begins,
                    tf.gather(self._first, token),
                    tf.gather(self._later, token),
                ),
            )
            is_quote = kind == self._quote
            # A closing quote is followed by what may follow a word.
            closed = (previous == self._quote) & ~quoted
            before = tf.where(closed, 0, tf.maximum(previous, 0))
            joined = tf.gather_nd(self._attached, tf.stack([before, kind], axis=1))
            # It hangs on what it closes, an opening one on what follows.
            joined = tf.where(is_quote, quoted, joined)
            joined |= (previous == self._quote) & quoted
            joined |= previous < 0
            longer = tf.strings.join([text, tf.where(joined, "", " "), piece])
            there = t < length
            ends = tf.gather(self._ends, token)
            plain = tf.gather(self._alphanumeric, token)
            return (
                t + 1,
                tf.where(there, longer, text),
                ends | (begins & ~plain),
                kind,
                quoted ^ is_quote,
            )

        start = (
            0,
            tf.fill([rows], ""),
            tf.ones([rows], tf.bool),
            tf.fill([rows], -1),
            tf.zeros([rows], tf.bool),
        )
        return tf.while_loop(
            lambda t, *_: t < width, step, start, parallel_iterations=1
        )[1]


def _are_attached(writer: Tokenizer, first: str, second: str) -> bool:
    whole = writer.detokenize([first, second])
    # A piece may hold blanks of its own ("<br />"): one more is what parts two.
    alone = [writer.detokenize([token]) for token in (first, second)]
    return whole.count(" ") == sum(piece.count(" ") for piece in alone)
