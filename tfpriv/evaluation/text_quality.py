"""Whether text looks like language to a model that had no part in making it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np

from tfpriv._errors import InputError
from tfpriv.text import LanguagePrior, Vocabulary
from tfpriv.text.ngrams import NGramTable, id_stream
from tfpriv.text.vocabulary import END, PAD, START, UNK

UNIGRAM_WEIGHT = 0.1
BIGRAM_WEIGHT = 0.4
TRIGRAM_WEIGHT = 0.6


class PublicPerplexity:
    """An interpolated trigram model of public texts (Jelinek and Mercer 1980).

    p(w | u, v) = .1 p(w) + .9 (.4 p(w | v) + .6 p(w | u, v)), where p(w) is the
    add-one unigram and the other two are relative frequencies. Where u, v was never
    seen the bigram takes the trigram's weight, where v was not the unigram takes
    all, so that the probabilities of a context always sum to 1.

    Only tokens of the vocabulary and the ends of texts are scored, those of every
    text by the same model. A token outside it breaks the context and is not scored
    itself: `coverage` says how many were scored.

    Args:
        texts: public texts, apart from those that made what is to be judged.
        vocabulary: Vocabulary, or None for the tokens that are twice in `texts`.

    Raises:
        InputError: no text has a token.

    >>> model = PublicPerplexity(["the cat sat", "the cat ran", "the dog ran"])
    >>> model.perplexity(["the cat ran"]) < model.perplexity(["ran cat the"])
    True
    """

    def __init__(
        self, texts: Iterable[str], vocabulary: Vocabulary | None = None
    ) -> None:
        texts = list(texts)
        self.vocabulary = vocabulary or Vocabulary.from_texts(texts, min_count=2)
        size = len(self.vocabulary)
        stream = id_stream(texts, self.vocabulary)
        if len(stream) == 0:
            raise InputError(
                "Expected texts with tokens to train on, received none. "
                "Give the model some public text."
            )
        counts = np.bincount(stream, minlength=size) + 1.0
        # PAD, START and UNK are never predicted.
        counts[[PAD, START, UNK]] = 0
        self._unigram = counts / counts.sum()
        self._bigram = NGramTable.count(stream, order=2, size=size)
        self._trigram = NGramTable.count(stream, order=3, size=size)

    @classmethod
    def of_prior(cls, prior: LanguagePrior) -> PublicPerplexity:
        """Builds the model from public counts instead of public texts.

        The texts behind them are the prior's, from which synthetic text may have been
        made: a low perplexity then tells where it comes from, not how good it is.

        Args:
            prior: `LanguagePrior.load()`, which comes with the package, say.
        """
        self = cls.__new__(cls)
        self.vocabulary = prior.vocabulary
        # A token: what follows a token, or an end, relative to all of them.
        ends = prior.bigram.counts[prior.bigram.tokens == END].sum()
        counted = prior.bigram.counts.sum()
        unigram = prior.unigram * (1 - ends / counted)
        unigram[END] = ends / counted
        self._unigram = unigram / unigram.sum()
        self._bigram, self._trigram = prior.bigram, prior.trigram
        return self

    def perplexity(self, texts: Iterable[str]) -> float:
        """Returns exp of the mean negative log probability of the scored tokens.

        Raises:
            InputError: no token can be scored.
        """
        stream = id_stream(texts, self.vocabulary)
        before, previous, tokens = _contexts(stream)
        scored = (tokens != UNK) & (tokens != START)
        if not scored.any():
            raise InputError(
                "Expected texts with tokens of the public vocabulary, received none."
            )
        probabilities = self.probabilities(
            before[scored], previous[scored], tokens[scored]
        )
        return float(np.exp(-np.log(probabilities).mean()))

    def coverage(self, texts: Iterable[str]) -> float:
        """Returns the share of tokens that `perplexity` scores, 0 without tokens."""
        stream = id_stream(texts, self.vocabulary)
        tokens = stream[(stream != START) & (stream != END)]
        return float((tokens != UNK).mean()) if len(tokens) else 0.0

    def probabilities(
        self, before: np.ndarray, previous: np.ndarray, tokens: np.ndarray
    ) -> np.ndarray:
        """Returns p(tokens | before, previous), float64 of shape (n,).

        Args:
            before: ids of shape (n,), UNK where there is no such token.
            previous: ids of shape (n,), UNK where the context is broken.
            tokens: ids of shape (n,).
        """
        unigram = self._unigram[tokens]
        bigram, has_bigram = self._bigram.probabilities(previous[:, None], tokens)
        trigram, has_trigram = self._trigram.probabilities(
            np.stack([before, previous], 1), tokens
        )
        mixed = np.where(
            has_trigram, BIGRAM_WEIGHT * bigram + TRIGRAM_WEIGHT * trigram, bigram
        )
        interpolated = UNIGRAM_WEIGHT * unigram + (1 - UNIGRAM_WEIGHT) * mixed
        return np.where(has_bigram, interpolated, unigram)


def shuffled(texts: Sequence[str], seed: int = 0) -> list[str]:
    """Returns the texts with the words of each in random order: a floor.

    Words are what blanks part, so that every text keeps its words and its length.

    >>> sorted(shuffled(["one two three"])[0].split())
    ['one', 'three', 'two']
    """
    draw = random.Random(seed)
    results = []
    for text in texts:
        words = text.split()
        draw.shuffle(words)
        results.append(" ".join(words))
    return results


def _contexts(stream: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns, for each id of a stream, the two ids before it; UNK where none is."""
    previous = np.concatenate([[UNK], stream[:-1]])
    before = np.concatenate([[UNK], previous[:-1]])
    before = np.where(previous == START, UNK, before)
    return before, previous, stream
