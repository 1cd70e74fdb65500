import json
import math

import hypothesis
import pytest
from hypothesis import strategies as st

from tfpriv._errors import InputError
from tfpriv.accounting import (
    ApproxDP,
    Compose,
    Event,
    Gaussian,
    GaussianThreshold,
    NonPrivate,
    Parallel,
    PoissonGaussian,
    PureDP,
    Repeat,
    collapse,
    combine,
)
from tfpriv.accounting.events import flatten

_leaves = st.one_of(
    st.builds(Gaussian, st.floats(0.01, 100), st.integers(1, 50)),
    st.builds(
        PoissonGaussian, st.floats(0.001, 1), st.floats(0.01, 100), st.integers(1, 50)
    ),
    st.builds(GaussianThreshold, st.floats(0.01, 100), st.floats(1e-12, 0.5)),
    st.builds(PureDP, st.floats(0, 5), st.integers(1, 50)),
    st.builds(ApproxDP, st.floats(0, 5), st.floats(1e-12, 0.5), st.integers(1, 50)),
    st.just(NonPrivate()),
)
_events = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.builds(Compose, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Parallel, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Repeat, inner, st.integers(1, 5)),
    ),
    max_leaves=6,
)


@hypothesis.given(_events)
def test_every_event_goes_through_json_and_back(event):
    assert Event.from_json(json.loads(json.dumps(event.to_json()))) == event
    assert hash(Event.from_json(event.to_json())) == hash(event)


@hypothesis.given(_events)
def test_collapsing_keeps_what_was_done(event):
    assert flatten(collapse(event)) == flatten(event)


BAD = [0, 0.0, -1.0, math.nan, math.inf, -math.inf, "1.0", True, None, [1.0]]


@pytest.mark.parametrize("value", BAD)
def test_a_noise_multiplier_that_is_no_positive_number_is_refused(value):
    for make in (
        lambda: Gaussian(value),
        lambda: PoissonGaussian(0.1, value),
        lambda: GaussianThreshold(value, 1e-6),
    ):
        with pytest.raises(InputError, match="noise_multiplier"):
            make()


@pytest.mark.parametrize("value", [*BAD, 1.0001, 2])
def test_a_sampling_rate_outside_0_to_1_is_refused(value):
    with pytest.raises(InputError, match="sampling_rate"):
        PoissonGaussian(value, 1.0)


@pytest.mark.parametrize("value", [0, -1, 1.0, 2.5, math.nan, "3", True, None, 10**400])
def test_a_count_that_is_no_whole_number_above_0_is_refused(value):
    for make in (
        lambda: Gaussian(1.0, value),
        lambda: PoissonGaussian(0.1, 1.0, value),
        lambda: PureDP(1.0, value),
        lambda: ApproxDP(1.0, 1e-6, value),
        lambda: Repeat(Gaussian(1.0), value),
    ):
        with pytest.raises(InputError, match="count"):
            make()


@pytest.mark.parametrize("value", [0, 1, 2, -1e-9, math.nan, math.inf, "1e-6", True])
def test_an_additive_delta_that_is_no_probability_is_refused(value):
    with pytest.raises(InputError, match="delta"):
        GaussianThreshold(1.0, value)
    with pytest.raises(InputError, match="delta"):
        ApproxDP(1.0, value)


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "1", True])
def test_a_pure_epsilon_that_is_no_number_from_0_is_refused(value):
    with pytest.raises(InputError, match="epsilon"):
        PureDP(value)
    with pytest.raises(InputError, match="epsilon"):
        ApproxDP(value, 1e-6)


@pytest.mark.parametrize(
    "part", [None, 1.0, "Gaussian", {"type": "Gaussian"}, Gaussian]
)
def test_a_composition_holds_events_only(part):
    for make in (
        lambda: Compose((Gaussian(1.0), part)),
        lambda: Parallel([part]),
        lambda: Repeat(part, 2),
    ):
        with pytest.raises(InputError, match="event"):
            make()


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"type": "Laplace", "scale": 1.0},
        {"type": "Event"},
        {"type": ["Gaussian"]},
        {"type": "Gaussian"},
        {"type": "Gaussian", "noise_multiplier": 1.0},
        {"type": "Gaussian", "noise_multiplier": 1.0, "count": 1, "also": 2},
        {"type": "Gaussian", "noise_multiplier": math.nan, "count": 1},
        {"type": "Gaussian", "noise_multiplier": "1", "count": 1},
        {"type": "Compose", "events": {"type": "NonPrivate"}},
        {"type": "Compose", "events": [{"type": "Secret"}]},
        {"type": "Repeat", "event": {"type": "Compose", "events": [3]}, "count": 2},
    ],
)
def test_json_that_is_no_event_is_refused_at_every_depth(value):
    with pytest.raises(InputError):
        Event.from_json(value)


def test_numpy_numbers_become_plain_ones():
    np = pytest.importorskip("numpy")
    event = PoissonGaussian(np.float32(0.5), np.float64(2.0), np.int64(3))
    assert event == PoissonGaussian(0.5, 2.0, 3)
    assert json.dumps(event.to_json())


def test_parts_compose_in_parallel_and_the_rest_in_sequence():
    counts, step = Gaussian(4.0), PoissonGaussian(0.1, 1.0)
    event = combine(
        [(counts, None), (step, "spam"), (step, "ham"), (step, "spam"), (counts, None)]
    )
    assert event == Compose(
        (
            Gaussian(4.0, 2),
            Parallel((PoissonGaussian(0.1, 1.0, 2), PoissonGaussian(0.1, 1.0))),
        )
    )
    assert combine([(step, "spam"), (counts, None)]) == Compose((counts, step))
    assert combine([]) == Compose(())
