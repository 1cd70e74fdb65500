import math

import hypothesis
import pytest
from hypothesis import strategies as st

from tfpriv._errors import InputError
from tfpriv.accounting import (
    Compose,
    Gaussian,
    GaussianThreshold,
    NonPrivate,
    Parallel,
    PoissonGaussian,
    PureDP,
    Repeat,
    calibrate_scale,
    epsilon,
)
from tfpriv.accounting.composition import (
    Decimals,
    FourDigits,
    smallest_fitting,
)


def _with_dp_accounting(accountant, event):
    import dp_accounting as da

    def convert(part):
        match part:
            case Gaussian(sigma, count):
                return da.SelfComposedDpEvent(da.GaussianDpEvent(sigma), count)
            case PoissonGaussian(rate, sigma, count):
                sampled = da.PoissonSampledDpEvent(rate, da.GaussianDpEvent(sigma))
                return da.SelfComposedDpEvent(sampled, count)
            case Compose(events):
                return da.ComposedDpEvent(list(map(convert, events)))

    return accountant.compose(convert(event)).get_epsilon(1e-5)


MIXED = Compose((Gaussian(3.0, 2), PoissonGaussian(0.1, 1.2, 50), Gaussian(8.0)))


def test_rdp_equals_dp_accounting():
    from dp_accounting import rdp

    expected = _with_dp_accounting(rdp.RdpAccountant(), MIXED)
    assert epsilon(MIXED, 1e-5) == pytest.approx(expected, rel=1e-9)


def test_pld_equals_dp_accounting():
    from dp_accounting import pld

    expected = _with_dp_accounting(pld.PLDAccountant(), MIXED)
    # On a coarser grid, rounded up: never below, and 2e-6 above at most.
    assert expected * (1 - 1e-9) <= epsilon(MIXED, 1e-5, "pld")
    assert epsilon(MIXED, 1e-5, "pld") <= expected * (1 + 2e-6)


def test_pld_refuses_too_many_combinations_of_parts():
    parts = Parallel(tuple(Gaussian(1.0 + i) for i in range(9)))
    with pytest.raises(InputError, match="rdp"):
        epsilon(Compose((parts, Repeat(parts, 1), parts)), 1e-5, "pld")
    assert epsilon(Repeat(parts, 3), 1e-5) > 0


def test_pld_of_tiny_noise_ends_and_bounds():
    event = Gaussian(0.01, 10)
    true = 0.5 * 10 / 0.01**2
    assert true < epsilon(event, 1e-5, "pld") < epsilon(event, 1e-5)


def test_equal_parts_are_one_part():
    one, many = Gaussian(2.0, 3), Parallel((Gaussian(2.0, 3),) * 200)
    for accountant in ("rdp", "pld"):
        assert epsilon(many, 1e-5, accountant) == epsilon(one, 1e-5, accountant)


def test_an_epsilon_of_0_is_possible_where_delta_covers_everything():
    assert epsilon(PoissonGaussian(1e-8, 1.0), 1e-5) == 0


@hypothesis.given(
    st.floats(0.1, 100), st.floats(1e-9, 1e-3), st.lists(st.floats(0.1, 10), min_size=1)
)
def test_a_scale_meets_the_budget_and_the_next_smaller_does_not(budget, delta, ratios):
    def release(scale):
        return Compose(tuple(Gaussian(scale * ratio) for ratio in ratios))

    scale = calibrate_scale(release, budget, delta)
    assert epsilon(release(scale), delta) <= budget
    digit = 10 ** (math.floor(math.log10(scale)) - 3)
    assert epsilon(release(scale - 1.001 * digit), delta) > budget


def test_a_scale_has_four_significant_digits():
    scale = calibrate_scale(Gaussian, 1.0, 1e-5)
    assert float(f"{scale:.3e}") == scale


def test_one_scale_calibrates_a_whole_release():
    def release(scale):
        training = [
            PoissonGaussian(0.05, scale / 3, 200),
            Gaussian(scale * 2, 40),
        ]
        return Compose(
            (
                GaussianThreshold(scale, 1e-6),
                Gaussian(scale),
                Parallel(tuple(training)),
            )
        )

    scale = calibrate_scale(release, 8.0, 1e-5)
    assert 7.9 < epsilon(release(scale), 1e-5) <= 8.0


@pytest.mark.parametrize(
    "make",
    [
        lambda scale: NonPrivate(),
        lambda scale: Compose((Gaussian(scale), PureDP(2.0))),
        lambda scale: GaussianThreshold(scale, 1e-4),
    ],
)
def test_a_budget_that_no_noise_meets_is_refused(make):
    with pytest.raises(InputError, match="pay for"):
        calibrate_scale(make, 1.0, 1e-5)


@pytest.mark.parametrize("budget", [0, -1, math.nan, math.inf, "8", True, None])
def test_a_bad_budget_is_refused(budget):
    with pytest.raises(InputError, match="epsilon"):
        calibrate_scale(Gaussian, budget, 1e-5)


@pytest.mark.parametrize("delta", [0, 1, 2, math.nan, "1e-5"])
def test_a_bad_delta_is_refused(delta):
    with pytest.raises(InputError, match="delta"):
        calibrate_scale(Gaussian, 1.0, delta)


_GRIDS = [FourDigits(), Decimals(4), Decimals(1)]
_PRICES = {
    "inverse": lambda edge: lambda x: edge / x,
    "steep": lambda edge: lambda x: (edge / x) ** 9,
    "flat": lambda edge: lambda x: (edge / x) ** 0.01,
    "jump": lambda edge: lambda x: math.inf if x < edge else 0.0,
    "bent": lambda edge: lambda x: edge / x if x < edge else (edge / x) ** 30,
}


@pytest.mark.parametrize("grid", _GRIDS, ids=lambda grid: type(grid).__name__)
@pytest.mark.parametrize("shape", _PRICES)
@hypothesis.given(st.floats(0.02, 9e5))
def test_the_search_finds_the_edge(grid, shape, edge):
    price = _PRICES[shape](edge)
    found = smallest_fitting(price, 1.0, grid)
    assert price(found) <= 1
    step = next(
        step
        for step in range(grid.step(found) - 2, grid.step(found) + 3)
        if grid.value(step) == found
    )
    if step > grid.lowest:
        assert price(grid.value(step - 1)) > 1


def test_the_search_takes_few_prices():
    asked = []

    def price(sigma):
        asked.append(sigma)
        return epsilon(Gaussian(sigma, 100), 1e-5)

    assert smallest_fitting(price, 8.0, Decimals(4)) is not None
    assert len(asked) <= 12


@pytest.mark.parametrize("grid", _GRIDS, ids=lambda grid: type(grid).__name__)
def test_the_search_notices_that_nothing_fits_or_everything_does(grid):
    assert smallest_fitting(lambda x: 2.0, 1.0, grid) is None
    assert smallest_fitting(lambda x: math.inf, 1.0, grid) is None
    assert smallest_fitting(lambda x: 0.5, 1.0, grid) == grid.value(grid.lowest)
    assert smallest_fitting(lambda x: 0.0, 1.0, grid) == grid.value(grid.lowest)


@pytest.mark.parametrize("grid", _GRIDS, ids=lambda grid: type(grid).__name__)
def test_a_grid_is_increasing_and_finds_its_own_numbers(grid):
    steps = range(grid.lowest, min(grid.highest, grid.lowest + 60_000), 7)
    values = [grid.value(step) for step in steps]
    assert values == sorted(set(values))
    for step, value in zip(steps, values, strict=True):
        assert abs(grid.step(value) - step) <= 1
