"""As many texts as asked for, from graphs of one shape."""

import numpy as np
import pytest

from tfpriv.seqgan.generated_texts import GeneratedTexts
from tfpriv.seqgan.generator import Generator
from tfpriv.seqgan.word_ids import WordIds
from tfpriv.text.vocabulary import END


class Numbered:
    """Row i says word i, so that one sees which rows were kept."""

    def __init__(self):
        self.shapes = set()

    def sample(self, batch_size, *, seed, chunk):
        self.shapes.add(min(batch_size, chunk))
        assert batch_size % chunk == 0
        return np.stack([[4 + i % 300, END] for i in range(batch_size)])


@pytest.mark.parametrize("count", [1, 255, 256, 257, 700])
def test_the_first_rows_are_kept(count):
    texts = GeneratedTexts(WordIds(range(100, 400)), Numbered()).sample(count, seed=0)
    assert texts == [[100 + i % 300] for i in range(count)]


def test_every_count_is_drawn_in_one_shape():
    generator = Numbered()
    texts = GeneratedTexts(WordIds(range(100, 400)), generator)
    for count in (1, 17, 256, 900):
        texts.sample(count, seed=0)
    assert len(generator.shapes) == 1


def test_texts_are_words_of_the_large_vocabulary_and_follow_the_seed():
    words = WordIds([50, 60, 70])
    generator = Generator(len(words), 4, 3, 4, forbidden_ids=(0, 1, 3), seed=3)
    texts = GeneratedTexts(words, generator)
    first = texts.sample(20, seed=1)
    assert first == texts.sample(20, seed=1) == texts.sample(300, seed=1)[:20]
    assert first != texts.sample(20, seed=2)
    assert {token for text in first for token in text} <= {50, 60, 70}
