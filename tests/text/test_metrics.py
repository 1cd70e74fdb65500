from __future__ import annotations

import math
import random

import numpy as np
import pytest

from tfpriv.text.metrics import _nearest, distinct_n, duplicate_rate, self_bleu


def plain_bleu(hypothesis, references, n):
    """BLEU written down once more, one reference at a time."""
    logs = []
    for order in range(1, min(n, len(hypothesis)) + 1):

        def ngrams(tokens, order=order):
            return [
                tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1)
            ]

        mine = ngrams(hypothesis)
        matched = sum(
            min(mine.count(gram), max(ngrams(ref).count(gram) for ref in references))
            for gram in set(mine)
        )
        logs.append(math.log(max(matched, 0.1) / len(mine)))
    c = len(hypothesis)
    r = min((len(ref) for ref in references), key=lambda size: (abs(size - c), size))
    return math.exp(min(0, 1 - r / c) + sum(logs) / len(logs))


def test_self_bleu_is_the_mean_bleu_of_each_text_against_the_others():
    draw = random.Random(0)
    texts = [draw.choices("abcd", k=draw.randint(1, 9)) for _ in range(30)]
    expected = np.mean(
        [plain_bleu(t, texts[:i] + texts[i + 1 :], 4) for i, t in enumerate(texts)]
    )
    assert self_bleu(texts) == pytest.approx(expected, rel=1e-12)


def test_self_bleu_by_hand():
    # p1 = 2/3, p2 = 1/2, both lengths 3, both ways round.
    assert self_bleu([["a", "b", "c"], ["a", "b", "d"]], n=2) == pytest.approx(
        math.sqrt(1 / 3)
    )
    # The shorter text is penalised by exp(1 - 3/2); the longer one has p1 = 2/3.
    assert self_bleu([["a", "b"], ["a", "b", "c"]], n=1) == pytest.approx(
        (math.exp(-0.5) + 2 / 3) / 2
    )


def test_self_bleu_is_one_for_copies_and_low_for_strangers():
    assert self_bleu(["one two three four five"] * 3) == pytest.approx(1)
    strangers = [[f"{i}{j}" for j in range(6)] for i in range(5)]
    assert self_bleu(strangers) < 0.1


def test_self_bleu_takes_a_sample_by_its_seed():
    draw = random.Random(1)
    texts = [draw.choices("abcdef", k=6) for _ in range(100)]
    assert self_bleu(texts, sample=20, seed=1) == self_bleu(texts, sample=20, seed=1)
    assert self_bleu(texts, sample=20, seed=1) != self_bleu(texts, sample=20, seed=2)
    assert self_bleu(texts, sample=None) == self_bleu(texts, sample=100)


def test_texts_and_their_tokens_give_the_same():
    texts = ["Hello there!", "hello you!", "well, hello"]
    tokens = [["hello", "there", "!"], ["hello", "you", "!"], ["well", ",", "hello"]]
    assert self_bleu(texts) == self_bleu(tokens)
    assert distinct_n(texts) == distinct_n(tokens)


@pytest.mark.parametrize("lengths", [[3, 3], [1, 2, 3], [2, 5, 5, 9, 12], [4, 8, 6, 6]])
def test_the_nearest_other_length_is_found(lengths):
    expected = [
        min(
            (other for j, other in enumerate(lengths) if j != i),
            key=lambda other: (abs(other - own), other),
        )
        for i, own in enumerate(lengths)
    ]
    assert _nearest(np.array(lengths)).tolist() == expected


def test_one_text_has_no_self_bleu():
    with pytest.raises(ValueError, match="at least two texts"):
        self_bleu(["alone", "", ""])


def test_one_string_is_no_list_of_texts():
    with pytest.raises(ValueError, match="received one str"):
        distinct_n("abc")


def test_distinct_n_is_distinct_over_all():
    assert distinct_n([["a", "a", "b"], ["a"]], n=1) == 0.5
    assert distinct_n([["a", "b", "a", "b"]], n=2) == pytest.approx(2 / 3)
    assert distinct_n([["a"]], n=2) == 0.0


def test_duplicates_are_texts_that_came_before():
    assert duplicate_rate(["a b", "A, B!", "c", "c", "d"]) == pytest.approx(2 / 5)
    assert duplicate_rate([]) == 0.0
