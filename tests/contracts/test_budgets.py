"""What the budget of a data set must satisfy, and broken twins that must not pass."""

from __future__ import annotations

import dataclasses
import math
import shutil

import hypothesis
import pytest
from hypothesis import strategies as st
from scipy import stats

from tfpriv._errors import BudgetExceeded, InputError
from tfpriv.accounting import (
    ApproxDP,
    Compose,
    DataBudget,
    Gaussian,
    GroupBound,
    NonPrivate,
    Parallel,
    PoissonGaussian,
    PrivacyLedger,
    PureDP,
    Repeat,
    calibrate_scale,
    combine,
    epsilon,
    group_epsilon,
)
from tfpriv.accounting import _coverage as coverage
from tfpriv.accounting._group_charges import group_totals

DELTA = 1e-5
SIGMA = calibrate_scale(Gaussian, 3.0, DELTA)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder, and no budget anywhere."""
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(tmp_path / "state"))
    return tmp_path


def _make(kind, place, limit=8.0):
    data = place / "data.csv"
    data.write_text("text\na\n")
    DataBudget.create(data, epsilon=limit, delta=DELTA)
    return kind.find(data), data


def _run(place, name="run"):
    (place / name).mkdir(exist_ok=True)
    return PrivacyLedger(
        place / name / "ledger.jsonl", limit_epsilon=math.inf, delta=DELTA
    )


def check_the_total_is_never_below_the_truth(kind, place):
    budget, _ = _make(kind, place, 20.0)
    totals = [budget.charge(Gaussian(SIGMA), "release") for _ in range(6)]
    for count, total in enumerate(totals, 1):
        # Balle & Wang 2018, theorem 8: k of them are one of sigma / sqrt(k).
        sigma = SIGMA / math.sqrt(count)
        a, b = 0.5 / sigma - total * sigma, -0.5 / sigma - total * sigma
        true = stats.norm.cdf(a) - math.exp(total + stats.norm.logcdf(b))
        assert true <= DELTA


def check_the_total_is_not_a_sum_of_converted_epsilons(kind, place):
    budget, _ = _make(kind, place)
    for _ in range(4):
        budget.charge(Gaussian(SIGMA), "release")


def check_what_goes_over_is_refused_before_the_file_is_read(kind, place):
    budget, data = _make(kind, place, 2.0)
    data.unlink()
    for event in (Gaussian(SIGMA), NonPrivate()):
        with pytest.raises(BudgetExceeded):
            budget.charge(event, "release")
    assert budget.ledger.events() == ()


def check_a_changed_file_is_not_charged(kind, place):
    budget, data = _make(kind, place)
    data.write_text("text\nb\n")
    with pytest.raises(InputError):
        budget.charge(Gaussian(SIGMA), "release")
    assert budget.ledger.events() == ()


def check_steps_done_again_are_paid_again(kind, place):
    budget, _ = _make(kind, place)
    run = _run(place)
    budget.charge(Gaussian(9.0), "run", run=run)
    for _ in range(2):
        run.charge("step", Gaussian(9.0))
    assert budget.ledger.event() == Gaussian(9.0, 2)


def check_a_copy_of_a_run_pays_for_itself(kind, place):
    budget, _ = _make(kind, place)
    budget.charge(Gaussian(9.0), "run", run=_run(place))
    shutil.copytree(place / "run", place / "copy")
    budget.charge(Gaussian(9.0), "run", run=_run(place, "copy"))
    assert budget.ledger.event() == Gaussian(9.0, 2)


def check_a_run_that_goes_on_pays_once(kind, place):
    budget, _ = _make(kind, place)
    for _ in range(3):
        budget.charge(Gaussian(9.0), "run", run=_run(place))
    assert budget.ledger.event() == Gaussian(9.0)


def check_an_author_pays_for_all_his_records(kind, place):
    budget, _ = _make(kind, place, 9.0)
    group = GroupBound("author", 3)
    budget.charge(PureDP(1.0), "encoded", group=group, local=True)
    budget.charge(ApproxDP(0.5, 1e-9, 2), "encoded", group=group, local=True)
    (total,) = budget.group_totals()
    assert total.epsilon == pytest.approx(3 * (1.0 + 2 * 0.5), rel=1e-3)
    # Records that meet noise together: the sum moves three times as far.
    budget.charge(Gaussian(9.0), "counted", group=group)
    (total,) = budget.group_totals()
    parts = (Gaussian(3.0), ApproxDP(0.5, 1e-9, 6), PureDP(1.0, 3))
    assert total.epsilon == pytest.approx(epsilon(Compose(parts), DELTA))
    assert 2 * budget.epsilon() < total.epsilon


def check_what_did_not_count_authors_leaves_no_bound(kind, place):
    budget, _ = _make(kind, place, 9.0)
    budget.charge(PureDP(1.0), "encoded", group=GroupBound("author", 3), local=True)
    budget.charge(PureDP(1.0), "encoded")
    (total,) = budget.group_totals()
    assert (total.epsilon, total.unbounded) == (math.inf, 1)


def check_steps_done_again_are_paid_by_authors_too(kind, place):
    budget, _ = _make(kind, place)
    run = _run(place)
    budget.charge(Gaussian(9.0), "run", run=run, group=GroupBound("author", 3))
    for _ in range(2):
        run.charge("step", Gaussian(9.0))
    (total,) = budget.group_totals()
    assert total.epsilon == pytest.approx(epsilon(Gaussian(3.0, 2), DELTA))


def check_a_copy_that_did_not_count_authors_leaves_no_bound(kind, place):
    budget, _ = _make(kind, place)
    group = GroupBound("author", 3)
    budget.charge(Gaussian(9.0), "run", run=_run(place), group=group)
    shutil.copytree(place / "run", place / "copy")
    budget.charge(Gaussian(9.0), "run", run=_run(place, "copy"))
    (total,) = budget.group_totals()
    assert (total.epsilon, total.unbounded) == (math.inf, 1)


def check_sampled_noise_has_a_bound_for_authors_too(kind, place):
    budget, _ = _make(kind, place)
    sampled, group = PoissonGaussian(0.05, 4.0, 20), GroupBound("author", 3)
    budget.charge(sampled, "trained", group=group)
    budget.charge(PureDP(0.1), "encoded", group=GroupBound("author", 2), local=True)
    (total,) = budget.group_totals()
    expected = group_epsilon(Compose((sampled, PureDP(0.1))), DELTA, 3)
    assert (total.epsilon, total.unbounded) == (pytest.approx(expected), 0)
    assert 3 * budget.epsilon() < total.epsilon < math.inf


CHECKS = [value for name, value in globals().copy().items() if name[:6] == "check_"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_budget(check, place):
    check(DataBudget, place)


class TakesTheDearest(DataBudget):
    def charge(self, event, what, **options):
        super().charge(event, what, **options)
        return max(epsilon(c.event, DELTA) for c in self.ledger.events())


class AddsEpsilons(DataBudget):
    def charge(self, event, what, **options):
        spent = sum(epsilon(c.event, DELTA) for c in self.ledger.events())
        if spent + epsilon(event, DELTA) > self.limit_epsilon:
            raise BudgetExceeded("over")
        return super().charge(event, what, **options)


class ReadsFirst(DataBudget):
    def charge(self, event, what, **options):
        self.check_data()
        return super().charge(event, what, **options)


class ForgivesWhatIsNotPrivate(DataBudget):
    def charge(self, event, what, **options):
        if event == NonPrivate():
            return 0.0
        return super().charge(event, what, **options)


class NeverLooksAtTheFile(DataBudget):
    def check_data(self):
        pass


class ForgetsReplays(DataBudget):
    def cover(self, run, path, tallies):
        pass


class TrustsCopies(DataBudget):
    def _due(self, run, path, tallies, plan=None):
        paid = [c.event for c in self.ledger.events() if c.details.get("run") == run]
        return coverage.unpaid(plan, tallies, paid)


class ChargesAuthorsForOne(DataBudget):
    def group_totals(self):
        return [
            dataclasses.replace(total, epsilon=self.epsilon())
            for total in super().group_totals()
        ]


class TakesLocalForCentral(DataBudget):
    def charge(self, event, what, *, local=False, **options):
        return super().charge(event, what, **options)


class TakesCopiesForTheirRun(DataBudget):
    def group_totals(self):
        charges = [
            dataclasses.replace(c, details={**c.details, "inode": 1})
            for c in self.ledger.events()
        ]
        return group_totals(charges, self.delta)


class AsksOnlyWhoCounted(DataBudget):
    def group_totals(self):
        charges = [c for c in self.ledger.events() if c.details.get("group")]
        return group_totals(charges, self.delta)


class ForgetsRuns(DataBudget):
    def _due(self, run, path, tallies, plan=None):
        return plan


@pytest.mark.parametrize(
    ("twin", "check"),
    [
        (TakesTheDearest, check_the_total_is_never_below_the_truth),
        (AddsEpsilons, check_the_total_is_not_a_sum_of_converted_epsilons),
        (ReadsFirst, check_what_goes_over_is_refused_before_the_file_is_read),
        (
            ForgivesWhatIsNotPrivate,
            check_what_goes_over_is_refused_before_the_file_is_read,
        ),
        (NeverLooksAtTheFile, check_a_changed_file_is_not_charged),
        (ForgetsReplays, check_steps_done_again_are_paid_again),
        (TrustsCopies, check_a_copy_of_a_run_pays_for_itself),
        (ChargesAuthorsForOne, check_an_author_pays_for_all_his_records),
        (TakesLocalForCentral, check_an_author_pays_for_all_his_records),
        (
            TakesCopiesForTheirRun,
            check_a_copy_that_did_not_count_authors_leaves_no_bound,
        ),
        (ChargesAuthorsForOne, check_sampled_noise_has_a_bound_for_authors_too),
        (AsksOnlyWhoCounted, check_what_did_not_count_authors_leaves_no_bound),
        (AsksOnlyWhoCounted, check_steps_done_again_are_paid_by_authors_too),
        (ForgetsRuns, check_a_run_that_goes_on_pays_once),
    ],
    ids=lambda value: value.__name__,
)
def test_a_broken_twin_is_rejected(twin, check, place):
    rejected = (AssertionError, pytest.fail.Exception, BudgetExceeded, InputError)
    with pytest.raises(rejected):
        check(twin, place)


# What is due: the price of what was paid and is due is never below that of the plan,
# nor of what a run charged itself.

_units = st.sampled_from([Gaussian(5.0), Gaussian(9.0), PoissonGaussian(0.2, 4.0)])
_tally = st.dictionaries(_units, st.integers(1, 4), max_size=3)


def _event(tally):
    return Compose(tuple(Repeat(unit, count) for unit, count in tally.items()))


_sequence = _tally.map(_event)
_plans = st.tuples(_sequence, st.lists(_sequence, max_size=2)).map(
    lambda both: Compose((both[0], Parallel(tuple(both[1]))))
)
_charged = st.dictionaries(st.sampled_from([None, "a", "b"]), _tally, max_size=3)


def _check_coverage(unpaid, plan, charged, paid):
    due = unpaid(plan, charged, paid)
    total = Compose((*paid, *([] if due is None else [due])))
    actual = combine(
        (Repeat(unit, count), part)
        for part, tally in charged.items()
        for unit, count in tally.items()
    )
    price = epsilon(total, DELTA) * (1 + 1e-9)
    assert price >= epsilon(actual, DELTA)
    assert price >= epsilon(plan, DELTA)


@hypothesis.given(_plans, _charged, st.lists(_plans, max_size=2))
@hypothesis.settings(max_examples=150)
def test_what_is_due_always_covers_the_plan_and_what_was_charged(plan, charged, paid):
    _check_coverage(coverage.unpaid, plan, charged, paid)


@hypothesis.given(_sequence, _tally)
def test_what_was_paid_is_not_due_again(plan, tally):
    charged = {None: tally}
    first = coverage.unpaid(plan, charged, [])
    paid = [] if first is None else [first]
    assert coverage.unpaid(plan, charged, paid) is None
    assert coverage.unpaid(None, charged, paid) is None


def _counts_every_part(plan, charged, paid):
    """A twin: what was paid for one part counts as paid for all."""
    uses = coverage.uses
    try:
        coverage.uses = lambda event, *, least=False: uses(event)
        return coverage.unpaid(plan, charged, paid)
    finally:
        coverage.uses = uses


def test_a_twin_that_takes_one_part_for_all_is_rejected():
    plan = Parallel((Gaussian(5.0), Gaussian(9.0)))
    charged = {None: {Gaussian(5.0): 1, Gaussian(9.0): 1}}
    _check_coverage(coverage.unpaid, plan, charged, [plan])
    with pytest.raises(AssertionError):
        _check_coverage(_counts_every_part, plan, charged, [plan])
