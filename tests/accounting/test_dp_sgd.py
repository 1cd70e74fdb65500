import dataclasses
import math
import subprocess
import sys

import hypothesis
import pytest
from hypothesis import strategies as st

from tfpriv._errors import InputError
from tfpriv.accounting import (
    SAMPLINGS,
    Compose,
    DPSGDPlan,
    Gaussian,
    PoissonGaussian,
    PrivacyWarning,
    collapse,
    epsilon,
    rdp,
)
from tfpriv.accounting.dp_sgd_search import largest_batch, most_steps

# n, batch, sigma, steps -> RDP, PLD at delta 1e-5 (dp-accounting 0.4.3).
GOLDEN = [
    (60000, 256, 1.1, 14063, 2.5967, 2.3818),
    (1956, 64, 1.0, 306, 4.2012, 3.7206),
    (1956, 64, 1.0, 3057, 13.7483, 12.7072),
    (1956, 64, 2.0, 3057, 4.6250, 4.2667),
    (25000, 512, 0.9, 977, 5.5090, 4.9388),
]


@pytest.mark.parametrize(("n", "batch", "sigma", "steps", "rdp", "pld"), GOLDEN)
@pytest.mark.filterwarnings("ignore::tfpriv.accounting.PrivacyWarning")
def test_published_figures_come_out(n, batch, sigma, steps, rdp, pld):
    plan = DPSGDPlan(n, batch, steps, sigma)
    assert plan.epsilon(1e-5) == pytest.approx(rdp, abs=5e-5)
    assert plan.epsilon(1e-5, "pld") == pytest.approx(pld, abs=5e-5)


def test_ten_full_passes_cost_19_05_without_amplification():
    plan = DPSGDPlan(1956, 64, 305, 1.0, sampling="once_per_epoch")
    assert plan.passes == 10
    assert plan.epsilon(1e-5) == pytest.approx(19.0536, abs=5e-5)
    assert dataclasses.replace(plan, steps=306).passes == 11


def test_the_published_dp_seqgan_setting_costs_about_4e8():
    plan = DPSGDPlan(1956, 64, 727, 0.001, sampling="none")
    price = rdp.price(plan.event(), 1e-5)
    assert round(price.default_epsilon) == 399_850_112
    # Its order was the lowest of the grid, 1.1; wider grids find less.
    assert price.widened
    assert plan.epsilon(1e-5) == price.epsilon
    assert round(price.epsilon) == 363_630_220
    assert 0.999 * price.epsilon < plan.epsilon(1e-5, "pld") <= price.epsilon


@pytest.mark.parametrize(
    ("target", "sigma"), [(1.0, 4.1352), (3.0, 1.6906), (8.0, 0.9431)]
)
def test_published_calibrations_come_out(target, sigma):
    plan = DPSGDPlan.calibrate(
        epsilon=target, delta=1e-5, num_examples=1956, batch_size=64, steps=918
    )
    assert plan.noise_multiplier == sigma
    assert plan.epsilon(1e-5) <= target
    less = dataclasses.replace(plan, noise_multiplier=sigma - 1e-4)
    assert less.epsilon(1e-5) > target


def test_published_calibrations_of_one_class_come_out():
    common = {"epsilon": 8.0, "delta": 1e-5, "num_examples": 1000}
    poisson = DPSGDPlan.calibrate(**common, batch_size=55, steps=1000)
    assert poisson.noise_multiplier == 1.3394
    full = DPSGDPlan.calibrate(
        **common, batch_size=1000, steps=40, sampling="full_batch"
    )
    assert full.noise_multiplier == 4.0330


_plans = st.fixed_dictionaries(
    {
        "epsilon": st.floats(0.05, 50),
        "delta": st.floats(1e-9, 1e-3),
        "num_examples": st.integers(100, 10**6),
        "steps": st.integers(1, 10**5),
    }
)
_rates = st.floats(0.001, 0.5)


def _check_calibration(parameters, batch_size, sampling):
    """Never over the target, no more noise than needed, within 1 % below."""
    plan = DPSGDPlan.calibrate(**parameters, batch_size=batch_size, sampling=sampling)
    target, delta = parameters["epsilon"], parameters["delta"]

    def price(less):
        sigma = plan.noise_multiplier - less
        return epsilon(dataclasses.replace(plan, noise_multiplier=sigma).event(), delta)

    assert price(0.0) <= target
    if plan.noise_multiplier > 1.5e-4:
        assert price(1.01e-4) > target
    if price(0.0) < 0.99 * target:
        # Where delta covers everything, epsilon jumps to 0: no noise is in between.
        assert price(1.01e-8) > target


