"""Whole words, a fixed number of them, whatever the text."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv.representation import WordPieces


def pieces(layer, *texts):
    ids = layer(tf.constant(texts)).numpy()
    show = layer.tokenizer.id_to_token
    return [[show(int(i)) for i in row if i] for row in ids]


def test_keeps_whole_words(tokenizer):
    layer = WordPieces(tokenizer, max_words=2)
    assert pieces(layer, "the unbelievable door", "plays") == [
        ["the", "un", "##believ", "##able"],
        ["play", "##s"],
    ]


def test_odd_texts(tokenizer):
    layer = WordPieces(tokenizer, max_words=30)
    odd = ["", "  \n\t ", "\ufeff", "😀😀", "the " * 10_000, "x" * 10_000]
    rows = pieces(layer, *odd)
    assert rows[:3] == [[], [], []]
    assert rows[3] == ["[UNK]"]
    assert rows[4] == ["the"] * 30
    assert rows[5] == ["[UNK]"]


def test_spelled_special_tokens_are_text(tokenizer):
    layer = WordPieces(tokenizer, max_words=30)
    ids = layer(tf.constant(["[MASK] [SEP] [CLS] [PAD]"])).numpy()
    special = [tokenizer.mask_token_id, tokenizer.sep_token_id, tokenizer.cls_token_id]
    assert not np.isin(ids, special).any()


def test_in_a_graph_as_out_of_it(tokenizer):
    layer = WordPieces(tokenizer, max_words=3)
    texts = tf.constant(["I love it", "", "unbelievable doors ! !"])
    in_graph = tf.function(layer)(texts)
    np.testing.assert_array_equal(in_graph, layer(texts))


def test_max_words_is_checked(tokenizer):
    with pytest.raises(InputError, match="max_words"):
        WordPieces(tokenizer, max_words=0)


def _words_of_as_many_pieces_as_can_be():
    from keras_nlp.models import BertTokenizer

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    layer = WordPieces(BertTokenizer([*special, "x", "##x"]), max_words=3)
    ids = layer(tf.constant([" ".join(["x" * 100] * 5), "x" * 101])).numpy()
    return np.count_nonzero(ids, axis=1).tolist()


def test_words_of_a_hundred_pieces_are_whole_and_longer_ones_are_unknown(monkeypatch):
    assert _words_of_as_many_pieces_as_can_be() == [300, 1]
    # The twin: too few pieces for the last word.
    monkeypatch.setattr("tfpriv.representation.word_pieces._MOST_PIECES", 99)
    assert _words_of_as_many_pieces_as_can_be() != [300, 1]
