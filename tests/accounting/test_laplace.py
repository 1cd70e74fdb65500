import dataclasses
import json
import math
import re

import hypothesis
import pytest
from hypothesis import strategies as st

from tfpriv._errors import InputError
from tfpriv.accounting import (
    ApproxDP,
    LaplaceCertificate,
    PureDP,
    epsilon,
)

PAPER = LaplaceCertificate.nominal(
    1.0, 384, mask_rate=0.5, mask_mode="exact", lengths=(2, 32)
)
BALL = LaplaceCertificate.from_epsilon(
    4.0, 16, "l1_ball", radius=1.0, mask_rate=0.5, mask_mode="bernoulli"
)


def test_the_papers_setting_is_certified_as_what_it_is():
    assert PAPER.scale == 1
    assert PAPER.claimed_epsilon == pytest.approx(0.6201, abs=5e-5)
    assert PAPER.l1_sensitivity == 384
    assert PAPER.record_epsilon == 384
    # 1 of 3 words is masked at worst: ln((1 + 2 e^384) / 3).
    assert PAPER.word_epsilon == pytest.approx(384 + math.log(2 / 3))
    assert not PAPER.claim_holds


def test_in_one_dimension_with_independent_masks_the_papers_are_right():
    right = LaplaceCertificate.nominal(1.0, 1, mask_rate=0.5, mask_mode="bernoulli")
    assert right.word_epsilon == pytest.approx(0.6201, abs=5e-5)
    assert right.claim_holds
    assert "NOT" not in str(right)


def test_the_domains_have_their_own_sensitivity():
    assert BALL.l1_sensitivity == 2
    assert BALL.scale == 0.5
    assert BALL.record_epsilon == 4
    wide = LaplaceCertificate(16, 1.0, "l1_ball", radius=3.0)
    assert wide.record_epsilon == wide.l1_sensitivity == 6
    assert LaplaceCertificate(16, 4.0).record_epsilon == 4
    code = LaplaceCertificate(32, None, "code", code_epsilon=2.0, slack=0.25)
    assert code.record_epsilon == 2.25
    assert code.l1_sensitivity is None
    assert code.claimed_epsilon is None


def test_slack_is_paid_for():
    noisy = LaplaceCertificate(1, 1.0, slack=1e-3)
    assert noisy.record_epsilon == 1.001
    assert noisy.event() == PureDP(1.001)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mask_unit": "pieces"}, "how many pieces"),
        ({"truncation": "pieces"}, "cut by word-pieces"),
        ({"lengths": None}, "lengths are unknown"),
        ({"lengths": (1, 32)}, r"of a text of 1 words floor\(mu \* D\) = 0"),
        ({"mask_rate": 0.0}, "no word is masked"),
    ],
)
def test_without_its_conditions_there_is_no_amplification(change, reason):
    certificate = dataclasses.replace(PAPER, **change)
    assert certificate.word_epsilon == certificate.record_epsilon
    words = next(f for f in certificate.explain() if f.name == "word_epsilon")
    assert words.formula == "record_epsilon"
    assert re.search(reason, words.condition)


def test_more_words_cost_more_up_to_the_record():
    prices = [BALL.words_epsilon(k) for k in (1, 2, 5, 20, 10**30)]
    assert prices == sorted(prices)
    assert prices[0] == pytest.approx(math.log(0.5 + 0.5 * math.exp(4)))
    assert prices[1] == pytest.approx(math.log(0.25 + 0.75 * math.exp(4)))
    assert prices[-1] == BALL.record_epsilon
    assert PAPER.words_epsilon(2) == PAPER.record_epsilon


def test_releases_add_up():
    cost = BALL.compose(3)
    assert cost.record_epsilon == 12
    assert cost.word_epsilon == pytest.approx(3 * BALL.word_epsilon)
    assert cost.delta == 0
    assert BALL.event(3) == PureDP(4.0, 3)
    assert epsilon(BALL.event(3), 1e-9) <= 12