def _batch(parameters, rate):
    return max(1, int(rate * parameters["num_examples"]))


@hypothesis.given(_plans, st.sampled_from(["full_batch", "none"]))
def test_calibration_never_overshoots_and_is_the_smallest(parameters, sampling):
    _check_calibration(parameters, parameters["num_examples"], sampling)


@hypothesis.given(_plans, _rates)
@hypothesis.settings(max_examples=3)
def test_calibration_under_sampling_never_overshoots(parameters, rate):
    _check_calibration(parameters, _batch(parameters, rate), "poisson")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@hypothesis.given(_plans, _rates)
@hypothesis.settings(max_examples=300)
def test_calibration_under_sampling_never_overshoots_widely(parameters, rate):
    _check_calibration(parameters, _batch(parameters, rate), "poisson")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@hypothesis.given(_plans, _rates, st.sampled_from(SAMPLINGS[1:]))
@hypothesis.settings(max_examples=700)
def test_calibration_without_amplification_never_overshoots_widely(
    parameters, rate, sampling
):
    whole = sampling == "full_batch"
    batch = parameters["num_examples"] if whole else _batch(parameters, rate)
    _check_calibration(parameters, batch, sampling)


@pytest.mark.parametrize(
    "twin", [lambda sigma: 0.999 * sigma, lambda sigma: 1.02 * sigma]
)
def test_a_twin_that_is_off_by_little_is_rejected(monkeypatch, twin):
    calibrate = DPSGDPlan.calibrate

    def broken(**parameters):
        plan = calibrate(**parameters)
        sigma = round(twin(plan.noise_multiplier), 4)
        return dataclasses.replace(plan, noise_multiplier=sigma)

    monkeypatch.setattr(DPSGDPlan, "calibrate", broken)
    parameters = {"epsilon": 3.0, "delta": 1e-5, "num_examples": 1956, "steps": 100}
    with pytest.raises(AssertionError):
        _check_calibration(parameters, 1956, "full_batch")


@pytest.mark.parametrize(
    "sampling", ["poisson", "full_batch", "once_per_epoch", "none"]
)
@pytest.mark.parametrize("steps", [1, 7, 31, 61, 100])
def test_the_events_of_all_steps_make_the_event_of_the_run(sampling, steps):
    batch = 1000 if sampling == "full_batch" else 64
    plan = DPSGDPlan(1000, batch, steps, 1.3, sampling=sampling)
    charged = collapse(Compose(tuple(plan.step_event(i) for i in range(steps))))
    assert charged == plan.event()


def test_sampling_decides_the_price_in_the_expected_order():
    prices = [
        DPSGDPlan(1000, 50, 200, 2.0, sampling=sampling).epsilon(1e-5)
        for sampling in ("poisson", "once_per_epoch", "none")
    ]
    assert prices == sorted(prices)
    assert prices[0] < prices[1] < prices[2]


def test_only_poisson_sampling_claims_amplification():
    for sampling in ("once_per_epoch", "none"):
        plan = DPSGDPlan(1000, 50, 200, 2.0, sampling=sampling)
        assert plan.sampling_rate == 1
        assert isinstance(plan.event(), Gaussian)
        assert plan.adjacency == "zero-out-one"
    plan = DPSGDPlan(1000, 50, 200, 2.0)
    assert plan.event() == PoissonGaussian(0.05, 2.0, 200)
    assert plan.adjacency == "add-or-remove-one"


GOOD = {"num_examples": 1000, "batch_size": 50, "steps": 10, "noise_multiplier": 1.0}
NUMBERS = [0, -1, math.nan, math.inf, "1", True, None]


@pytest.mark.parametrize("name", ["num_examples", "batch_size", "steps"])
@pytest.mark.parametrize("value", [*NUMBERS, 10.0, 2.5])
def test_a_size_that_is_no_whole_number_above_0_is_refused(name, value):
    with pytest.raises(InputError, match=name):
        DPSGDPlan(**(GOOD | {name: value}))


