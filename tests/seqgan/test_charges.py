"""A statement repeats every charge of a ledger, whatever was charged twice."""

import math

import pytest

from tfpriv.accounting import (
    Gaussian,
    GaussianThreshold,
    NonPrivate,
    PrivacyLedger,
    PrivacyStatement,
)
from tfpriv.seqgan.charges import private_reads

NOTES = {"labels": "which", "tokens": "what", "steps": "how"}


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "ledger", limit_epsilon=math.inf, delta=1e-5)


def test_equal_charges_become_one_read_with_a_count(ledger):
    for _ in range(3):
        ledger.charge("steps", Gaussian(9.0), "ham")
    ledger.charge("steps", Gaussian(9.0), "spam")
    ledger.charge("steps", Gaussian(8.0, 2), "ham")
    reads = private_reads(ledger, NOTES)
    assert [(read.event, read.part) for read in reads] == [
        (Gaussian(9.0, 3), "ham"),
        (Gaussian(9.0, 1), "spam"),
        (Gaussian(8.0, 2), "ham"),
    ]
    assert {read.note for read in reads} == {"how"}


def test_the_statement_costs_what_the_ledger_says(ledger):
    for event in (GaussianThreshold(9.0, 1e-7), Gaussian(7.0), Gaussian(7.0)):
        ledger.charge("tokens", event)
    # A selection that was lost in a crash and made again: its delta counts twice.
    ledger.charge("labels", GaussianThreshold(5.0, 3e-6))
    ledger.charge("labels", GaussianThreshold(5.0, 3e-6))
    for part, steps in (("ham", 4), ("spam", 9)):
        for _ in range(steps):
            ledger.charge("steps", Gaussian(20.0), part)
    statement = PrivacyStatement(private_reads(ledger, NOTES), delta=1e-5)
    assert statement.epsilon == pytest.approx(ledger.epsilon(), rel=1e-12)


def test_what_has_no_guarantee_stays_without_one(ledger):
    ledger.charge("tokens", NonPrivate())
    (read,) = private_reads(ledger, NOTES)
    assert read.event == NonPrivate()
