"""Which of many texts is most like a text, and how much of it is copied: both exact."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from tfpriv._validation import integer

Tokens = Sequence[str]

# Texts that are looked for, and among which they are looked for, at a time.
_QUERIES, _CORPUS = 512, 4096
# Tokens of the corpus that are compared at a time.
_PIECE = 1_000_000


class Nearest(NamedTuple):
    """For each text its nearest: how alike they are, and which it is (-1: none)."""

    similarity: np.ndarray
    index: np.ndarray


def nearest_texts(
    queries: Sequence[Tokens],
    corpus: Iterable[Tokens],
    *,
    block: tuple[int, int] = (_QUERIES, _CORPUS),
) -> Nearest:
    """Finds for each text the one of a corpus with the largest Jaccard similarity.

    A text is the set of its tokens and of its pairs of neighbouring tokens; two are as
    alike as the share of the members of either set that are in both. Every pair is
    counted (sparse matrix products, a block of texts times a block of the corpus), so
    that the result is exact; memory is that of the queries and one block of pairs,
    however long the corpus is.

    Args:
        queries: q token lists.
        corpus: token lists; read once, in order.
        block: how many texts and how many of the corpus are held at a time.

    Returns:
        float64 and int64 of shape (q,): similarity 0 and index -1 where nothing is in
        common; of several that are as near, the first.

    >>> nearest_texts([["a", "b"], ["z"]], [["b"], ["a", "b", "c"]])
    Nearest(similarity=array([0.6, 0. ]), index=array([ 1, -1]))
    """
    integer(queries_at_once=block[0], corpus_at_once=block[1])
    numbers: dict[Hashable, int] = {}
    sets = [_features(tokens) for tokens in queries]
    for features in sets:
        for feature in features:
            numbers.setdefault(feature, len(numbers))
    ours, our_sizes = _matrix(sets, numbers)
    best = Nearest(np.zeros(len(sets)), np.full(len(sets), -1))
    start = 0
    others = iter(corpus)
    while piece := [_features(tokens) for tokens in islice(others, block[1])]:
        theirs, their_sizes = _matrix(piece, numbers)
        turned = theirs.T.tocsr()
        for first in range(0, len(sets), block[0]):
            rows = slice(first, min(first + block[0], len(sets)))
            _keep_nearer(
                ours[rows] @ turned,
                our_sizes[rows],
                their_sizes,
                Nearest(best.similarity[rows], best.index[rows]),
                start,
            )
        start += len(piece)
    return best


def _features(tokens: Tokens) -> set[Hashable]:
    return {*tokens, *pairwise(tokens)}


def _matrix(
    sets: Sequence[set[Hashable]], numbers: dict[Hashable, int]
) -> tuple[object, np.ndarray]:
    """A row of ones a set, a column a numbered feature; and the whole sets' sizes."""
    from scipy.sparse import csr_array

    columns, ends = array("q"), array("q", [0])
    for features in sets:
        columns.extend(numbers[f] for f in features if f in numbers)
        ends.append(len(columns))
    columns = np.frombuffer(columns, np.int64)
    shape = (len(sets), max(len(numbers), 1))
    ones = np.ones(len(columns), np.int32)
    matrix = csr_array((ones, columns, np.frombuffer(ends, np.int64)), shape=shape)
    return matrix, np.array([len(features) for features in sets])


def _keep_nearer(
    shared: object,
    our_sizes: np.ndarray,
    their_sizes: np.ndarray,
    best: Nearest,
    start: int,
) -> None:
    """Writes into `best` what one block of pairs has that is nearer than before."""
    counts = np.diff(shared.indptr)
    filled = np.flatnonzero(counts)
    if not len(filled):
        return
    rows = np.repeat(np.arange(len(counts)), counts)
    together = our_sizes[rows] + their_sizes[shared.indices] - shared.data
    similarity = shared.data / together
    highest = np.zeros(len(counts))
    highest[filled] = np.maximum.reduceat(similarity, shared.indptr[filled])
    at_highest = similarity == highest[rows]
    # Columns of a product are in no order: the first is the smallest.
    first = np.full(len(counts), len(their_sizes))
    np.minimum.at(first, rows[at_highest], shared.indices[at_highest])
    nearer = highest > best.similarity
    best.similarity[nearer] = highest[nearer]
    best.index[nearer] = start + first[nearer]


