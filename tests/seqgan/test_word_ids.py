"""Small ids for the words of a corpus, and nothing for any other."""

import hypothesis
import hypothesis.strategies as st
import numpy as np

from tfpriv.seqgan.word_ids import WordIds
from tfpriv.text.vocabulary import END, PAD, UNK

_texts = st.lists(st.lists(st.integers(UNK + 1, 40), max_size=6), max_size=5)


@hypothesis.given(_texts)
def test_texts_that_fit_come_back(texts):
    words = WordIds(token for text in texts for token in text)
    assert words.texts(words.rows(texts, 7)) == texts


@hypothesis.given(_texts, _texts)
def test_words_that_the_corpus_does_not_have_are_left_out(corpus, texts):
    known = {token for text in corpus for token in text}
    words = WordIds(known)
    expected = [[token for token in text if token in known] for text in texts]
    assert words.texts(words.rows(texts, 7)) == expected
    assert len(words) == len(known) + UNK + 1


def test_a_row_is_tokens_then_end_where_it_fits_then_padding():
    words = WordIds([90, 70, 80])
    rows = words.rows([[70, 80], [90, 90, 90, 70], []], 4)
    assert rows.dtype == np.int32
    assert rows.tolist() == [[4, 5, END, PAD], [6, 6, 6, 4], [END, PAD, PAD, PAD]]


def test_special_ids_are_no_words():
    words = WordIds([0, 1, 2, 3, 9])
    assert words.tokens.tolist() == [9]
    assert words.texts(np.array([[1, 4, 3, 4, END, 4]])) == [[9, 9]]
    assert words.rows([[1, 9, 2]], 3).tolist() == [[4, END, PAD]]
