from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfpriv.evaluation.copied_runs import CopiedRuns

WORDS = st.lists(st.sampled_from("abcd"), max_size=9).map(" ".join)
TEXTS = st.lists(WORDS, max_size=6)


def by_hand(text: str, others: list[str]) -> int:
    """Tries every run of the text in every other text."""
    tokens = text.split()
    padded = [f" {other} " for other in others]
    for length in range(len(tokens), 0, -1):
        for start in range(len(tokens) - length + 1):
            run = " ".join(tokens[start : start + length])
            if any(f" {run} " in other for other in padded):
                return length
    return 0


def share_by_hand(texts: list[str], others: list[str], n: int) -> float:
    def ngrams(text):
        tokens = text.split()
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    known = {ngram for other in others for ngram in ngrams(other)}
    ours = [ngram for text in texts for ngram in ngrams(text)]
    return sum(ngram in known for ngram in ours) / len(ours) if ours else 0.0


@given(TEXTS, TEXTS, st.sampled_from([1, 3, 1000]))
def test_the_longest_run_is_what_trying_all_runs_finds(texts, others, piece):
    runs = CopiedRuns(texts, piece=piece).add(others)
    assert runs.longest.tolist() == [by_hand(text, others) for text in texts]
    for n in (1, 2, 3):
        assert runs.share(n) == pytest.approx(share_by_hand(texts, others, n))


@given(TEXTS, TEXTS, TEXTS)
def test_texts_may_come_in_parts(texts, some, more):
    parts = CopiedRuns(texts).add(some).add(more)
    whole = CopiedRuns(texts).add(some + more)
    assert parts.longest.tolist() == whole.longest.tolist()


def test_case_spacing_and_which_link_do_not_count():
    runs = CopiedRuns(["See  MY page http://a.example/1 now"])
    assert runs.add(["see my page http://b.example/2 NOW"]).longest.tolist() == [5]


def test_a_run_does_not_reach_over_the_end_of_a_text():
    assert CopiedRuns(["a b c d"]).add(["x a b", "c d y"]).longest.tolist() == [2]
    assert CopiedRuns(["a b", "c d"]).add(["a b c d"]).longest.tolist() == [2, 2]


def test_nothing_is_longer_than_nothing():
    assert CopiedRuns([]).add(["a"]).longest.tolist() == []
    assert CopiedRuns(["", "a"]).add([]).longest.tolist() == [0, 0]
    assert CopiedRuns(["", "a"]).share(2) == 0.0


def test_others_are_not_kept():
    """Whatever is added, what is held afterwards has the size of the texts."""

    def held(runs):
        arrays = (runs._stream, runs._runs, runs._starts)
        return len(runs._number), sum(array.nbytes for array in arrays)

    draw = random.Random(0)
    runs = CopiedRuns(["a b c"], piece=100)
    before = held(runs)
    others = (" ".join(draw.choices("abcxyz", k=20)) for _ in range(500))
    runs.add(others)
    assert held(runs) == before
    assert np.all(runs.longest == 3)
