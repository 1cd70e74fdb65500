import itertools
import math

import hypothesis
import pytest
from hypothesis import strategies as st

from tfpriv._errors import InputError
from tfpriv.accounting import (
    all_masked_probability,
    fixed_mask_amplification,
    masked_words,
    masking_amplification,
)
from tfpriv.accounting.masking import claimable_probability


def test_the_published_numbers():
    assert masking_amplification(1.0, 0.5) == pytest.approx(0.6201, abs=5e-5)
    assert fixed_mask_amplification(1.0, 0.5) == pytest.approx(0.8137, abs=5e-5)


@hypothesis.given(st.floats(1e-9, 300), st.floats(0, 1))
def test_the_formulas_as_they_are_written(epsilon, r):
    e, e2 = math.exp(epsilon), math.exp(2 * epsilon)
    plain, fixed = math.log(r + (1 - r) * e), (r + (1 - r) * e2) / (r + (1 - r) * e)
    assert masking_amplification(epsilon, r) == pytest.approx(plain, abs=1e-9)
    assert fixed_mask_amplification(epsilon, r) == pytest.approx(
        math.log(fixed), abs=1e-9
    )


@hypothesis.given(st.floats(0, 1e6), st.floats(0, 1), st.floats(0, 1))
def test_more_masking_costs_less_and_never_more_than_none(epsilon, r, s):
    r, s = min(r, s), max(r, s)
    prices = [masking_amplification(epsilon, x) for x in (1, s, r, 0)]
    assert prices[0] == 0
    assert prices[-1] == pytest.approx(epsilon, rel=1e-12)
    assert all(a <= b * (1 + 1e-12) + 1e-15 for a, b in itertools.pairwise(prices))
    assert fixed_mask_amplification(epsilon, r) >= prices[2] * (1 - 1e-9) - 1e-12
    assert fixed_mask_amplification(epsilon, r) <= epsilon * (1 + 1e-9) + 1e-12


def test_a_small_epsilon_keeps_its_digits():
    assert masking_amplification(1e-12, 0.25) == pytest.approx(0.75e-12, rel=1e-9)


@pytest.mark.parametrize(
    ("rate", "words", "masked"),
    [
        (0.1, 30, 3), (0.1, 29, 2), (0.29, 100, 29), (0.57, 100, 57), (0.0, 50, 0),
        (0.5, 1, 0), (0.999, 1000, 999), (0.3, 10, 3), (0.7, 10, 7), (0.1, 0, 0),
        (1 / 3, 3, 1), (2 / 3, 9, 6),
    ],
)  # fmt: skip
def test_the_rate_is_read_as_a_decimal(rate, words, masked):
    assert masked_words(rate, words) == masked


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.8])
@pytest.mark.parametrize("lengths", [(3, 3), (1, 7), (4, 9), (12, 40)])
@pytest.mark.parametrize("changed", [1, 2, 3, 12])
def test_the_least_probability_is_that_of_all_lengths(rate, lengths, changed):
    """Against binomial coefficients, length by length."""
    least = 1.0
    for words in range(lengths[0], lengths[1] + 1):
        masked, differ = masked_words(rate, words), min(changed, words)
        ways = math.comb(words - differ, masked - differ) if masked >= differ else 0
        least = min(least, ways / math.comb(words, masked))
    found = all_masked_probability(changed, rate, "exact", lengths)
    assert found == pytest.approx(least, rel=1e-9, abs=0)


def test_independent_masks_need_no_lengths():
    assert all_masked_probability(3, 0.5, "bernoulli") == 0.125
    assert all_masked_probability(9, 0.5, "bernoulli", (1, 2)) == 0.25
    assert all_masked_probability(10**300, 0.999999, "bernoulli") == 0


def test_a_fixed_number_of_masks_needs_lengths():
    assert all_masked_probability(1, 0.5, "exact") == 0
    assert all_masked_probability(1, 0.5, "exact", (1, 9)) == 0
    assert all_masked_probability(1, 0.5, "exact", (2, 9)) == pytest.approx(1 / 3)


def test_very_long_texts_take_no_long_time():
    assert all_masked_probability(10**6, 0.5, "exact", (10, 100_000)) == 0
    found = all_masked_probability(1000, 0.999, "exact", (5000, 10_000))
    # Of 5,001 words floor(4995.999) are masked.
    least = math.comb(4001, 3995) / math.comb(5001, 4995)
    assert found == pytest.approx(least, rel=1e-9)


def test_a_rate_that_is_1_to_a_millionth_is_refused():
    for call in (
        masked_words,
        lambda rate, n: all_masked_probability(n, rate, "exact"),
    ):
        with pytest.raises(InputError, match="mask_rate"):
            call(1 - 1e-9, 10)


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "1", None, True])
def test_bad_numbers_are_refused(value):
    for call in (
        lambda: masking_amplification(value, 0.5),
        lambda: masking_amplification(1.0, value),
        lambda: fixed_mask_amplification(1.0, value),
        lambda: masked_words(value, 10),
        lambda: all_masked_probability(1, value, "bernoulli"),
        lambda: all_masked_probability(value, 0.5, "bernoulli"),
        lambda: all_masked_probability(1, 0.5, value),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.parametrize(
    "lengths", [(0, 3), (5, 4), (1,), (1, 2, 3), "12", 7, (1.0, 2), (1, 10**7)]
)
def test_bad_lengths_are_refused(lengths):
    with pytest.raises(InputError):
        all_masked_probability(1, 0.5, "exact", lengths)


def test_conditions_claim_nothing_of_texts_of_other_lengths():
    _, condition = claimable_probability(
        1, 0.5, "exact", mask_unit="words", truncation="words", lengths=(4, 9)
    )
    assert "4 to 9 words as they are read" in condition
    assert "another length, which nothing here refuses" in condition
