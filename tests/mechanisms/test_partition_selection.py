import math

import numpy as np
import pytest
from scipy import stats

from tfpriv._errors import InputError
from tfpriv.accounting import GaussianThreshold
from tfpriv.mechanisms import select_partitions, selection_threshold


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.3])
@pytest.mark.parametrize("contributions", [1, 7])
def test_names_of_one_record_pass_with_probability_below_delta(delta, contributions):
    sigma = 3.0
    threshold = selection_threshold(sigma, delta, max_contributions=contributions)
    deviation = sigma * math.sqrt(contributions)
    passes = contributions * stats.norm.sf((threshold - 1) / deviation)
    assert 0.99 * delta < passes < delta


def test_how_often_a_single_record_is_named_matches_delta():
    counts = {f"name {i}": 1 for i in range(3000)}
    (names, _), _ = select_partitions(counts, 2.0, 0.2)
    error = 7 * math.sqrt(0.2 * 0.8 / 3000)
    assert abs(len(names) / 3000 - 0.2) < error


def test_large_partitions_are_named_and_rare_ones_are_not():
    counts = {"spam": 900, "ham": 1000, "tres": 3, "uno": 1}
    (names, noisy), event = select_partitions(counts, 5.0, 1e-9)
    assert names == ("ham", "spam")
    assert noisy == pytest.approx([1000, 900], abs=60)
    assert event == GaussianThreshold(5.0, 1e-9)


def test_counts_have_fresh_noise_of_the_stated_scale():
    counts = {f"name {i}": 10**6 for i in range(2000)}
    first, second = (
        select_partitions(counts, 3.0, 1e-6, max_contributions=4)[0] for _ in range(2)
    )
    assert first.names == second.names == tuple(sorted(counts))
    for selected in (first, second):
        deviation = np.std(selected.counts - 10**6)
        assert abs(deviation / 6.0 - 1) < 7 / math.sqrt(4000)
    correlation = np.corrcoef(first.counts, second.counts)[0, 1]
    assert abs(correlation) < 7 / math.sqrt(2000)


def test_the_order_of_the_input_does_not_show():
    counts = {"b": 10**6, "a": 10**6, "c": 10**6}
    (names, _), _ = select_partitions(counts, 1.0, 1e-6)
    assert names == ("a", "b", "c")


def test_no_partitions_select_none_at_the_same_price():
    (names, noisy), event = select_partitions({}, 2.0, 1e-6)
    assert names == ()
    assert noisy.shape == (0,)
    assert event == GaussianThreshold(2.0, 1e-6)


@pytest.mark.parametrize(
    "counts",
    [
        {"Mallory": 0},
        {"Mallory": -1},
        {"Mallory": 1.5},
        {"Mallory": "2"},
        {"Mallory": True},
        {"Mallory": math.nan},
        {3: 31415},
    ],
)
def test_counts_that_are_no_whole_numbers_are_refused_without_quoting_them(counts):
    with pytest.raises(InputError) as caught:
        select_partitions(counts, 1.0, 1e-6)
    assert "Mallory" not in str(caught.value)
    assert "31415" not in str(caught.value)


@pytest.mark.parametrize("delta", [0, 1, 2, 1e-13, math.nan, "1e-6", True])
def test_a_bad_delta_is_refused(delta):
    with pytest.raises(InputError, match="delta"):
        select_partitions({"a": 5}, 1.0, delta)


@pytest.mark.parametrize("sigma", [0, -1, math.nan, math.inf, "1"])
def test_a_bad_noise_multiplier_is_refused(sigma):
    with pytest.raises(InputError, match="noise_multiplier"):
        select_partitions({"a": 5}, sigma, 1e-6)


@pytest.mark.parametrize("contributions", [0, -1, 1.5, True, None])
def test_a_bad_number_of_contributions_is_refused(contributions):
    with pytest.raises(InputError, match="max_contributions"):
        select_partitions({"a": 5}, 1.0, 1e-6, max_contributions=contributions)
