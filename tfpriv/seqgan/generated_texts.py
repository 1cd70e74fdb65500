"""What a trained generator writes, as tokens of the large vocabulary."""

from __future__ import annotations

import math

from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.word_ids import WordIds

_CHUNK = 256


class GeneratedTexts:
    """A generator and the words that its ids stand for.

    Args:
        words: WordIds of the generator's vocabulary.
        generator: Generator.
    """

    def __init__(self, words: WordIds, generator: Generator) -> None:
        self.words = words
        self.generator = generator

    def sample(self, count: int, *, seed: int) -> list[list[int]]:
        """Returns `count` texts as lists of large-vocabulary ids."""
        # Whole chunks: every other number of rows would be compiled anew.
        rows = self.generator.sample(
            math.ceil(count / _CHUNK) * _CHUNK, seed=seed, chunk=_CHUNK
        )
        return self.words.texts(rows[:count])
