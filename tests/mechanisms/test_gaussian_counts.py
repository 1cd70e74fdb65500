import math

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.accounting import Gaussian
from tfpriv.mechanisms import GaussianCounts


def test_the_event_is_that_of_the_noise_that_is_added():
    counts = GaussianCounts(l2_sensitivity=math.sqrt(10), noise_multiplier=4.0)
    assert counts.event() == Gaussian(4.0)
    assert counts.standard_deviation == pytest.approx(4 * math.sqrt(10))


@pytest.mark.parametrize("size", [1, 10, 8000])
@pytest.mark.parametrize("sensitivity", [1e-3, 1.0, math.sqrt(11), 1e4])
@pytest.mark.parametrize("multiplier", [1e-3, 1.0, 37.3])
def test_opendp_prices_the_release_no_higher_than_its_event(
    size, sensitivity, multiplier
):
    measurement = GaussianCounts(sensitivity, multiplier)._measurement(size)
    rho = measurement.map(sensitivity)
    assert rho <= 0.5 / multiplier**2
    assert rho >= 0.5 / multiplier**2 * (1 - 1e-6)


def test_shape_is_kept_and_the_input_is_not_touched():
    counts = np.arange(6).reshape(2, 3)
    noisy = GaussianCounts(1.0, 1e-6).release(counts)
    assert noisy.shape == (2, 3)
    assert noisy.dtype == np.float64
    assert noisy == pytest.approx(counts, abs=1e-4)
    assert np.array_equal(counts, np.arange(6).reshape(2, 3))


def test_a_price_above_the_event_stops_the_release(monkeypatch):
    monkeypatch.setattr("tfpriv.mechanisms._opendp.WIDENING", 0.9)
    with pytest.raises(RuntimeError, match="Nothing was released"):
        GaussianCounts(1.0, 1.0).release(np.zeros(3))


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", True, None])
def test_parameters_that_are_no_positive_numbers_are_refused(value):
    with pytest.raises(InputError, match="l2_sensitivity"):
        GaussianCounts(value, 1.0)
    with pytest.raises(InputError, match="noise_multiplier"):
        GaussianCounts(1.0, value)


@pytest.mark.parametrize(
    "counts",
    [
        [],
        ["31415"],
        [True],
        [None],
        [31415.0, math.nan],
        [31415.0, math.inf],
        [31415.0, 2.0**60],
        [31415 + 1j],
    ],
)
def test_counts_that_are_no_finite_numbers_are_refused_without_quoting_them(counts):
    with pytest.raises(InputError) as caught:
        GaussianCounts(1.0, 1.0).release(np.array(counts))
    assert "31415" not in str(caught.value)
