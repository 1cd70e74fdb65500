"""What reads records during a whole release has paid for it before.

A run of the guaranteed method, killed and resumed, is watched: its reads, its noise
and its charges must fit each other and the plan. Its twins must be refused.
"""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest

from tests.seqgan.small_release import (
    EPSILON,
    Killed,
    fitted,
    small_world,
)
from tfpriv.accounting import Gaussian, GaussianThreshold, PrivacyLedger, epsilon
from tfpriv.accounting.events import combine, flatten
from tfpriv.dp_training import DPTrainer
from tfpriv.mechanisms import GaussianCounts
from tfpriv.seqgan import guaranteed
from tfpriv.seqgan.class_gan import ClassGAN
from tfpriv.seqgan.guaranteed import GuaranteedMethod

COUNTERS = {
    "tokens": "token_presence",
    "lengths": "length_histogram",
    "pairs": "pair_presence",
}
STEPS = 2


@pytest.fixture(autouse=True, scope="module")
def world():
    with small_world():
        yield


@contextlib.contextmanager
def watched(kill_in_step=None):
    """Yields the list of (kind, name, part, event) of all that happens in it."""
    journal, measured, steps = [], [], []

    def charge(ledger, name, event, part=None):
        cost = PAY(ledger, name, event, part)
        journal.append(("charge", name, part, event))
        return cost

    def counting(name, count):
        def wrapper(*args):
            journal.append(("read", name, None, None))
            measured.append(count(*args))
            return measured[-1]

        return wrapper

    def select(counts, noise_multiplier, delta):
        journal.append(("read", "label names", None, None))
        event = GaussianThreshold(noise_multiplier, delta)
        journal.append(("noise", "label names", None, event))
        return SELECT(counts, noise_multiplier, delta)

    def release(mechanism, counts):
        # Only what a counter returned is known to have sensitivity 1.
        bounded = any(counts is each for each in measured)
        assert mechanism.l2_sensitivity == 1
        event = Gaussian(mechanism.noise_multiplier)
        journal.append(("noise", "counts" if bounded else "unbounded", None, event))
        return RELEASE(mechanism, counts)

    def sums(trainer, *args):
        optimizer = trainer.optimizer
        assert optimizer.l2_norm_clip == trainer.engine.l2_norm_clip
        journal.append(("read", trainer.name, trainer.part, None))
        event = Gaussian(optimizer.noise_multiplier)
        journal.append(("noise", trainer.name, trainer.part, event))
        steps.append(1)
        if len(steps) == kill_in_step:
            raise Killed
        return SUMS(trainer, *args)

    with pytest.MonkeyPatch.context() as patch:
        for name, function in COUNTERS.items():
            wrapper = counting(name, getattr(guaranteed, function))
            patch.setattr(guaranteed, function, wrapper)
        patch.setattr(guaranteed, "select_partitions", select)
        patch.setattr(PrivacyLedger, "charge", charge)
        patch.setattr(GaussianCounts, "release", release)
        patch.setattr(DPTrainer, "_private_sums", sums)
        yield journal


PAY, RELEASE = PrivacyLedger.charge, GaussianCounts.release
SELECT, SUMS = guaranteed.select_partitions, DPTrainer._private_sums


def check_reads_were_paid_for_before(journal):
    paid = Counter()
    for kind, name, part, _ in journal:
        if kind == "charge":
            paid[name, part] += 1
        elif kind == "read":
            paid[name, part] -= 1
            assert paid[name, part] >= 0, f"{name} was read for nothing"


def check_noise_is_what_was_paid_for(journal):
    paid = None
    for kind, name, _, event in journal:
        if kind == "charge":
            assert paid is None, "paid for twice"
            paid = event
        elif kind == "noise":
            assert event == paid
            assert name != "unbounded"
            paid = None


def check_it_all_costs_at_most_what_was_asked_for(journal):
    charges = [entry for entry in journal if entry[0] == "charge"]
    total = epsilon(combine((event, part) for *_, part, event in charges), 1e-5)
    assert 0.95 * EPSILON < total <= EPSILON


CHECKS = [
    check_reads_were_paid_for_before,
    check_noise_is_what_was_paid_for,
    check_it_all_costs_at_most_what_was_asked_for,
]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    """The journal of a run that was killed in the last step of its first class."""
    folder = tmp_path_factory.mktemp("release")
    with watched(kill_in_step=STEPS) as journal, pytest.raises(Killed):
        fitted(folder, steps=STEPS, declared=None)
    with watched() as more:
        method, ledger = fitted(folder, steps=STEPS, declared=None)
    return method, ledger, journal, more


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_release(release, check):
    check([*release[2], *release[3]])


