"""How likely a text is to one who has read others: counts of n-grams, smoothed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

Tokens = Sequence[str]

ORDER = 4
_START, _END = "<start>", "<end>"


class NGramModel:
    """Interpolated n-grams, each order weighted by what it has seen (Witten and Bell).

    p(w | h) = (c(h w) + d(h) p(w | h')) / (c(h) + d(h)), where c counts, d(h) is the
    number of different tokens that followed h, and h' is h without its first token
    (Witten and Bell 1991, method C, as Chen and Goodman 1996 interpolate it). Below
    the unigram all tokens are alike, 1 / `size`.

    Args:
        texts: token lists.
        size: int. How many tokens there are; give two models that are compared the
            same.
        order: int. The longest n-gram.
    """

    def __init__(
        self, texts: Iterable[Tokens], *, size: int, order: int = ORDER
    ) -> None:
        self._size = size
        self._order = order
        self._grams: Counter[tuple[str, ...]] = Counter()
        for tokens in texts:
            padded = _padded(tokens, order)
            for n in range(1, order + 1):
                first = order - n
                self._grams.update(zip(*(padded[first + i :] for i in range(n))))  # noqa: B905
        self._after: Counter[tuple[str, ...]] = Counter()
        self._different: Counter[tuple[str, ...]] = Counter()
        for gram, count in self._grams.items():
            self._after[gram[:-1]] += count
            self._different[gram[:-1]] += 1

    def mean_log_probabilities(self, texts: Sequence[Tokens]) -> np.ndarray:
        """Returns the mean log probability of each text's tokens and its end.

        Args:
            texts: q token lists.

        Returns:
            float64 of shape (q,).
        """
        return np.array([self._mean_log(tokens) for tokens in texts])

    def _mean_log(self, tokens: Tokens) -> float:
        padded = _padded(tokens, self._order)
        total = 0.0
        for place in range(self._order - 1, len(padded)):
            total += math.log(self._probability(padded, place))
        return total / (len(tokens) + 1)

    def _probability(self, padded: tuple[str, ...], place: int) -> float:
        found = 1 / self._size
        for first in range(place, place - self._order, -1):
            context = padded[first:place]
            after = self._after[context]
            if not after:
                # What was never seen has no longer contexts either.
                break
            different = self._different[context]
            count = self._grams[padded[first : place + 1]]
            found = (count + different * found) / (after + different)
        return found


def _padded(tokens: Tokens, order: int) -> tuple[str, ...]:
    return (*[_START] * (order - 1), *tokens, _END)
