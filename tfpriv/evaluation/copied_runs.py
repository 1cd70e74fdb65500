"""How much of a text stands word for word in other texts: exact, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from tfpriv._validation import integer
from tfpriv.text import Tokenizer

# Stands between texts and for tokens that no text of ours has: matches nothing.
_NOTHING = -1


class CopiedRuns:
    """For every position of some texts, the longest run of tokens that others have.

    The others are read once, in pieces, and not kept: memory is that of the texts
    plus one piece, however many others there are. Within a piece runs grow by one
    token at a time among the positions where they still match, and equal runs are
    told by comparing numbers that stand for exactly one run each: no hashing, so that
    every length is exact. A run never reaches over the end of a text.

    Tokens are those of the library's tokenizer: case and spacing do not count, and a
    link is any link.

    Args:
        texts: what may have been copied, synthetic texts for instance.
        piece: tokens of the others that are compared at a time.

    >>> runs = CopiedRuns(["I love this song", "brand new words"])
    >>> runs.add(["they say i love this one", "words"]).longest.tolist()
    [3, 1]
    >>> runs.share(2)  # 2 of the 5 pairs of neighbouring tokens
    0.4
    """

    def __init__(self, texts: Sequence[str], *, piece: int = 500_000) -> None:
        integer(piece=piece)
        self._piece = piece
        self._tokenize = Tokenizer().tokenize
        self._number: dict[str, int] = {}
        stream: list[int] = []
        starts = []
        for text in texts:
            starts.append(len(stream))
            stream += (
                self._number.setdefault(token, len(self._number))
                for token in self._tokenize(text)
            )
            stream.append(_NOTHING)
        self._stream = np.asarray(stream, np.int64)
        self._starts = np.asarray(starts, np.int64)
        self._runs = np.zeros(len(stream), np.int32)

    def add(self, others: Iterable[str]) -> Self:
        """Looks for runs in more texts, and returns itself."""
        waiting: list[int] = []
        for text in others:
            waiting += (self._number.get(t, _NOTHING) for t in self._tokenize(text))
            waiting.append(_NOTHING)
            if len(waiting) >= self._piece:
                self._take_in(np.asarray(waiting, np.int64))
                waiting = []
        self._take_in(np.asarray(waiting, np.int64))
        return self

    @property
    def longest(self) -> np.ndarray:
        """The longest run in each text, int32 of shape (number of texts,)."""
        if not len(self._starts):
            return np.zeros(0, np.int32)
        return np.maximum.reduceat(self._runs, self._starts)

    @property
    def lengths(self) -> np.ndarray:
        """The tokens of each text, int64 of shape (number of texts,)."""
        ends = np.append(self._starts[1:], len(self._stream))
        return ends[: len(self._starts)] - self._starts - 1

    def share(self, n: int) -> float:
        """Returns the share of the texts' n-grams that the others have; 0 of none."""
        integer(n=n)
        if not len(self._starts):
            return 0.0
        lengths = self.lengths
        ends = np.repeat(self._starts + lengths, lengths + 1)
        left = ends - np.arange(len(self._stream))
        whole = left >= n
        return float((self._runs[whole] >= n).mean()) if whole.any() else 0.0

    def _take_in(self, piece: np.ndarray) -> None:
        np.maximum(self._runs, _matches(self._stream, piece), out=self._runs)


def _matches(stream: np.ndarray, piece: np.ndarray) -> np.ndarray:
    """Returns for each place of `stream` the longest run that is also in `piece`."""
    runs = np.zeros(len(stream), np.int32)
    size = int(stream.max(initial=0)) + 1
    ours, theirs = (np.flatnonzero(s != _NOTHING) for s in (stream, piece))
    our_keys, their_keys = stream[ours], piece[theirs]
    length = 0
    while len(ours) and len(theirs):
        # A key stands for one run of length + 1; common ones are numbered anew.
        common = np.intersect1d(our_keys, their_keys)
        ours, our_keys = _among(common, ours, our_keys)
        theirs, their_keys = _among(common, theirs, their_keys)
        length += 1
        runs[ours] = length
        ours, our_keys = _longer(stream, ours, our_keys, length, size)
        theirs, their_keys = _longer(piece, theirs, their_keys, length, size)
    return runs


def _among(
    common: np.ndarray, places: np.ndarray, keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Keeps the places whose key is common, and the key's rank there."""
    if not len(common):
        return places[:0], keys[:0]
    ranks = np.searchsorted(common, keys).clip(max=len(common) - 1)
    kept = common[ranks] == keys
    return places[kept], ranks[kept]


def _longer(
    stream: np.ndarray, places: np.ndarray, ranks: np.ndarray, length: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Adds to each run the token behind it, where there is one."""
    # Every text ends in _NOTHING, so that a run has something behind it.
    behind = stream[places + length]
    kept = behind != _NOTHING
    return places[kept], ranks[kept] * size + behind[kept]
