from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfpriv.text.collapse import distinct_ids, has_collapsed
from tfpriv.text.metrics import distinct_n
from tfpriv.text.vocabulary import PAD


def rows(count: int, seed: int, words: int = 200) -> np.ndarray:
    """Texts of 4 to 10 of so many words, frequent ones first."""
    draw = np.random.default_rng(seed)
    share = 1 / np.arange(1, words + 1)
    found = draw.choice(words, (count, 10), p=share / share.sum()) + 4
    found[np.arange(10) >= draw.integers(4, 11, (count, 1))] = PAD
    return found


@given(
    st.lists(st.lists(st.integers(1, 4), max_size=5), min_size=1, max_size=5),
    st.integers(1, 3),
)
def test_it_counts_what_distinct_n_counts(texts, n):
    padded = np.array([text + [PAD] * (5 - len(text)) for text in texts])
    named = [[str(i) for i in text] for text in texts]
    assert distinct_ids(padded, n) == distinct_n(named, n)


def test_other_draws_of_one_source_are_no_collapse():
    before = rows(300, 0)
    assert not any(has_collapsed(rows(300, seed), before) for seed in range(1, 101))


@pytest.mark.parametrize("least", [0.3, 0.5, 0.7])
def test_a_source_that_repeats_itself_is_found(least):
    before, few = rows(300, 0), rows(12, 1)
    repeated = few[np.random.default_rng(2).integers(0, 12, 300)]
    assert has_collapsed(repeated, before, least=least)
    assert has_collapsed(np.full((300, 10), 7), before, least=least)
    assert has_collapsed(np.full((300, 10), PAD), before, least=least)


def test_the_number_of_rows_does_not_look_like_collapse():
    before, now = rows(50, 0), rows(5000, 1)
    assert distinct_ids(now) < 0.5 * distinct_ids(before)
    assert not has_collapsed(now, before)
    assert not has_collapsed(before, now)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="received 0 now and 3 before"):
        has_collapsed(np.zeros((0, 4), int), rows(3, 0))
    with pytest.raises(ValueError, match="least"):
        has_collapsed(rows(3, 0), rows(3, 0), least=0)
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        distinct_ids(np.zeros(3, int))
