from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.attacks import AuditResult, score_membership
from tfpriv.attacks.membership_score import epsilon_ceiling


def scored(name: str, shift: float, *, tried: int = 2, records: int = 300, **options):
    rng = np.random.default_rng(0)
    members, others = rng.normal(shift, 1, records), rng.normal(0, 1, records)
    return score_membership(name, members, others, attacks_tried=tried, **options)


NOTHING = (scored("blind", 0), scored("deaf", 0.01))
MUCH = (scored("blind", 0), scored("sharp", 9))


def test_the_worst_is_the_attack_that_shows_most():
    assert AuditResult(MUCH).worst.name == "sharp"
    assert AuditResult(MUCH[::-1]).worst.name == "sharp"
    assert AuditResult(NOTHING).worst.name == "deaf"


def test_nothing_found_is_never_called_safe():
    words = AuditResult(NOTHING, claimed_epsilon=8.0).to_markdown()
    for word in ("safe", "secure", "private", "protect", "proven", "anonym"):
        assert word not in words.casefold()
    assert "No evidence of leaking" in words
    assert "no proof that nothing leaks" in words
    assert "No epsilon is refuted" in words


def test_what_is_found_is_said_beside_the_claim():
    found = AuditResult(MUCH, claimed_epsilon=1.0)
    assert found.refuted
    assert "REFUTES the claimed epsilon of 1" in found.verdict()
    assert "ARE told from non-members, beyond chance: sharp." in found.verdict()
    assert "No evidence" not in found.verdict()


def test_a_claim_out_of_reach_is_said_to_be():
    ceiling = AuditResult(MUCH).ceiling
    assert ceiling == pytest.approx(epsilon_ceiling(300, 300, attacks_tried=2))
    beyond = AuditResult(MUCH, claimed_epsilon=ceiling + 1)
    assert not beyond.refuted
    assert "could not have refuted the claimed epsilon" in beyond.verdict()
    within = AuditResult(NOTHING, claimed_epsilon=ceiling - 0.1)
    assert "That does not refute the claimed epsilon" in within.verdict()


def test_bounds_are_of_members_that_are_one_record():
    """Copies of one record are told more easily than a claim about one says."""
    draw = np.random.default_rng(0)
    single = np.arange(300) < 200
    members = draw.normal(np.where(single, 0, 9), 1)
    others = draw.normal(size=300)
    whole, alone = (
        AuditResult((score_membership("a", members, others, bounded=b),), 0.5)
        for b in (None, single)
    )
    assert whole.refuted
    assert not alone.refuted
    assert alone.worst.epsilon_lower == 0
    assert alone.worst.auc == whole.worst.auc  # who is at risk is shown all the same
    assert alone.succeeds
    assert alone.ceiling == pytest.approx(epsilon_ceiling(200, 300))
    assert "100 of the members stand for several equal records" in alone.setting()
    assert "equal records" not in whole.setting()
    again = AuditResult.from_json(json.loads(json.dumps(alone.to_json())))
    assert again.setting() == alone.setting()
    for bounded in (np.zeros(300, bool), np.arange(300) < 1):
        none = score_membership("a", members, others, bounded=bounded)
        assert none.epsilon_lower == AuditResult((none,)).ceiling == 0
    with pytest.raises(InputError, match="300 of True or False"):
        score_membership("a", members, others, bounded=single[1:])


def test_a_refutation_is_open_where_the_groups_differ():
    found = AuditResult(MUCH, claimed_epsilon=1.0, control=scored("control", 9))
    assert "unless that difference explains it" in found.verdict()


@pytest.mark.parametrize("claimed", [None, math.inf])
def test_without_a_claim_there_is_none_to_refute(claimed):
    found = AuditResult(MUCH, claimed_epsilon=claimed)
    assert not found.refuted
    assert "No epsilon is claimed" in found.verdict()


@pytest.mark.parametrize("control", [None, scored("control", -1)])
def test_json_holds_all_of_it_and_reads_back(control):
    found = AuditResult(MUCH, claimed_epsilon=8.0, control=control)
    assert found.groups_differ is (control is not None)
    value = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert [attack["name"] for attack in value["attacks"]] == ["blind", "sharp"]
    assert value["claimed"] == {"epsilon": 8.0, "delta": 1e-5}
    assert value["attacks_tried"] == 2
    assert value["confidence"] == 0.95
    assert value["worst"] == "sharp"
    assert value["ceiling"] == found.ceiling
    again = AuditResult.from_json(value)
    assert again.to_json() == found.to_json()
    assert again.to_markdown() == found.to_markdown()
    endless = AuditResult(MUCH, claimed_epsilon=math.inf).to_json()
    endless["claimed"]["epsilon"] = None  # what JSON makes of infinity
    assert AuditResult.from_json(endless).claimed_epsilon == math.inf


def test_the_table_has_every_attack_and_its_sizes():
    text = AuditResult(MUCH).to_markdown()
    for score in MUCH:
        for value in (score.auc, score.advantage, *score.tpr.values()):
            assert str(value) in text
    assert "300 members and 300 non-members" in text
    assert "all of 2 attacks together" in text


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ((), "at least one"),
        ((scored("a", 0), scored("b", 0, confidence=0.9)), "one confidence"),
        ((scored("a", 0), scored("b", 0, delta=0)), "one delta"),
        ((scored("a", 0), scored("b", 0, tried=3)), "one attacks_tried"),
        ((scored("a", 0, tried=1), scored("b", 0, tried=1)), "attacks_tried=1"),
    ],
)
def test_scores_that_do_not_belong_together_are_refused(scores, words):
    with pytest.raises(InputError, match=words):
        AuditResult(scores)
