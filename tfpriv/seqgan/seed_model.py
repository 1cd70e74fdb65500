"""Texts from noisy counts: the corpus that the private generator starts from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tfpriv.mechanisms.empirical_bayes import shrink_pairs, shrink_tokens
from tfpriv.mechanisms.record_counts import LENGTH_EDGES, length_bucket
from tfpriv.text.label_model import LabelModel
from tfpriv.text.prior import LanguagePrior
from tfpriv.text.tilted_model import TiltedModel
from tfpriv.text.vocabulary import END, START, UNK

NUM_PAIR_TOKENS = 300
"""Most frequent tokens (by noisy counts) whose neighbours are counted."""

_FREQUENT = 1e-3
_FLATTEN = 0.25
# Of sqrt(tokens): the distinct, known tokens a text contributes on average.
_DISTINCT = 0.6
_MAX_TRIES = 20
_LONGEST = 60


def token_weights(prior: LanguagePrior) -> np.ndarray:
    """Returns the public weight of each token in a record's contribution, (V,).

    Frequent words say little of a text and would fill its contribution; their weight
    falls with the fourth root of their public frequency.
    """
    unigram = np.maximum(prior.unigram, 1e-9)
    weights = np.minimum(1.0, (_FREQUENT / unigram) ** _FLATTEN)
    weights[: UNK + 1] = 0.0
    return weights


@dataclasses.dataclass(frozen=True)
class NoisyCounts:
    """What the counting mechanisms released; everything else follows from it.

    Attributes:
        tokens: (K, V) noisy `token_presence`.
        lengths: (K, B) noisy `length_histogram`.
        pair_ids: (S,) the tokens whose neighbours were counted, or empty.
        pairs: (K, S, S) noisy `pair_presence`, or empty.
        token_noise, pair_noise: standard deviations of the noise.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    token_noise: float
    pair_ids: np.ndarray = dataclasses.field(
        default_factory=lambda: np.zeros(0, np.int64)
    )
    pairs: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 0, 0)))
    pair_noise: float = 1.0