def longest_runs(
    queries: Sequence[Tokens], corpus: Iterable[Tokens], *, piece: int = _PIECE
) -> np.ndarray:
    """Returns how many tokens in a row of each text stand in some text of a corpus.

    Args:
        queries: q token lists.
        corpus: token lists; read once, in order.
        piece: tokens of the corpus that are held at a time.

    Returns:
        int64 of shape (q,).

    >>> longest_runs([["i", "love", "it"]], [["we", "love", "it"], ["i"]])
    array([2])
    """
    runs = runs_at_tokens(queries, corpus, piece=piece)
    return np.array([own.max(initial=0) for own in runs], np.int64)


def runs_at_tokens(
    queries: Sequence[Tokens], corpus: Iterable[Tokens], *, piece: int = _PIECE
) -> list[np.ndarray]:
    """Returns for each token how many from it on stand in a row in a corpus' text.

    A suffix array of the texts and a piece of the corpus (prefix doubling, Manber and
    Myers 1993): the longest run that begins at a place is the one that it shares with
    the nearest suffix of the corpus before or behind it. Exact, whatever the length;
    memory is that of the texts and one piece.

    Args:
        queries: q token lists.
        corpus: token lists; read once, in order.
        piece: tokens of the corpus that are held at a time.

    Returns:
        For each text int64 of shape (its tokens,).

    >>> runs_at_tokens([["i", "love", "it"]], [["we", "love", "it"], ["i"]])
    [array([1, 2, 1])]
    """
    integer(piece=piece)
    numbers: dict[str, int] = {}
    ours = [
        [numbers.setdefault(token, len(numbers)) for token in tokens]
        for tokens in queries
    ]
    sizes = np.array([len(text) + 1 for text in ours], np.int64)
    longest = np.zeros(sizes.sum(), np.int64)
    for theirs in _pieces(corpus, numbers, piece):
        np.maximum(longest, _runs(ours, theirs, len(numbers)), out=longest)
    # Without the end of each text.
    return [own[:-1] for own in np.split(longest, np.cumsum(sizes))[: len(ours)]]


def _pieces(
    corpus: Iterable[Tokens], numbers: dict[str, int], size: int
) -> Iterator[list[list[int]]]:
    """Texts as numbers, -1 for what no query has, about `size` tokens at a time."""
    waiting: list[list[int]] = []
    count = 0
    for tokens in corpus:
        waiting.append([numbers.get(token, -1) for token in tokens])
        count += len(tokens) + 1
        if count >= size:
            yield waiting
            waiting, count = [], 0
    if waiting:
        yield waiting


def _runs(ours: list[list[int]], theirs: list[list[int]], distinct: int) -> np.ndarray:
    """The longest run from each token, and each end, of `ours` in `theirs`."""
    own = sum(len(text) + 1 for text in ours)
    stream = np.array([t for text in (*ours, *theirs) for t in (*text, -1)], np.int64)
    # What ends a text, and what no query has, is like nothing else.
    nothing = stream == -1
    stream[nothing] = distinct + np.arange(int(nothing.sum()))
    levels = _prefix_ranks(stream, max(map(len, ours), default=0))
    order = np.argsort(levels[-1], kind="stable")
    places = np.arange(len(stream))
    is_theirs = order >= own
    runs = np.zeros(own, np.int64)
    for turned in (False, True):
        # The last suffix of theirs that is not behind a place, then the first.
        walk = order[::-1] if turned else order
        marks = is_theirs[::-1] if turned else is_theirs
        last = np.maximum.accumulate(np.where(marks, places, -1))
        mine = ~marks & (last >= 0)
        at, near = walk[mine], walk[last[mine]]
        runs[at] = np.maximum(runs[at], _common_prefixes(levels, at, near))
    return runs


def _prefix_ranks(stream: np.ndarray, longest: int) -> list[np.ndarray]:
    """Ranks of the 1, 2, 4, ... tokens from each place on, up to `longest` or more."""
    levels = [np.unique(stream, return_inverse=True)[1].astype(np.int64)]
    width = 1
    while width < longest:
        ranks = levels[-1]
        # Behind the stream there is nothing, which comes before all else.
        behind = np.zeros_like(ranks)
        behind[:-width] = ranks[width:] + 1
        keys = ranks * (len(stream) + 1) + behind
        levels.append(np.unique(keys, return_inverse=True)[1].astype(np.int64))
        width *= 2
    return levels


def _common_prefixes(
    levels: list[np.ndarray], first: np.ndarray, second: np.ndarray
) -> np.ndarray:
    """How many tokens are the same from each two places on."""
    length = np.zeros(len(first), np.int64)
    last = len(levels[0]) - 1
    for level in reversed(range(len(levels))):
        ranks = levels[level]
        one, two = first + length, second + length
        same = (one <= last) & (two <= last)
        same &= ranks[one.clip(max=last)] == ranks[two.clip(max=last)]
        length += same * 2**level
    return length