def test_the_charges_are_the_plan_though_a_step_was_lost(release):
    method, _, journal, more = release
    plan = method.budget.events()
    spent = {}
    for kind, name, part, event in [*journal, *more]:
        if kind == "charge":
            spent.setdefault((name, part), []).append((event, None))
    parts = {
        name: combine(events) for (name, part), events in spent.items() if part is None
    }
    steps = plan.pop("discriminator")
    assert parts == plan
    for label in ("ham", "spam"):
        assert flatten(combine(spent["discriminator", label])) == flatten(steps)


def test_what_was_measured_before_the_kill_is_not_measured_again(release):
    assert {name for _, name, *_ in release[3]} <= {"discriminator"}


def test_the_statement_counts_every_charge(release):
    method, ledger, journal, more = release
    charged = [(e, part) for kind, _, part, e in [*journal, *more] if kind == "charge"]
    stated = combine((read.event, read.part) for read in method.reads(ledger))
    assert epsilon(stated, 1e-5) == epsilon(combine(charged), 1e-5) == ledger.epsilon()


def test_a_run_that_lost_steps_still_writes(release):
    method = release[0]
    for number in (0, 1):
        method.classes[number].chosen = "adversarial"
        assert len(method.sample(number, 7, seed=0)) == 7


class Ledger:
    """Stands before a ledger and gets one thing wrong."""

    def __init__(self, ledger, change):
        self.ledger, self.change = ledger, change

    def charge(self, name, event, part=None):
        event = self.change(name, event)
        return 0.0 if event is None else self.ledger.charge(name, event, part)

    def __getattr__(self, name):
        return getattr(self.ledger, name)


class CountsFirst(GuaranteedMethod):
    def _counts(self, rows, classes, ledger, store):
        guaranteed.length_histogram(rows, classes, len(self.labels))
        return super()._counts(rows, classes, ledger, store)


class ForgetsToPay(GuaranteedMethod):
    def _counts(self, rows, classes, ledger, store):
        free = Ledger(ledger, lambda name, e: e if name != "lengths" else None)
        return super()._counts(rows, classes, free, store)


class PaysForTwiceTheNoise(GuaranteedMethod):
    def _counts(self, rows, classes, ledger, store):
        cheap = Ledger(ledger, lambda _, e: Gaussian(2 * e.noise_multiplier))
        return super()._counts(rows, classes, cheap, store)


class ReleasesTwice(GuaranteedMethod):
    def _counts(self, rows, classes, ledger, store):
        counts = super()._counts(rows, classes, ledger, store)
        GaussianCounts(1.0, counts.token_noise).release(counts.tokens)
        return counts


class WeighsCounts(GuaranteedMethod):
    def _counts(self, rows, classes, ledger, store):
        count = guaranteed.pair_presence
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(guaranteed, "pair_presence", lambda *args: 2 * count(*args))
            return super()._counts(rows, classes, ledger, store)


class PlansTooMuch(GuaranteedMethod):
    def _counts(self, rows, classes, ledger, store):
        counts = super()._counts(rows, classes, ledger, store)
        # Another run's ledger takes what this one's would refuse.
        other = store.folder / "other.jsonl"
        multiplier = counts.token_noise
        PrivacyLedger(other, limit_epsilon=EPSILON, delta=1e-5).charge(
            "more", Gaussian(multiplier)
        )
        GaussianCounts(1.0, multiplier).release(counts.tokens)
        return counts


@pytest.mark.parametrize(
    ("twin", "check"),
    [
        (CountsFirst, check_reads_were_paid_for_before),
        (ForgetsToPay, check_reads_were_paid_for_before),
        (PaysForTwiceTheNoise, check_noise_is_what_was_paid_for),
        (ReleasesTwice, check_noise_is_what_was_paid_for),
        (WeighsCounts, check_noise_is_what_was_paid_for),
        (PlansTooMuch, check_it_all_costs_at_most_what_was_asked_for),
    ],
)
def test_a_broken_twin_is_refused(twin, check, tmp_path):
    with watched() as journal:
        fitted(tmp_path, method=twin)
    with pytest.raises(AssertionError):
        check(journal)


def test_a_discriminator_that_does_not_pay_is_refused(tmp_path, monkeypatch):
    train = ClassGAN.train
    monkeypatch.setattr(
        ClassGAN,
        "train",
        lambda *args, **named: train(*args, **{**named, "ledger": None}),
    )
    with watched() as journal:
        fitted(tmp_path, steps=1, rounds=1, declared=("ham",))
    with pytest.raises(AssertionError, match="discriminator was read for nothing"):
        check_reads_were_paid_for_before(journal)