class SeedModel:
    """One tilted language model a class, and the label model that filters them.

    Post-processing of `NoisyCounts`: it may be drawn from without limit.

    Args:
        prior: LanguagePrior, public.
        counts: NoisyCounts over the prior's vocabulary.
    """

    def __init__(self, prior: LanguagePrior, counts: NoisyCounts) -> None:
        self.prior = prior
        self.counts = counts
        self.lengths = np.maximum(counts.lengths, 0.0)
        # Of the buckets as released: clamped ones would count the noise of empty ones.
        self.class_sizes = np.maximum(counts.lengths.sum(1), 0.0)
        weights = token_weights(prior)
        expected = prior.unigram * weights
        expected = self._units[:, None] * (expected / expected.sum())[None] + 1e-4
        words = slice(UNK + 1, None)
        tokens = np.zeros_like(counts.tokens)
        tokens[:, words] = shrink_tokens(
            counts.tokens[:, words], counts.token_noise, expected[:, words]
        )
        self.tokens = tokens / np.maximum(weights, 1e-9)
        self.labels = LabelModel(self.tokens, self.lengths)

    @property
    def _mean_lengths(self) -> np.ndarray:
        upper = [*LENGTH_EDGES[1:], _LONGEST + 1]
        middle = (np.array(LENGTH_EDGES) + np.array(upper) - 1) / 2
        return (self.lengths @ middle + 1) / (self.lengths.sum(1) + 1)

    @property
    def _units(self) -> np.ndarray:
        return np.maximum(self.class_sizes, 1) * np.sqrt(self._mean_lengths) * _DISTINCT

    def pair_tokens(self) -> np.ndarray:
        """Returns the tokens whose neighbours are worth counting: START, END, words."""
        words = np.arange(UNK + 1, self.tokens.shape[1])
        order = np.argsort(-self.tokens[:, words].sum(0), kind="stable")
        return np.concatenate([[START, END], words[order][:NUM_PAIR_TOKENS]])

    def sample(
        self, label: int, count: int, rng: np.random.Generator
    ) -> list[list[int]]:
        """Returns `count` texts of one class, as token ids, that look like the class.

        Texts are drawn until enough of them get this label from the label model; a
        class that the model never recognises is taken as drawn.
        """
        kept: list[list[int]] = []
        for _ in range(_MAX_TRIES):
            missing = count - len(kept)
            if missing <= 0:
                break
            texts = self.draw(label, max(2 * missing, 20), rng)
            accepted = self.accepts(texts, label)
            kept += [t for t, good in zip(texts, accepted, strict=True) if good]
        if len(kept) < count:
            kept += self.draw(label, count - len(kept), rng)
        return kept[:count]

    def draw(self, label: int, count: int, rng: np.random.Generator) -> list[list[int]]:
        """Returns `count` texts of one class as its language model makes them."""
        lengths = self.draw_lengths(label, count, rng)
        return self._models[label].sample(lengths, rng)

    def draw_lengths(
        self, label: int, count: int, rng: np.random.Generator
    ) -> np.ndarray:
        """Returns `count` lengths of the class's histogram, int64."""
        share = self.lengths[label] + 1e-6
        upper = np.array([*LENGTH_EDGES[1:], _LONGEST + 1])
        buckets = rng.choice(len(LENGTH_EDGES), count, p=share / share.sum())
        return rng.integers(np.array(LENGTH_EDGES)[buckets], upper[buckets])

    def accepts(self, texts: Sequence[Sequence[int]], label: int) -> np.ndarray:
        """Returns whether the label model gives each text this label, bool (n,)."""
        buckets = [length_bucket(len(text)) for text in texts]
        return self.labels.predict(texts, buckets) == label

    def divergence(self, texts: Sequence[Sequence[int]], label: int) -> float:
        """Returns how far the tokens of `texts` are from the class's released ones.

        Jensen-Shannon divergence in nats (Lin 1991) between the token presence of the
        texts and the shrunken noisy presence of the class. It reads released counts
        and generated text only, so it may choose what is released.
        """
        weights = token_weights(self.prior)
        presence = np.zeros(len(weights))
        for text in texts:
            ids = np.unique(np.asarray(text, np.int64))
            norm = np.linalg.norm(weights[ids])
            if norm > 0:
                presence[ids] += 1 / norm
        p = self.tokens[label] / self.tokens[label].sum()
        q = presence / max(presence.sum(), 1e-9)
        middle = (p + q) / 2
        return float(
            sum(
                0.5 * np.sum(x[x > 0] * np.log(x[x > 0] / middle[x > 0]))
                for x in (p, q)
            )
        )

    def language_model(self, label: int) -> TiltedModel:
        """Returns the language model of a class."""
        return self._models[label]

    @cached_property
    def _models(self) -> list[TiltedModel]:
        return [
            TiltedModel(self.prior, frequencies, self._pairs(label))
            for label, frequencies in enumerate(self.tokens)
        ]

    def _pairs(self, label: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Conditional probabilities of the pairs that stand out of the noise."""
        ids, noise = self.counts.pair_ids, self.counts.pair_noise
        if not len(ids):
            return {}
        frequencies = self.tokens[label] / self.tokens[label].sum()
        own = frequencies[ids]
        own[ids <= UNK] = 1 / self._mean_lengths[label]
        expected = self._units[label] * self._public_pairs(frequencies, own) + 1e-4
        shrunk = shrink_pairs(self.counts.pairs[label], noise, expected)
        real = ((shrunk > 2 * expected) | (shrunk > 3 * noise)) & (shrunk > 0.5)
        # Nothing comes before a start or after an end: what shows there is noise.
        real[:, ids == START] = False
        real[ids == END] = False
        pairs = {}
        for i, first in enumerate(ids):
            kept = real[i]
            if not kept.any():
                continue
            total = max(own[i] * self._units[label], shrunk[i][kept].sum() / 0.95)
            pairs[int(first)] = (ids[kept], shrunk[i][kept] / total)
        return pairs

    def _public_pairs(self, frequencies: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Pair probabilities (S, S) that the tilted public bigram makes one expect."""
        ids = self.counts.pair_ids
        place = np.full(len(frequencies), -1)
        place[ids] = np.arange(len(ids))
        tilt = np.minimum(frequencies / np.maximum(self.prior.unigram, 1e-12), 50)
        tilt[END] = 1.0
        table = np.empty((len(ids), len(ids)))
        for i, first in enumerate(ids):
            row = 0.3 * own
            tokens, probabilities = self.prior.following(int(first))
            known = place[tokens] >= 0
            np.add.at(
                row,
                place[tokens[known]],
                0.7 * (probabilities * tilt[tokens])[known],
            )
            table[i] = own[i] * row / max(1.0, row.sum())
        return table
