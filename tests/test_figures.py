from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfpriv._errors import InputError
from tfpriv._figures import as_given, percent, rounded_up

EPSILONS = st.floats(min_value=0, max_value=1e300)
FORMS = [{"digits": 1}, {"digits": 2}, {"digits": 4}, {"places": 4}]


def number(text: str) -> float:
    return float(text.replace(",", ""))


def assert_never_below(show, value, form):
    shown = number(show(value, **form))
    assert shown >= value
    # And no more than one unit of the last digit above.
    places, digits = form.get("places"), form.get("digits", 4)
    if places is not None:
        unit = 10.0**-places
    elif value >= 10_000:
        unit = 1.0
    else:
        unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1) if value else 0.0
    assert shown - value <= unit * (1 + 1e-9) + 4e-16 * value


@pytest.mark.parametrize("form", FORMS, ids=str)
@given(value=EPSILONS)
def test_what_is_shown_is_never_below_what_is_true(form, value):
    assert_never_below(rounded_up, value, form)


def test_rounding_to_the_nearest_is_found_out():
    def nearest(value, digits=4, places=None):
        return f"{value:.{digits}g}" if places is None else f"{value:.{places}f}"

    for form in FORMS:
        with pytest.raises(AssertionError):
            assert_never_below(nearest, 8.00001 + 1 / 3, form)


@pytest.mark.parametrize("value", [0.1, 0.3, 0.7, 1.1, 4.0, 8.0, 384.0, 1e-5])
def test_a_short_number_stays_what_it_is(value):
    assert rounded_up(value) == as_given(value)


def test_forms():
    assert rounded_up(math.inf) == "infinite"
    assert rounded_up(4.20116, places=4) == "4.2012"
    assert rounded_up(9999.99999) == "10,000"
    assert rounded_up(1234.5678) == "1,235"
    assert rounded_up(5e-324, 1) == "5e-324"
    assert percent(0.075) == "7.5 %"


@pytest.mark.parametrize("value", [math.nan, -1.0, -math.inf])
def test_what_is_no_cost_is_refused(value):
    with pytest.raises(InputError):
        rounded_up(value)
