"""Counts of what follows what, in compressed rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from tfpriv._validation import integer
from tfpriv.text.vocabulary import END, PAD, START, UNK, Vocabulary


def id_stream(texts: Iterable[str], vocabulary: Vocabulary) -> np.ndarray:
    """Returns texts as one int64 vector: START, the tokens, END, START, ...

    Tokens outside the vocabulary are UNK; texts without tokens are left out.
    """
    stream: list[int] = []
    for text in texts:
        ids = vocabulary.ids(vocabulary.tokenizer.tokenize(text))
        if ids:
            stream += [START, *ids, END]
    return np.asarray(stream, np.int64)


@dataclasses.dataclass(frozen=True)
class NGramTable:
    """The continuations of every context of `order - 1` tokens, with counts.

    Args:
        order: int. 2 for bigrams, 3 for trigrams.
        size: int. The number of ids; a context is a number in that base.
        contexts: int64 of shape (C,), ascending: the contexts that were seen.
        starts: int64 of shape (C + 1,): where each context's continuations begin.
        tokens: int32 of shape (N,): the continuations, ascending in each context.
        counts: int64 of shape (N,): how often each was seen.
    """

    order: int
    size: int
    contexts: np.ndarray
    starts: np.ndarray
    tokens: np.ndarray
    counts: np.ndarray

    @classmethod
    def count(
        cls, stream: np.ndarray, *, order: int, size: int, min_count: int = 1
    ) -> NGramTable:
        """Counts the n-grams of an `id_stream`.

        An n-gram begins with START or a token and ends with a token or END. One
        that holds a token outside the vocabulary, or reaches into the next text,
        does not count.

        Args:
            stream: int64 of shape (n,), from `id_stream`.
            order: the n of n-gram, at most 3.
            size: the length of the vocabulary.
            min_count: n-grams seen less often are left out.
        """
        integer(2, order=order, size=size)
        integer(min_count=min_count)
        length = max(0, len(stream) - order + 1)
        keys = np.zeros(length, np.int64)
        valid = np.ones(length, bool)
        for position in range(order):
            ids = stream[position : position + length]
            keys = keys * size + ids
            valid &= (ids != UNK) & (ids != PAD)
            if position > 0:
                valid &= ids != START
            if position < order - 1:
                valid &= ids != END
        keys, counts = np.unique(keys[valid], return_counts=True)
        keys, counts = keys[counts >= min_count], counts[counts >= min_count]
        contexts, first = np.unique(keys // size, return_index=True)
        return cls(
            order=order,
            size=size,
            contexts=contexts,
            starts=np.append(first, len(keys)).astype(np.int64),
            tokens=(keys % size).astype(np.int32),
            counts=counts.astype(np.int64),
        )

    def continuations(self, *context: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids that follow a context and their probabilities.

        Args:
            *context: `order - 1` ids, in the order of the text.

        Returns:
            int32 and float64 arrays of one length, empty for an unseen context; the
            probabilities are relative frequencies and sum to 1.
        """
        key = 0
        for i in context:
            key = key * self.size + int(i)
        row = int(np.searchsorted(self.contexts, key))
        if row == len(self.contexts) or self.contexts[row] != key:
            return np.zeros(0, np.int32), np.zeros(0)
        where = slice(self.starts[row], self.starts[row + 1])
        counts = self.counts[where]
        return self.tokens[where], counts / counts.sum()

    def probabilities(
        self, contexts: np.ndarray, tokens: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the relative frequencies of many n-grams at once.

        Args:
            contexts: ids of shape (n, order - 1).
            tokens: ids of shape (n,).

        Returns:
            float64 of shape (n,), 0 where the n-gram was not seen, and bool of shape
            (n,): whether its context was seen.
        """
        keys = np.zeros(len(tokens), np.int64)
        for column in np.asarray(contexts, np.int64).T:
            keys = keys * self.size + column
        row, seen = _find(self.contexts, keys)
        owners = np.repeat(self.contexts, np.diff(self.starts))
        entry, known = _find(
            owners * self.size + self.tokens, keys * self.size + tokens
        )
        result = np.zeros(len(tokens))
        if known.any():
            totals = np.add.reduceat(self.counts, self.starts[:-1])
            result[known] = self.counts[entry[known]] / totals[row[known]]
        return result, seen


def _find(ascending: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if len(ascending) == 0:
        return np.zeros(len(values), np.int64), np.zeros(len(values), bool)
    where = np.searchsorted(ascending, values).clip(max=len(ascending) - 1)
    return where, ascending[where] == values
