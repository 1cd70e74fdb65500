import decimal
import math
import statistics

import pytest

from tfpriv._errors import InputError
from tfpriv.accounting import PureDP
from tfpriv.mechanisms import RandomizedResponse
from tfpriv.mechanisms import randomized_response as module


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.1, 1.0, 4.0, 36.7, 100.0, 500.0])
@pytest.mark.parametrize("k", [2, 3, 1000])
def test_probabilities_are_the_published_ones(epsilon, k):
    mechanism = RandomizedResponse(range(k), epsilon)
    keep, change = mechanism.keep_probability, mechanism.change_probability
    assert keep == pytest.approx(1 / (1 + (k - 1) * math.exp(-epsilon)), rel=1e-12)
    assert change == pytest.approx(math.exp(-epsilon) * keep, rel=1e-9)
    assert keep + (k - 1) * change == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-12, 0.1, 1.0, 30.0, 500.0])
def test_no_ratio_is_above_e_to_the_epsilon_nor_much_below(epsilon):
    with decimal.localcontext() as context:
        context.prec = 600
        ratio = decimal.Decimal(module._right_chances(epsilon)) / module._CHANCES
        bound = decimal.Decimal(epsilon).exp()
        assert bound * (1 - decimal.Decimal(2) ** -127) < ratio < bound


@pytest.mark.parametrize("place", range(3))
def test_every_integer_means_the_label_it_should(place, monkeypatch):
    """The draw at both ends of every interval of integers."""
    mechanism = RandomizedResponse(["a", "b", "c"], 1.0)
    right, others = mechanism._right, [i for i in range(3) if i != place]
    ends = {0: place, right - 1: place}
    for index, other in enumerate(others):
        start = right + index * module._CHANCES
        ends |= {start: other, start + module._CHANCES - 1: other}
    assert max(ends) == mechanism._all - 1
    for number, expected in ends.items():
        monkeypatch.setattr(module.secrets, "randbelow", lambda _, n=number: n)
        assert mechanism.release([mechanism.labels[place]]) == ["abc"[expected]]


def test_labels_come_back_in_order_and_of_their_kind():
    values = ["ham", "spam", "spam", "ham"] * 50
    assert RandomizedResponse(["spam", "ham"], 300.0).release(values) == values
    numbers = RandomizedResponse([7, -1], 300.0).release(iter([7, -1, 7]))
    assert numbers == [7, -1, 7]
    assert RandomizedResponse(("a", "b"), 1.0).release([]) == []


def test_the_event_is_pure_epsilon_at_every_record():
    assert RandomizedResponse(["a", "b", "c"], 2).event() == PureDP(2.0)


def test_estimates_are_unbiased_and_add_up():
    mechanism = RandomizedResponse(["a", "b", "c"], 1.0)
    released = mechanism.release(["a"] * 6000 + ["b"] * 3000)
    estimate = mechanism.estimate_counts(released)
    assert sum(estimate.values()) == pytest.approx(9000)
    keep, change = mechanism.keep_probability, mechanism.change_probability
    deviation = math.sqrt(9000 * 0.25) / (keep - change)
    for label, true in {"a": 6000, "b": 3000, "c": 0}.items():
        assert abs(estimate[label] - true) < 7 * deviation


def test_estimates_by_hand():
    """For epsilon = ln 3 and two labels p = 3/4 and q = 1/4: (c - n / 4) * 2."""
    mechanism = RandomizedResponse(["a", "b"], math.log(3))
    estimate = mechanism.estimate_counts(["a"] * 9 + ["b"])
    assert estimate == {"a": pytest.approx(13), "b": pytest.approx(-3)}
    assert mechanism.estimate_counts([]) == {"a": 0, "b": 0}


def test_the_mean_of_many_estimates_is_the_truth():
    mechanism = RandomizedResponse(["a", "b"], 0.5)
    values = ["a"] * 30 + ["b"] * 10
    runs = [
        mechanism.estimate_counts(mechanism.release(values))["a"] for _ in range(400)
    ]
    error = statistics.stdev(runs) / math.sqrt(len(runs))
    assert abs(statistics.mean(runs) - 30) < 7 * error


@pytest.mark.parametrize(
    "labels",
    [
        [], ["a"], ["a", "a"], ["a", "b", "a"], "ab", None, 3, [1, True], [1.0, 2.0],
        ["a", None], [["a"], ["b"]], [math.nan, "a"],
    ],
)  # fmt: skip
def test_labels_that_are_no_list_of_different_ones_are_refused(labels):
    with pytest.raises(InputError):
        RandomizedResponse(labels, 1.0)


@pytest.mark.parametrize(
    "epsilon", [0, -1.0, math.nan, math.inf, "1", True, None, 501, 1e-40]
)
def test_an_epsilon_out_of_range_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        RandomizedResponse(["a", "b"], epsilon)


@pytest.mark.parametrize("value", ["a secret", None, math.nan, ["a"], {"a": 1}, b"a"])
def test_a_value_that_is_no_label_is_refused_by_its_row_alone(value):
    mechanism = RandomizedResponse(["a", "b"], 1.0)
    for method in (mechanism.release, mechanism.estimate_counts):
        with pytest.raises(InputError, match="row 3") as caught:
            method(["a", "b", value])
        assert "secret" not in str(caught.value)
        assert "nan" not in str(caught.value)


def test_nothing_is_drawn_before_all_values_are_checked(monkeypatch):
    monkeypatch.setattr(module.secrets, "randbelow", lambda _: pytest.fail("drawn"))
    with pytest.raises(InputError, match="row 2"):
        RandomizedResponse(["a", "b"], 1.0).release(["a", "c"])
