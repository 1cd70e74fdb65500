import json
import math
import stat

import pytest

from tfpriv._errors import InputError
from tfpriv.accounting import (
    LaplaceCertificate,
    NonPrivate,
    PureDP,
    RepresentationStatement,
)

RANDOMNESS = "the noise comes from a cryptographic generator"
PAPER = LaplaceCertificate.nominal(
    1.0, 384, mask_rate=0.5, mask_mode="exact", lengths=(2, 32)
)
BALL = LaplaceCertificate.from_epsilon(4.0, 16, radius=1.0)


def _statement(certificate=BALL, private=True, releases=1, method="RMAT", **facts):
    return RepresentationStatement(
        certificate,
        method=method,
        encoder_trained_on_private_text=private,
        randomness=RANDOMNESS if certificate else "",
        releases=releases,
        **facts,
    )


def test_claim_and_certificate_stand_side_by_side():
    text = str(_statement(PAPER))
    assert "Claimed:   epsilon 0.6202" in text
    assert "Certified: epsilon 384 " in text
    assert "NOT what is certified" in text
    value = _statement(PAPER).to_json()
    assert value["claimed_epsilon"] == PAPER.claimed_epsilon
    assert value["epsilon"] == 384
    assert value["word_epsilon"] == PAPER.word_epsilon


def test_what_is_not_covered_follows_from_the_facts():
    private, public = _statement(private=True), _statement(private=False)
    assert any("training data" in line for line in private.not_covered)
    assert not any("training data" in line for line in public.not_covered)
    for word in ("labels", "window", "further releases"):
        assert any(word in line for line in public.not_covered)
    assert RANDOMNESS in public.assumptions
    assert any("word level" in line for line in _statement(PAPER).assumptions)
    assert not any("word level" in line for line in public.assumptions)


def test_what_shows_of_the_training_records_is_told_apart_from_what_is_declared():
    for certificate in (BALL, None):
        read = _statement(certificate, training_facts=["the number of labels"])
        assert "the number of labels" in read.not_covered
        assert "Declared public" not in str(read)
    declared = _statement(public=["the number of labels"])
    assert "the number of labels" not in declared.not_covered
    assert "Declared public:\n  - the number of labels" in str(declared)


def test_statements_of_before_facts_of_training_were_told_are_read():
    value = _statement().to_json()
    del value["training_facts"], value["public"]
    assert RepresentationStatement.from_json(value).to_json() == _statement().to_json()


def test_printed_figures_are_never_below_the_true_ones():
    """Rounded to the nearest, 4.00004 would read 4."""
    loose = LaplaceCertificate(16, 2 / 4.00004, "l1_ball", radius=1.0)
    assert loose.record_epsilon > 4
    assert "epsilon 4.001 " in str(_statement(loose))
    cut = LaplaceCertificate.from_epsilon(4.0, 16, radius=1.0, tail_delta=1.01e-20)
    assert "at delta 1.1e-20" in str(_statement(cut))
    assert "epsilon 12.01 " in str(_statement(loose, releases=3))


def test_without_noise_there_is_no_guarantee_and_it_says_so():
    statement = _statement(None, method="ADS")
    assert statement.epsilon == statement.word_epsilon == math.inf
    assert statement.covers == statement.assumptions == []
    assert statement.event() == NonPrivate()
    assert "NO privacy guarantee (epsilon is infinite)" in str(statement)
    value = json.loads(json.dumps(statement.to_json(), allow_nan=False))
    assert value["epsilon"] is value["certificate"] is value["word_epsilon"] is None
    assert value["epsilon_finite"] is False


def test_releases_of_one_text_add_up():
    statement = _statement(releases=5)
    assert statement.epsilon == 20
    assert statement.event() == PureDP(4.0, 5)
    assert "epsilon 20 for 5 releases of one text" in str(statement)
    assert "Together" not in str(_statement())


def test_tails_that_take_delta_to_1_leave_no_guarantee():
    cut = LaplaceCertificate.from_epsilon(4.0, 16, radius=1.0, tail_delta=1e-2)
    assert _statement(cut).epsilon == 4
    assert _statement(cut).delta == 1e-2
    assert "at delta 0.01 per release" in str(_statement(cut))
    many = _statement(cut, releases=100)
    assert many.epsilon == math.inf
    assert many.covers == []
    assert "delta reaches 1" in str(many)


@pytest.mark.parametrize(
    "statement",
    [
        _statement(PAPER),
        _statement(releases=3),
        _statement(None, method="ADS"),
        _statement(training_facts=["the number of labels"], public=["label names"]),
    ],
)
def test_json_rebuilds_the_statement_and_recomputes_its_figures(statement):
    value = json.loads(json.dumps(statement.to_json(), allow_nan=False))
    again = RepresentationStatement.from_json(value)
    assert again.to_json() == value
    assert str(again) == str(statement)
    value |= {"epsilon": 0.1, "claimed_epsilon": 0.1, "covers": ["all"]}
    assert RepresentationStatement.from_json(value).to_json() == statement.to_json()


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"kind": "synthetic"},
        {"certificate": {}},
        {"method": ...},
        {"method": 7},
        {"releases": 0},
        {"encoder_trained_on_private_text": "no"},
        {"randomness": ""},
        {"training_facts": "the number of labels"},
        {"public": [1]},
    ],
)
def test_json_that_is_no_statement_is_refused(change):
    value = _statement().to_json() | change
    value = {key: part for key, part in value.items() if part is not ...}
    with pytest.raises(InputError):
        RepresentationStatement.from_json(value)


def test_the_file_is_public_and_names_the_versions(tmp_path):
    path = tmp_path / "privacy.json"
    _statement().save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    value = json.loads(path.read_text())
    assert value == _statement().to_json()
    assert value["versions"]["dp-accounting"] == "0.4.3"
    assert (value["schema_version"], value["kind"]) == (1, "representation")


@pytest.mark.parametrize(
    "change",
    [
        {"certificate": 4.0},
        {"method": ""},
        {"method": None},
        {"encoder_trained_on_private_text": None},
        {"encoder_trained_on_private_text": 1},
        {"randomness": ""},
        {"randomness": None},
        {"releases": 0},
        {"releases": 1.5},
        {"training_facts": "one text"},
        {"training_facts": [None]},
        {"public": None},
    ],
)
def test_facts_of_the_wrong_kind_are_refused(change):
    facts = {
        "certificate": BALL,
        "method": "RMAT",
        "encoder_trained_on_private_text": True,
        "randomness": RANDOMNESS,
    } | change
    with pytest.raises(InputError):
        RepresentationStatement(facts.pop("certificate"), **facts)
