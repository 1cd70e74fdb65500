"""One record moves a count by at most 1, whatever it and the others hold.

Also to the last bit: a sum with rounding errors in it differs between neighbours by
more than the record that they differ in.
"""

from __future__ import annotations

import itertools
from collections import Counter

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from tfpriv.mechanisms import record_counts

VOCABULARY, CLASSES = 300, 3
WEIGHTS = np.random.default_rng(0).uniform(1e-3, 1.0, VOCABULARY)
WEIGHTS[:4] = 0.0
IDS = np.r_[1, 2, 10:40]


def token_presence(rows, labels):
    return record_counts.token_presence(rows, labels, CLASSES, WEIGHTS)


def length_histogram(rows, labels):
    return record_counts.length_histogram(rows, labels, CLASSES)


def pair_presence(rows, labels):
    return record_counts.pair_presence(rows, labels, CLASSES, IDS)


class LongRow(list):
    """10,000 tokens, which nobody wants to see in a report."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        super().__init__(rng.integers(0, VOCABULARY, 10_000).tolist())

    def __repr__(self) -> str:
        return "LongRow"


_tokens = st.integers(0, VOCABULARY - 1)
_rows = st.one_of(
    st.lists(_tokens, max_size=12),
    st.tuples(_tokens, st.integers(1, 40)).map(lambda pair: [pair[0]] * pair[1]),
    st.lists(st.sampled_from([1, 2, 10, 11, 12]), max_size=30),
    st.integers(0, 99).map(LongRow),
)
_labels = st.integers(0, CLASSES - 1)
_data = st.lists(st.tuples(_rows, _labels), max_size=12)


def check_one_record_moves_it_by_at_most_one(count):
    @hypothesis.settings(
        max_examples=60, database=None, phases=[hypothesis.Phase.generate]
    )
    @hypothesis.given(_data, _rows, _labels, st.integers(0, 12))
    def check(data, row, label, place):
        rows, labels = [r for r, _ in data], [c for _, c in data]
        without = count(rows, labels)
        rows.insert(place, row)
        labels.insert(place, label)
        change = count(rows, labels) - without
        assert np.linalg.norm(change) <= 1
        assert not np.delete(change, label, axis=0).any()

    check()


def check_the_others_change_nothing_of_what_a_record_adds(count):
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 60, n).tolist() for n in rng.integers(1, 30, 1500)]
    labels = rng.integers(0, CLASSES, len(rows)).tolist()
    total, rest = count(rows, labels), count(rows[1:], labels[1:])
    np.testing.assert_array_equal(total - rest, count(rows[:1], labels[:1]))
    np.testing.assert_array_equal(total, count(rows[::-1], labels[::-1]))


CHECKS = [
    check_one_record_moves_it_by_at_most_one,
    check_the_others_change_nothing_of_what_a_record_adds,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
@pytest.mark.parametrize("count", [token_presence, length_histogram, pair_presence])
def test_counts(count, check):
    check(count)


def _summed(rows, labels, vector):
    sums = np.zeros((CLASSES, VOCABULARY))
    for row, label in zip(rows, labels, strict=True):
        sums[label] += vector(row)
    return sums


def _presence(row):
    return np.isin(np.arange(VOCABULARY), row) * WEIGHTS


def _unit(vector):
    return vector / (np.linalg.norm(vector) or 1.0)


def no_scaling(rows, labels):
    return _summed(rows, labels, _presence)


def multiplicity_counted(rows, labels):
    def vector(row):
        return _unit(_presence(row)) * np.bincount(row, minlength=VOCABULARY)

    return _summed(rows, labels, lambda row: vector(np.array(row, int)))


def scaled_in_l1_of_the_root(rows, labels):
    return _summed(rows, labels, lambda row: np.sqrt(_unit(_presence(row))))


def scaled_by_the_longest_record(rows, labels):
    longest = max((np.linalg.norm(_presence(row)) for row in rows), default=1.0)
    return _summed(rows, labels, lambda row: _presence(row) / (longest or 1.0))


def class_of_the_next_record(rows, labels):
    return token_presence(rows, labels[1:] + labels[:1])


def sums_that_round(rows, labels):
    return _summed(rows, labels, lambda row: (1 - 1e-9) * _unit(_presence(row)))


def tokens_for_records(rows, labels):
    sums = length_histogram(rows, labels)
    for row, label in zip(rows, labels, strict=True):
        sums[label, -1] += len(row) > 20
    return sums


def every_pair_counted(rows, labels):
    sums = np.zeros((CLASSES, VOCABULARY, VOCABULARY))
    for row, label in zip(rows, labels, strict=True):
        pairs = Counter(itertools.pairwise(row))
        for pair, times in pairs.items():
            sums[(label, *pair)] += times / np.sqrt(len(pairs))
    return sums


TWINS = [
    (no_scaling, CHECKS[0]),
    (multiplicity_counted, CHECKS[0]),
    (scaled_in_l1_of_the_root, CHECKS[0]),
    (scaled_by_the_longest_record, CHECKS[0]),
    (class_of_the_next_record, CHECKS[0]),
    (tokens_for_records, CHECKS[0]),
    (every_pair_counted, CHECKS[0]),
    (sums_that_round, CHECKS[1]),
]


@pytest.mark.parametrize(("twin", "check"), TWINS, ids=[t.__name__ for t, _ in TWINS])
def test_a_broken_twin_is_rejected(twin, check):
    with pytest.raises(AssertionError):
        check(twin)
