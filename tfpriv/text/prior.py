"""What English looks like to somebody who has read no private record."""

from __future__ import annotations

import importlib.resources
import os
from collections.abc import Iterable

import numpy as np

from tfpriv._errors import InputError
from tfpriv._files import PUBLIC, atomic_write
from tfpriv.text.ngrams import NGramTable, id_stream
from tfpriv.text.tokenizer import KINDS, MARKS, SMILEYS
from tfpriv.text.vocabulary import SPECIAL, UNK, Vocabulary

FLOOR = 1e-7
"""The least probability of a token in `LanguagePrior.unigram`, before scaling to 1."""

_FORMAT = 1
_TABLES = {"bigram": 2, "trigram": 3}
_FIELDS = ("contexts", "starts", "tokens", "counts")


class LanguagePrior:
    """Unigrams, bigrams and trigrams of public English text.

    A generator may follow them, and private counts may tilt them: they were counted
    in texts that are public (`prior/README.json` says which), so they cost nothing.

    Args:
        vocabulary: Vocabulary of V tokens.
        unigram: float64 of shape (V,): token probabilities, 0 for the four special
            ids.
        bigram: NGramTable of order 2.
        trigram: NGramTable of order 3.

    >>> prior = LanguagePrior.load()
    >>> ids, probabilities = prior.following2(
    ...     prior.vocabulary.index["one"], prior.vocabulary.index["of"]
    ... )
    >>> prior.vocabulary.tokens[ids[probabilities.argmax()]]
    'the'
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        unigram: np.ndarray,
        bigram: NGramTable,
        trigram: NGramTable,
    ) -> None:
        self.vocabulary = vocabulary
        self.unigram = unigram
        self.bigram = bigram
        self.trigram = trigram

    def following(self, previous: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns what follows one token: ids and probabilities.

        Args:
            previous: an id; START for what begins a text.

        Returns:
            int32 and float64 arrays of one length. END is among the ids where texts
            ended; the probabilities sum to 1. Both are empty for an unseen token.
        """
        return self.bigram.continuations(previous)

    def following2(self, before: int, previous: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns what follows two tokens, the later one last; as `following` does.

        `before` may be START. Rare trigrams may have been left out (`min_count`):
        what is empty here may still have an answer from `following`.
        """
        return self.trigram.continuations(before, previous)

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        vocabulary: Vocabulary,
        *,
        min_trigram_count: int = 1,
        language: str = "en",
    ) -> LanguagePrior:
        """Counts PUBLIC texts.

        The unigram is half the relative frequency in the texts, half that of the
        `wordfreq` package (Speer 2022), floored and scaled to sum to 1.

        Args:
            texts: the texts. Nothing protects them: they must be public.
            vocabulary: tokens outside it break a context.
            min_trigram_count: trigrams seen less often are left out.
            language: the language of `wordfreq`.
        """
        size = len(vocabulary)
        stream = id_stream(texts, vocabulary)
        counts = np.bincount(stream, minlength=size).astype(float)
        counts[: len(SPECIAL)] = 0
        return cls(
            vocabulary,
            _unigram(counts, _word_frequencies(vocabulary, language)),
            NGramTable.count(stream, order=2, size=size),
            NGramTable.count(stream, order=3, size=size, min_count=min_trigram_count),
        )

    def save(self, path: str | os.PathLike) -> None:
        """Writes the prior as compressed NumPy arrays, without pickled objects."""
        tokens = "\n".join(self.vocabulary.tokens[len(SPECIAL) :])
        arrays = {
            "format": np.int64(_FORMAT),
            "vocabulary": np.frombuffer(tokens.encode(), np.uint8),
            "unigram": self.unigram.astype(np.float32),
        }
        for name in _TABLES:
            table = getattr(self, name)
            for field in _FIELDS:
                values = getattr(table, field)
                # Gaps of ascending numbers are small, and small numbers pack well.
                if field in ("contexts", "starts"):
                    values = np.diff(values, prepend=0)
                arrays[f"{name}_{field}"] = values.astype(_smallest(values))
        with atomic_write(path, mode=PUBLIC, binary=True) as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike | None = None) -> LanguagePrior:
        """Reads a prior that `save` wrote.

        Args:
            path: the file, or None for the English prior that comes with the package.

        Raises:
            InputError: the file is no prior.
        """
        if path is None:
            path = importlib.resources.files("tfpriv.text") / "prior" / "english.npz"
        try:
            with np.load(path, allow_pickle=False) as arrays:
                stored = {name: arrays[name] for name in arrays.files}
            return cls._from_arrays(stored)
        except (ValueError, KeyError, EOFError, AttributeError) as error:
            raise InputError(
                f"Expected a prior that LanguagePrior.save wrote, received {path} "
                f"({error}). Make it with tools/make_prior.py."
            ) from None

    @classmethod
    def _from_arrays(cls, stored: dict[str, np.ndarray]) -> LanguagePrior:
        if stored["format"] != _FORMAT:
            raise ValueError(f"format {stored['format']} instead of {_FORMAT}")
        tokens = stored["vocabulary"].tobytes().decode().split("\n")
        vocabulary = Vocabulary(tokens, source="public")
        unigram = stored["unigram"].astype(float)
        tables = {}
        for name, order in _TABLES.items():
            tables[name] = NGramTable(
                order=order,
                size=len(vocabulary),
                contexts=np.cumsum(stored[f"{name}_contexts"], dtype=np.int64),
                starts=np.cumsum(stored[f"{name}_starts"], dtype=np.int64),
                tokens=stored[f"{name}_tokens"].astype(np.int32),
                counts=stored[f"{name}_counts"].astype(np.int64),
            )
        return cls(vocabulary, unigram / unigram.sum(), **tables)


def _smallest(values: np.ndarray) -> type[np.unsignedinteger]:
    largest = int(values.max(initial=0))
    return next(
        kind
        for kind in (np.uint8, np.uint16, np.uint32, np.uint64)
        if largest <= np.iinfo(kind).max
    )


def _word_frequencies(vocabulary: Vocabulary, language: str) -> np.ndarray:
    from wordfreq import word_frequency

    # The list has words alone: asked for "<url>" or ":d" it answers for "url" and "d".
    no_words = {*SPECIAL, *KINDS, *MARKS, *SMILEYS}
    return np.array(
        [
            0.0 if token in no_words else word_frequency(token, language)
            for token in vocabulary.tokens
        ]
    )


def _unigram(counts: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    parts = [part / part.sum() for part in (counts, frequencies) if part.sum() > 0]
    mixed = np.maximum(
        np.mean(parts, axis=0) if parts else np.zeros_like(counts), FLOOR
    )
    mixed[: UNK + 1] = 0
    return mixed / mixed.sum()