def test_cut_off_tails_are_a_delta_and_no_pure_event():
    cut = dataclasses.replace(BALL, tail_delta=1e-12)
    assert cut.delta == 1e-12
    assert cut.event(2) == ApproxDP(4.0, 1e-12, 2)
    assert cut.compose(2).delta == pytest.approx(2e-12)
    assert epsilon(cut.event(), 1e-9) <= 4
    assert epsilon(cut.event(), 1e-12 / 2) == math.inf
    assert "epsilon 4 at delta 1e-12 per release" in str(cut)


def test_a_delta_that_reaches_1_is_no_guarantee():
    many = dataclasses.replace(BALL, tail_delta=1e-4).compose(10_000)
    assert (many.record_epsilon, many.word_epsilon, many.delta) == (
        math.inf,
        math.inf,
        1,
    )


@hypothesis.given(
    st.floats(1e-6, 1e6),
    st.integers(1, 4096),
    st.sampled_from(["unit_box", "l1_ball", "code"]),
    st.floats(1e-3, 1e3),
    st.floats(0, 0.9),
)
def test_the_inverse_never_overshoots_and_wastes_nothing(
    budget, dimension, domain, radius, share
):
    slack = share * budget
    certificate = LaplaceCertificate.from_epsilon(
        budget,
        dimension + 1,
        domain,
        radius=radius if domain == "l1_ball" else None,
        slack=slack,
    )
    assert certificate.record_epsilon <= budget
    assert certificate.record_epsilon >= budget * (1 - 1e-12)
    if domain != "code":
        smaller = math.nextafter(certificate.scale, 0)
        louder = dataclasses.replace(certificate, scale=smaller)
        assert louder.record_epsilon > budget


def test_the_inverse_refuses_what_the_slack_uses_up():
    for budget in (0.1, 0.05):
        with pytest.raises(InputError, match="slack"):
            LaplaceCertificate.from_epsilon(budget, 4, radius=1.0, slack=0.1)


def test_every_figure_has_its_formula_source_and_condition():
    for certificate in (PAPER, BALL, LaplaceCertificate(2, None, "code", None, 1.0)):
        figures = {figure.name: figure for figure in certificate.explain()}
        assert {"record_epsilon", "word_epsilon", "delta"} <= figures.keys()
        assert ("claimed_epsilon" in figures) == (certificate is PAPER)
        for name, figure in figures.items():
            assert figure.value == getattr(certificate, name)
            assert figure.formula
            assert figure.source
            assert figure.condition
    assert "a claim, not a guarantee" in PAPER.explain()[0].condition


def test_claim_and_certificate_stand_side_by_side():
    claim, certified = str(PAPER).splitlines()
    assert claim.startswith("Claimed:   epsilon 0.6202 per release")
    assert "NOT what is certified" in claim
    assert certified.startswith("Certified: epsilon 384 per release, for any two texts")
    assert "383.6" in certified


def test_nothing_is_said_twice_or_of_a_claim_that_nobody_made():
    assert "; 3.326 for texts of equal length that differ in one word" in str(BALL)
    plain = dataclasses.replace(BALL, mask_rate=0.0, mask_mode=None)
    assert str(plain) == "Certified: epsilon 4 per release, for any two texts"


@pytest.mark.parametrize(
    "certificate", [PAPER, BALL, LaplaceCertificate(3, None, "code", code_epsilon=1)]
)
def test_json_rebuilds_the_certificate_and_recomputes_its_figures(certificate):
    value = json.loads(json.dumps(certificate.to_json(), allow_nan=False))
    again = LaplaceCertificate.from_json(value)
    assert again == certificate
    assert again.to_json() == value
    value["figures"] = []
    assert LaplaceCertificate.from_json(value).to_json() == certificate.to_json()


