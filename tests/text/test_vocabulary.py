from __future__ import annotations

import json

import numpy as np
import pytest

from tfpriv.text import Tokenizer, Vocabulary
from tfpriv.text.tokenizer import KINDS, MARKS, SMILEYS
from tfpriv.text.vocabulary import END, PAD, SPECIAL, START, UNK

VOCABULARY = Vocabulary(["good", "song", "!", "<url>"])


def test_the_first_four_ids_are_special():
    assert VOCABULARY.tokens[:4] == SPECIAL
    assert [PAD, START, END, UNK] == [0, 1, 2, 3]
    assert len(VOCABULARY) == 8


def test_a_token_has_one_id_even_if_it_is_given_twice():
    vocabulary = Vocabulary(["a", "b", "a", "<unk>"])
    assert vocabulary.tokens == (*SPECIAL, "a", "b")
    assert vocabulary.index["<unk>"] == UNK


def test_a_text_becomes_tokens_then_end_then_padding():
    rows = VOCABULARY.encode(["Good song!", "", "good bad song"], max_length=5)
    assert rows.dtype == np.int32
    assert rows.tolist() == [[4, 5, 6, 2, 0], [2, 0, 0, 0, 0], [4, 3, 5, 2, 0]]


def test_a_long_text_is_cut_and_has_no_end():
    assert VOCABULARY.encode(["good song! good"], max_length=3).tolist() == [[4, 5, 6]]
    assert VOCABULARY.encode(["good song!"], max_length=3).tolist() == [[4, 5, 6]]


def test_unknown_tokens_may_be_left_out():
    rows = VOCABULARY.encode(["good bad song"], max_length=4, keep_unknown=False)
    assert rows.tolist() == [[4, 5, 2, 0]]


def test_decoding_stops_at_the_end_and_shows_nothing_special():
    rows = np.array([[1, 4, 3, 5, 6, 2, 4], [2, 4, 4, 4, 4, 4, 4]])
    assert VOCABULARY.decode(rows) == ["Good song!", ""]


def test_what_is_encoded_decodes_to_the_same_tokens():
    texts = ["Good good song!", "http://a.b song", "!"]
    decoded = VOCABULARY.decode(VOCABULARY.encode(texts, 10), seed=4)
    tokenizer = Tokenizer()
    assert tokenizer.tokenize_all(decoded) == tokenizer.tokenize_all(texts)


def test_each_row_and_each_seed_draws_links_of_its_own():
    rows = np.array([[7, 2]] * 50)
    assert len({*VOCABULARY.decode(rows), *VOCABULARY.decode(rows, seed=1)}) == 100


def test_the_public_vocabulary_has_every_kind_smiley_and_mark():
    vocabulary = Vocabulary.public(300)
    assert {*KINDS, *SMILEYS, *MARKS} <= set(vocabulary.tokens)
    assert "the" in vocabulary.index
    assert vocabulary.source == "public"
    assert len(vocabulary) <= 304


def test_texts_give_their_most_frequent_tokens_in_any_order():
    texts = ["b a", "a c", "b a d"]
    vocabulary = Vocabulary.from_texts(texts, min_count=2)
    assert vocabulary.tokens[4:] == ("a", "b")
    assert Vocabulary.from_texts(texts, size=3).tokens[4:] == ("a", "b", "c")
    assert Vocabulary.from_texts(texts[::-1]).tokens == (*SPECIAL, "a", "b", "c", "d")
    assert vocabulary.source == "private"


def test_json_brings_back_the_vocabulary():
    value = json.loads(json.dumps(VOCABULARY.to_json()))
    again = Vocabulary.from_json(value)
    assert again.tokens == VOCABULARY.tokens
    assert again.source == VOCABULARY.source


@pytest.mark.parametrize("max_length", [0, -1, 1.5])
def test_a_length_that_is_none_is_refused(max_length):
    with pytest.raises(ValueError, match="max_length"):
        VOCABULARY.encode(["good"], max_length)
