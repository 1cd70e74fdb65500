from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tfpriv.text import Vocabulary
from tfpriv.text.ngrams import NGramTable, id_stream
from tfpriv.text.vocabulary import END, START, UNK

VOCABULARY = Vocabulary(["a", "b", "c"])
A, B, C = 4, 5, 6
TEXTS = ["a b c", "a b a b", "", "b zzz a", "a b"]


def table(order, texts=TEXTS, **options):
    stream = id_stream(texts, VOCABULARY)
    return NGramTable.count(stream, order=order, size=len(VOCABULARY), **options)


def counts(of):
    owners = np.repeat(of.contexts, np.diff(of.starts))
    return dict(zip(zip(owners, of.tokens, strict=True), of.counts, strict=True))


def plain_counts(order):
    found = Counter()
    for text in TEXTS:
        ids = [START, *VOCABULARY.ids(text.split()), END]
        for start in range(len(ids) - order + 1):
            ngram = ids[start : start + order]
            if UNK not in ngram and ngram != [START, END]:
                key = 0
                for i in ngram[:-1]:
                    key = key * len(VOCABULARY) + i
                found[key, ngram[-1]] += 1
    return dict(found)


def test_a_stream_is_texts_between_start_and_end():
    stream = id_stream(["a b", "", "zzz"], VOCABULARY)
    assert stream.tolist() == [START, A, B, END, START, UNK, END]


@pytest.mark.parametrize("order", [2, 3])
def test_counts_are_those_of_counting_one_by_one(order):
    assert counts(table(order)) == plain_counts(order)


def test_continuations_are_relative_frequencies():
    ids, probabilities = table(2).continuations(B)
    assert ids.tolist() == [END, A, C]
    assert probabilities.tolist() == [0.5, 0.25, 0.25]
    ids, probabilities = table(3).continuations(START, A)
    assert ids.tolist() == [B]
    assert probabilities.tolist() == [1.0]


def test_no_ngram_crosses_an_unknown_token_or_the_end_of_a_text():
    assert table(2, ["a zzz b", "c"]).continuations(A)[0].size == 0
    assert table(2).continuations(END)[0].size == 0
    assert table(3, ["a", "b"]).continuations(A, END)[0].size == 0


def test_an_unseen_context_has_no_continuation():
    ids, probabilities = table(3).continuations(C, C)
    assert ids.shape == probabilities.shape == (0,)


def test_rare_ngrams_are_left_out():
    kept = table(3, min_count=2)
    assert kept.counts.min() >= 2
    assert set(counts(kept)) < set(counts(table(3)))
    assert kept.continuations(A, B)[0].tolist() == [END]


def test_many_probabilities_at_once_are_those_one_by_one():
    trigrams = table(3)
    contexts = np.array([[u, v] for u in range(7) for v in range(7) for _ in range(7)])
    tokens = np.tile(np.arange(7), 49)
    found, seen = trigrams.probabilities(contexts, tokens)
    for context, token, probability, known in zip(
        contexts, tokens, found, seen, strict=True
    ):
        ids, probabilities = trigrams.continuations(*context)
        assert known == (len(ids) > 0)
        assert probability == probabilities[ids == token].sum()


def test_nothing_to_count_is_an_empty_table():
    empty = table(2, [])
    assert empty.continuations(A)[0].size == 0
    found, seen = empty.probabilities(np.array([[A]]), np.array([B]))
    assert found.tolist() == [0.0]
    assert not seen.any()
