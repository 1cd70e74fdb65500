from __future__ import annotations

import itertools
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfpriv._errors import InputError
from tfpriv.attacks.near_copies import longest_runs, nearest_texts, runs_at_tokens

texts = st.lists(st.lists(st.sampled_from("abcd"), max_size=9), max_size=8)


def similarity(one, two) -> float:
    first, second = ({*t, *itertools.pairwise(t)} for t in (one, two))
    return len(first & second) / max(len(first | second), 1)


def longest_run(one, two) -> int:
    return max(
        (
            size
            for start in range(len(one))
            for size in range(1, len(one) - start + 1)
            for place in range(len(two) - size + 1)
            if one[start : start + size] == two[place : place + size]
        ),
        default=0,
    )


@given(texts, texts, st.integers(1, 4), st.integers(1, 4))
def test_the_nearest_is_that_of_all_pairs(queries, corpus, rows, columns):
    found = nearest_texts(queries, iter(corpus), block=(rows, columns))
    for query, value, index in zip(queries, *found, strict=True):
        every = [similarity(query, text) for text in corpus]
        best = max(every, default=0.0)
        assert value == best
        assert index == (every.index(best) if best else -1)


@given(texts, texts, st.integers(1, 20))
def test_the_longest_run_is_that_of_all_pairs(queries, corpus, piece):
    found = longest_runs(queries, iter(corpus), piece=piece)
    for query, run in zip(queries, found, strict=True):
        assert run == max((longest_run(query, text) for text in corpus), default=0)


@given(texts, texts, st.integers(1, 20))
def test_each_token_has_the_longest_run_that_begins_there(queries, corpus, piece):
    found = runs_at_tokens(queries, iter(corpus), piece=piece)
    for query, runs in zip(queries, found, strict=True):
        known = {
            tuple(text[start:stop])
            for text in corpus
            for start in range(len(text))
            for stop in range(start + 1, len(text) + 1)
        }
        assert runs.tolist() == [
            max(
                (
                    size
                    for size in range(1, len(query) - place + 1)
                    if tuple(query[place : place + size]) in known
                ),
                default=0,
            )
            for place in range(len(query))
        ]


def test_a_run_ends_where_a_text_ends():
    assert longest_runs([["a", "b"]], [["x", "a"], ["b", "x"]]).tolist() == [1]
    # Nor do two words that no query has count as one.
    assert longest_runs([["a"], ["b"]], [["x"], ["y"]]).tolist() == [0, 0]


def test_very_long_copies_are_found_in_no_time():
    """Word by word it would take a minute."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 9, 60_000).astype(str).tolist()
    started = time.monotonic()
    found = longest_runs([words[1000:31_000]], [words[:30_000], words[40_000:]])
    assert found.tolist() == [29_000]
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("search", [nearest_texts, longest_runs])
def test_memory_does_not_grow_with_the_corpus(search):
    rng = np.random.default_rng(0)
    queries = rng.integers(0, 500, (200, 12)).astype(str).tolist()
    search(queries[:1], queries[:1])

    def corpus(size: int):
        for _ in range(size // 100):
            yield from rng.integers(0, 500, (100, 12)).astype(str).tolist()

    small = {"block": (64, 500)} if search is nearest_texts else {"piece": 6500}
    peaks = []
    for size in (1000, 8000):
        tracemalloc.start()
        search(queries, corpus(size), **small)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_nothing_at_a_time_is_refused():
    with pytest.raises(InputError, match="corpus_at_once=0"):
        nearest_texts([["a"]], [["a"]], block=(1, 0))
    with pytest.raises(InputError, match="piece=0"):
        longest_runs([["a"]], [["a"]], piece=0)