@pytest.mark.parametrize("name", ["noise_multiplier", "l2_norm_clip"])
@pytest.mark.parametrize("value", NUMBERS)
def test_noise_and_clip_must_be_positive_numbers(name, value):
    with pytest.raises(InputError, match=name):
        DPSGDPlan(**(GOOD | {name: value}))


def test_a_batch_larger_than_the_data_is_refused():
    with pytest.raises(InputError, match="batch_size=1001"):
        DPSGDPlan(**(GOOD | {"batch_size": 1001}))


def test_a_full_batch_is_all_records():
    with pytest.raises(InputError, match="full_batch"):
        DPSGDPlan(**GOOD, sampling="full_batch")


def test_an_unknown_sampling_is_refused():
    with pytest.raises(InputError, match="sampling"):
        DPSGDPlan(**GOOD, sampling="shuffled")


@pytest.mark.parametrize("value", NUMBERS)
def test_a_budget_that_is_no_positive_number_is_refused(value):
    sizes = {key: GOOD[key] for key in ("num_examples", "batch_size", "steps")}
    with pytest.raises(InputError, match="epsilon"):
        DPSGDPlan.calibrate(epsilon=value, delta=1e-5, **sizes)


def test_a_delta_above_one_over_n_warns_and_says_why():
    with pytest.warns(PrivacyWarning, match=r"above 1/n = 0\.001"):
        DPSGDPlan(**GOOD).epsilon(0.01)


def test_extreme_parameters_give_a_bound_and_no_hang():
    for sigma in (1e-200, 1e-9, 1e-3, 1e4, 1e8, 1e30, 1e200):
        for rate in (1e-9, 0.03, 1 - 1e-12, 1.0):
            value = epsilon(PoissonGaussian(rate, sigma, 10**9), 1e-5)
            bound = epsilon(Gaussian(sigma, 10**9), 1e-5)
            assert 0 <= value <= bound * (1 + 1e-9)


def test_import_needs_neither_tensorflow_nor_dp_accounting():
    code = (
        "import sys, tfpriv.accounting as a; a.DPSGDPlan(10, 1, 1, 1.0).event();"
        "print({'tensorflow', 'dp_accounting', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


# What a target allows at given noise.


@hypothesis.given(
    st.floats(0.5, 20),
    st.floats(0.5, 5),
    st.sampled_from(["full_batch", "once_per_epoch", "none"]),
)
def test_the_most_steps_fit_and_one_more_does_not(target, sigma, sampling):
    batch = 1000 if sampling == "full_batch" else 64
    settings = {
        "num_examples": 1000,
        "batch_size": batch,
        "noise_multiplier": sigma,
        "sampling": sampling,
    }
    if epsilon(Gaussian(sigma), 1e-5) > target:
        with pytest.raises(InputError, match="one step"):
            most_steps(target_epsilon=target, delta=1e-5, **settings)
        return
    plan = most_steps(target_epsilon=target, delta=1e-5, **settings)
    more = dataclasses.replace(plan, steps=plan.steps + 1)
    assert epsilon(plan.event(), 1e-5) <= target < epsilon(more.event(), 1e-5)


def test_the_largest_batch_fits_and_one_more_does_not():
    plan = largest_batch(
        target_epsilon=3.0,
        delta=1e-5,
        num_examples=1956,
        steps=306,
        noise_multiplier=1.2,
    )
    more = dataclasses.replace(plan, batch_size=plan.batch_size + 1)
    assert plan.epsilon(1e-5) <= 3.0 < more.epsilon(1e-5)


@pytest.mark.parametrize("sampling", ["none", "full_batch", "shuffled"])
def test_a_batch_that_decides_nothing_is_not_looked_for(sampling):
    with pytest.raises(InputError, match="sampling"):
        largest_batch(
            target_epsilon=3.0,
            delta=1e-5,
            num_examples=1956,
            steps=306,
            noise_multiplier=1.2,
            sampling=sampling,
        )


@pytest.mark.parametrize("value", NUMBERS)
def test_a_bad_target_is_refused_before_the_search(value):
    with pytest.raises(InputError, match="epsilon"):
        most_steps(
            target_epsilon=value,
            delta=1e-5,
            num_examples=1956,
            batch_size=64,
            noise_multiplier=1.0,
        )
