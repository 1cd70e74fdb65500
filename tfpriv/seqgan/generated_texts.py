"""What a trained generator writes, as tokens of the large vocabulary."""

from __future__ import annotations

from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.word_ids import WordIds


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
        return self.words.texts(self.generator.sample(count, seed=seed))
