import json
import math
import stat

import pytest

from tfpriv._errors import InputError
from tfpriv.accounting import (
    ApproxDP,
    Compose,
    DPSGDPlan,
    Gaussian,
    GaussianThreshold,
    NonPrivate,
    Parallel,
    PoissonGaussian,
    PrivacyStatement,
    PrivateRead,
    PureDP,
    Repeat,
    epsilon,
)
from tfpriv.accounting.statement import describe

NAMES = PrivateRead("label names", GaussianThreshold(10.0, 1e-6))
COUNTS = [PrivateRead("token counts", Gaussian(4.0), part=p) for p in ("spam", "ham")]
STEPS = PrivateRead("discriminator", PoissonGaussian(0.1, 3.0, 40), part="spam")
PRETRAINING = PrivateRead(
    "MLE pre-training", NonPrivate(), "the generator is fitted to the private texts"
)


def _paper():
    discriminator = DPSGDPlan(1956, 64, 727, 0.001, sampling="none").event()
    return PrivacyStatement(
        [PRETRAINING, PrivateRead("discriminator", discriminator)],
        delta=1e-5,
        adjacency="zero-out-one",
    )


def test_epsilon_is_that_of_everything_that_went_into_the_release():
    statement = PrivacyStatement([NAMES, *COUNTS, STEPS], delta=1e-5)
    whole = Compose(
        (
            NAMES.event,
            Parallel((Compose((Gaussian(4.0), STEPS.event)), Gaussian(4.0))),
        )
    )
    assert statement.epsilon == pytest.approx(epsilon(whole, 1e-5), rel=1e-12)
    assert len(statement.covers) == 4
    assert statement.to_json()["epsilon"] == statement.epsilon
    assert statement.to_json()["epsilon_finite"] is True


def test_one_read_without_a_guarantee_voids_the_whole():
    statement = PrivacyStatement([NAMES, *COUNTS, STEPS, PRETRAINING], delta=1e-5)
    assert statement.epsilon == math.inf
    assert statement.covers == []
    assert any("MLE pre-training" in line for line in statement.not_covered)
    value = json.loads(json.dumps(statement.to_json(), allow_nan=False))
    assert value["epsilon"] is None
    assert value["epsilon_finite"] is False


def test_a_read_without_a_guarantee_is_noticed_at_every_depth():
    hidden = Compose((Gaussian(9.0), Parallel((Repeat(NonPrivate(), 2),))))
    statement = PrivacyStatement([PrivateRead("encoder", hidden)], delta=1e-5)
    assert statement.epsilon == math.inf
    assert any("encoder" in line for line in statement.not_covered)


def test_internal_work_is_listed_and_voids_nothing():
    evaluation = PrivateRead("evaluation on S3", NonPrivate(), released=False)
    statement = PrivacyStatement([NAMES, evaluation], delta=1e-5)
    assert statement.epsilon == PrivacyStatement([NAMES], delta=1e-5).epsilon
    assert any("evaluation on S3: internal" in s for s in statement.not_covered)
    assert all("evaluation" not in line for line in statement.covers)


def test_the_published_setting_is_stated_as_it_is():
    text = str(_paper())
    assert "NO privacy guarantee" in text
    assert "MLE pre-training (the generator is fitted to the private texts)" in text
    assert "about 4e8 (363,630,220)" in text


def test_nothing_read_costs_nothing():
    statement = PrivacyStatement([], delta=1e-5)
    assert statement.epsilon == 0
    assert "No private record was read" in str(statement)


def test_a_selection_that_uses_up_delta_leaves_no_guarantee():
    reads = [PrivateRead("names", GaussianThreshold(10.0, 1e-4))]
    statement = PrivacyStatement(reads, delta=1e-5)
    assert statement.epsilon == math.inf
    assert "use up" in str(statement)


@pytest.mark.parametrize("reads", [[NAMES, *COUNTS, STEPS], [PRETRAINING], []])
def test_json_rebuilds_the_statement_and_recomputes_epsilon(reads):
    statement = PrivacyStatement(
        reads,
        delta=1e-5,
        unit="author",
        public=["wordfreq"],
        assumptions=["classes are disjoint"],
    )
    value = json.loads(json.dumps(statement.to_json()))
    again = PrivacyStatement.from_json(value)
    assert again.to_json() == value
    assert str(again) == str(statement)
    value["epsilon"] = 0.1
    assert PrivacyStatement.from_json(value).epsilon == statement.epsilon


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"delta": 2},
        {"accountant": "guess"},
        {"events": [{"name": "x"}]},
        {"events": None},
        {"unit": ...},
        {"unit": None},
        {"adjacency": 5},
    ],
)
def test_json_that_is_no_statement_is_refused(change):
    value = PrivacyStatement([NAMES], delta=1e-5).to_json() | change
    value = {key: part for key, part in value.items() if part is not ...}
    with pytest.raises(InputError):
        PrivacyStatement.from_json(value)


def test_the_file_is_public_and_names_the_versions(tmp_path):
    path = tmp_path / "privacy.json"
    PrivacyStatement([NAMES], delta=1e-5).write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    value = json.loads(path.read_text())
    assert value["versions"]["dp-accounting"] == "0.4.3"
    assert value["schema_version"] == 1
    assert {"unit", "adjacency", "delta", "accountant", "events"} <= value.keys()


def test_the_file_holds_no_number_of_records():
    plan = DPSGDPlan(1957, 63, 211, 1.0)
    for sampling in ("poisson", "once_per_epoch", "none"):
        event = DPSGDPlan(1957, 63, 211, 1.0, sampling=sampling).event()
        text = json.dumps(
            PrivacyStatement([PrivateRead("x", event)], delta=1e-5).to_json()
        )
        assert str(plan.num_examples) not in text
        assert '"num_examples"' not in text
        assert '"batch_size"' not in text


def test_a_large_epsilon_is_called_what_it_is():
    reads = [PrivateRead("discriminator", Gaussian(0.5, 5))]
    assert "protects next to nobody" in str(PrivacyStatement(reads, delta=1e-5))
    assert "protects next to nobody" not in str(PrivacyStatement([NAMES], delta=1e-5))


def test_every_event_can_be_described():
    for event in (
        NAMES.event,
        STEPS.event,
        PureDP(1.0, 3),
        ApproxDP(1.0, 1e-6),
        NonPrivate(),
        Compose(()),
    ):
        assert describe(Compose((Parallel((event, Gaussian(1.0))), event)))


@pytest.mark.parametrize("delta", [0, 1, 2, math.nan, "1e-5"])
def test_a_bad_delta_is_refused(delta):
    with pytest.raises(InputError, match="delta"):
        PrivacyStatement([NAMES], delta=delta)


@pytest.mark.parametrize("reads", [[Gaussian(1.0)], [None], ["counts"]])
def test_what_is_no_read_is_refused(reads):
    with pytest.raises(InputError, match="PrivateRead"):
        PrivacyStatement(reads, delta=1e-5)
