"""A public language model tilted towards given token frequencies and pairs."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import numpy as np

from tfpriv.text.prior import LanguagePrior
from tfpriv.text.vocabulary import END, START, UNK

# Mass of unigram, bigram and trigram in the public part. The share of the trigram
# is high because the tilt already brings the topic; what is missing is order.
ORDERS = (0.15, 0.40, 0.45)
# A text may end where a sentence does once it has this share of its length.
LONG_ENOUGH = 0.95
RESTARTS = 8
_PAIRS_KEPT = 2**18


class TiltedModel:
    """Draws texts whose words are of one distribution and whose order is public.

    The next token w after a context h is drawn from

        trust * pairs(w | h)  +  (1 - trust) * tilted(w | h),
        tilted(w | h)  ~  prior(w | h) * p(w) / prior(w),

    with `prior` the interpolated trigram of public text, p the given frequencies, and
    pairs(w | h) the given probabilities of neighbours, which may sum to less than 1:
    the rest falls to the tilted part. Everything given is taken as it is; if it was
    released by a private mechanism, what is drawn here is post-processing.

    Args:
        prior: LanguagePrior over V tokens.
        frequencies: (V,) p, non-negative; the special ids are ignored.
        pairs: token id -> (ids, probabilities) of what may follow it.
        trust: in [0, 1], weight of `pairs` where there are any.
        prior_weight: in [0, 1]; the rest of the tilted part is p itself.
    """

    def __init__(
        self,
        prior: LanguagePrior,
        frequencies: np.ndarray,
        pairs: Mapping[int, tuple[np.ndarray, np.ndarray]],
        *,
        trust: float = 0.6,
        prior_weight: float = 0.9,
    ) -> None:
        frequencies = np.where(np.arange(len(frequencies)) > UNK, frequencies, 0.0)
        self.prior = prior
        self.frequencies = frequencies / frequencies.sum()
        self.pairs = pairs
        self.trust = trust
        self.prior_weight = prior_weight
        self._cumulative = np.cumsum(self.frequencies)
        self.tilt = self.frequencies / np.maximum(prior.unigram, 1e-12)
        # As many as there are words; of pairs of words most are met once.
        self._given = functools.cache(self._given_pairs)
        self._behind_one = functools.cache(self._tilted_bigrams)
        self._behind_two = functools.lru_cache(_PAIRS_KEPT)(self._tilted_trigrams)

    def sample(
        self, lengths: Iterable[int], rng: np.random.Generator
    ) -> list[list[int]]:
        """Returns one text of token ids for each length.

        Args:
            lengths: how many tokens each text is to have, at least 1.
            rng: numpy Generator; seeded or not, it touches nothing private.
        """
        return [self._text(int(length), rng) for length in lengths]

    def _text(self, length: int, rng: np.random.Generator) -> list[int]:
        text: list[int] = []
        before = previous = START
        restarts = 0
        while len(text) < length:
            token = self._next(before, previous, rng)
            if token == END:
                if len(text) >= max(1, LONG_ENOUGH * length):
                    break
                restarts += 1
                before = previous = START
                if restarts <= RESTARTS:
                    continue
                token = self._any(rng)
            text.append(token)
            before, previous = previous, token
        return text

    def _next(self, before: int, previous: int, rng: np.random.Generator) -> int:
        draw = rng.random()
        pair_mass = 0.0
        if previous in self.pairs:
            pair_ids, pair_cdf = self._given(previous)
            pair_mass = self.trust * min(float(pair_cdf[-1]), 1.0)
        if draw < pair_mass:
            return int(pair_ids[_place(pair_cdf, rng)])
        ids, cumulative = self._behind_one(previous)
        more_ids, more_cumulative = self._behind_two(before, previous)
        first, second = _total(cumulative), _total(more_cumulative)
        # The tilted unigram is p itself, whose mass is the unigram's weight.
        prior_mass = self.prior_weight * (first + second) / (first + second + ORDERS[0])
        if draw >= pair_mass + (1 - pair_mass) * prior_mass:
            return self._any(rng)
        target = rng.random() * (first + second)
        if target >= first:
            ids, cumulative, target = more_ids, more_cumulative, target - first
        return int(ids[_first_above(cumulative, target)])

    def _any(self, rng: np.random.Generator) -> int:
        return _place(self._cumulative, rng)

    def _given_pairs(self, previous: int) -> tuple[np.ndarray, np.ndarray]:
        ids, probabilities = self.pairs[previous]
        return ids, np.cumsum(probabilities)

    def _tilted_bigrams(self, previous: int) -> tuple[np.ndarray, np.ndarray]:
        return self._tilted(ORDERS[1], *self.prior.following(previous))

    def _tilted_trigrams(
        self, before: int, previous: int
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._tilted(ORDERS[2], *self.prior.following2(before, previous))

    def _tilted(
        self, weight: float, tokens: np.ndarray, probabilities: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Words and their cumulative masses."""
        words = tokens > UNK
        ids = tokens[words]
        return ids, np.cumsum(weight * probabilities[words] * self.tilt[ids])


def _total(cumulative: np.ndarray) -> float:
    return float(cumulative[-1]) if len(cumulative) else 0.0


def _place(cumulative: np.ndarray, rng: np.random.Generator) -> int:
    return _first_above(cumulative, rng.random() * cumulative[-1])


def _first_above(cumulative: np.ndarray, target: float) -> int:
    place = np.searchsorted(cumulative, target, side="right")
    return min(int(place), len(cumulative) - 1)