@pytest.mark.parametrize(
    "value",
    [
        None, [], {}, {"schema_version": 2}, {"schema_version": 1},
        {"schema_version": 1, "parameters": {"dimension": 1}},
        {"schema_version": 1, "parameters": {"dimension": 1, "scale": 1, "seed": 1}},
        {"schema_version": 1, "parameters": {"dimension": 1, "scale": 0}},
    ],
)  # fmt: skip
def test_json_that_is_no_certificate_is_refused(value):
    with pytest.raises(InputError):
        LaplaceCertificate.from_json(value)


NO_POSITIVE_NUMBER = [0, -1.0, math.nan, math.inf, "1", True]


@pytest.mark.parametrize("value", NO_POSITIVE_NUMBER)
@pytest.mark.parametrize(
    "make",
    [
        lambda x: LaplaceCertificate(2, x),
        lambda x: LaplaceCertificate(2, 1.0, "l1_ball", radius=x),
        lambda x: LaplaceCertificate(2, None, "code", code_epsilon=x),
        lambda x: LaplaceCertificate(2, 1.0, nominal_epsilon=x),
        lambda x: LaplaceCertificate.nominal(x, 2),
        lambda x: LaplaceCertificate.from_epsilon(x, 2, radius=1.0),
        lambda x: LaplaceCertificate.from_epsilon(1.0, 2, radius=x),
    ],
)
def test_what_has_to_be_positive_is_refused_otherwise(make, value):
    with pytest.raises(InputError):
        make(value)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"dimension": 0}, "dimension"),
        ({"dimension": 2.0}, "dimension"),
        ({"dimension": None}, "dimension"),
        ({"scale": None}, "scale"),
        ({"scale": 1e-320, "nominal_epsilon": None}, "scale"),
        ({"domain": "l2_ball"}, "domain"),
        ({"domain": "l1_ball"}, "radius"),
        ({"domain": "code", "nominal_epsilon": None}, "scale"),
        ({"radius": 1.0}, "radius"),
        ({"code_epsilon": 1.0}, "code_epsilon"),
        ({"mask_rate": 1.0}, "mask_rate"),
        ({"mask_rate": -0.1}, "mask_rate"),
        ({"mask_rate": math.nan}, "mask_rate"),
        ({"mask_mode": None}, "mask_mode"),
        ({"mask_mode": "poisson"}, "mask_mode"),
        ({"mask_unit": "letters"}, "mask_unit"),
        ({"truncation": "letters"}, "truncation"),
        ({"lengths": (9, 3)}, "lengths"),
        ({"lengths": (0, 3)}, "words"),
        ({"nominal_epsilon": 2.0}, "nominal_epsilon"),
        ({"slack": -1e-9}, "slack"),
        ({"slack": math.nan}, "slack"),
        ({"slack": None}, "slack"),
        ({"tail_delta": 1.0}, "tail_delta"),
        ({"tail_delta": math.nan}, "tail_delta"),
    ],
)
def test_what_contradicts_itself_or_is_out_of_range_is_refused(change, name):
    with pytest.raises(InputError, match=name):
        dataclasses.replace(PAPER, **change)


def test_a_code_takes_two_symbols_at_least():
    with pytest.raises(InputError, match="dimension"):
        LaplaceCertificate(1, None, "code", code_epsilon=1.0)


@pytest.mark.parametrize("count", [0, -1, 1.0, math.nan, True, None])
def test_counts_that_are_no_whole_numbers_from_1_are_refused(count):
    for call in (BALL.compose, BALL.event, BALL.words_epsilon):
        with pytest.raises(InputError):
            call(count)


def test_numpy_numbers_become_plain_ones():
    np = pytest.importorskip("numpy")
    certificate = LaplaceCertificate(
        np.int64(2), np.float64(1.0), mask_rate=np.float64(0.5), mask_mode="exact",
        lengths=(np.int64(2), np.int64(9)),
    )  # fmt: skip
    assert json.dumps(certificate.to_json())
