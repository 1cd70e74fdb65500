"""What a record adds, worked out by hand. That it is at most 1: tests/contracts."""

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.mechanisms.record_counts import (
    LENGTH_EDGES,
    length_bucket,
    length_histogram,
    pair_presence,
    token_presence,
)

WEIGHTS = np.array([0, 0, 0, 0, 3.0, 4.0, 12.0])
CLOSE = {"rtol": 0, "atol": 1e-7}


def test_a_record_adds_the_weights_of_its_distinct_tokens_at_norm_one():
    counts = token_presence([[5, 4, 5, 5]], [1], 2, WEIGHTS)
    np.testing.assert_allclose(counts[1], [0, 0, 0, 0, 0.6, 0.8, 0], **CLOSE)
    assert not counts[0].any()


def test_a_long_text_keeps_all_its_tokens():
    counts = token_presence([list(range(400))], [0], 1, np.ones(400))
    np.testing.assert_allclose(counts, np.full((1, 400), 1 / 20), **CLOSE)


def test_records_of_a_class_add_up():
    counts = token_presence([[4], [4, 5], [6], [6]], [0, 0, 1, 1], 2, WEIGHTS)
    np.testing.assert_allclose(counts[0], [0, 0, 0, 0, 1.6, 0.8, 0], **CLOSE)
    np.testing.assert_allclose(counts[1], [0, 0, 0, 0, 0, 0, 2], **CLOSE)


@pytest.mark.parametrize("row", [[], [0, 3], np.zeros(0, np.int32)])
def test_a_text_without_tokens_of_weight_adds_nothing(row):
    assert not token_presence([row], [0], 1, WEIGHTS).any()


@pytest.mark.parametrize("tiny", [5e-324, 2.7e-162, 1e-150, 1e-8])
def test_weights_whose_squares_vanish_still_make_norm_one(tiny):
    counts = token_presence([[0, 1]], [0], 1, np.array([tiny, tiny]))
    np.testing.assert_allclose(counts, np.sqrt([[0.5, 0.5]]), **CLOSE)
    assert np.linalg.norm(counts) <= 1


@pytest.mark.parametrize("weight", [np.nan, np.inf, -1.0])
def test_weights_that_bound_nothing_are_refused(weight):
    with pytest.raises(InputError, match="weights"):
        token_presence([[0]], [0], 1, np.array([weight, 1.0]))


def test_the_buckets_begin_at_their_edges_and_the_last_is_open():
    for bucket, edge in enumerate(LENGTH_EDGES):
        assert length_bucket(edge) == bucket
        assert length_bucket(edge - 1) == max(bucket - 1, 0)
    assert length_bucket(10_000) == len(LENGTH_EDGES) - 1


def test_a_record_counts_once_in_the_bucket_of_its_length():
    counts = length_histogram([[], [9], [9] * 9, [9] * 9], [0, 1, 1, 1], 2)
    assert counts.sum(1).tolist() == [1, 3]
    assert counts[0, 0] == 1
    assert counts[1, length_bucket(9)] == 2


def test_a_record_adds_its_distinct_pairs_at_norm_one():
    counts = pair_presence([[1, 8, 9, 8, 9, 2]], [0], 1, [1, 2, 8, 9])
    # Start-8, 8-9, 9-8 and 9-end: four pairs, each a half.
    expected = np.zeros((4, 4))
    expected[[0, 2, 3, 3], [2, 3, 2, 1]] = 0.5
    np.testing.assert_allclose(counts[0], expected, **CLOSE)


def test_tokens_on_both_sides_of_another_are_no_neighbours():
    assert not pair_presence([[8, 7, 9], [8], []], [0, 0, 0], 1, [8, 9]).any()


def test_an_id_that_is_there_twice_is_refused():
    with pytest.raises(InputError, match="once"):
        pair_presence([[8, 9]], [0], 1, [8, 9, 8])


def test_labels_that_do_not_fit_are_refused():
    for labels in ([], [0, 0], [2], [-1]):
        with pytest.raises(InputError, match="label"):
            length_histogram([[4]], labels, 2)
