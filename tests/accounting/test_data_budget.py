import json
import math
import os
import shutil
import stat
import subprocess
import sys
import time

import pytest

from tfpriv._errors import BudgetExceeded, InputError
from tfpriv.accounting import (
    Compose,
    DataBudget,
    Gaussian,
    GaussianThreshold,
    NonPrivate,
    PrivacyLedger,
    PureDP,
    _state,
    calibrate_scale,
    epsilon,
)

DELTA = 1e-5
SECRET = "hunter2"
# A release of epsilon 3 at 1e-5.
SIGMA = calibrate_scale(Gaussian, 3.0, DELTA)
RELEASE = Gaussian(SIGMA)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    folder = tmp_path / "state"
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(folder))
    return folder


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(f"text,label\n{SECRET},ham\n", encoding="utf-8")
    return path


@pytest.fixture
def budget(data):
    return DataBudget.create(data, epsilon=8.0, delta=DELTA)


def _run(tmp_path, name="run"):
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    return PrivacyLedger(folder / "ledger.jsonl", limit_epsilon=4.0, delta=DELTA)


def test_every_release_of_a_data_set_is_charged_to_one_budget(budget, data):
    for what in ("synthetic text", "counts"):
        DataBudget.find(data).charge(RELEASE, what)
    again = DataBudget.find(data)
    assert [charge.name for charge in again.ledger.events()] == [
        "synthetic text",
        "counts",
    ]
    assert again.id == "mine"
    assert again.epsilon() == epsilon(Gaussian(SIGMA, 2), DELTA)


def test_the_total_is_composed_from_events_and_not_from_epsilons(budget):
    spent = [budget.charge(RELEASE, "release") for _ in range(3)]
    assert spent[0] <= 3.0
    # Three times epsilon 3 would be 9, over the budget of 8.
    assert 3.0 < spent[2] < 6.0


def test_pure_epsilons_are_added_where_that_is_less(budget):
    budget.charge(PureDP(3.0), "labels")
    assert budget.charge(PureDP(5.0), "labels") == 8.0
    with pytest.raises(BudgetExceeded):
        budget.charge(PureDP(0.1), "labels")


def test_deltas_of_selections_are_taken_off_the_budgets(budget):
    budget.charge(GaussianThreshold(5.0, 6e-6), "names")
    assert budget.epsilon() == epsilon(Gaussian(5.0), 4e-6)
    with pytest.raises(BudgetExceeded):
        budget.charge(GaussianThreshold(5.0, 6e-6), "names")


def test_what_would_go_over_is_refused_before_the_file_is_opened(budget, data):
    for _ in range(5):
        budget.charge(RELEASE, "release")
    data.unlink()
    lines = budget.ledger.path.read_bytes()
    with pytest.raises(BudgetExceeded, match="no record was used") as error:
        DataBudget.find(data).charge(Gaussian(0.5), "one more")
    assert "\n" not in str(error.value)
    assert budget.ledger.path.read_bytes() == lines


def test_a_release_without_a_guarantee_is_refused(budget):
    with pytest.raises(BudgetExceeded, match="without a guarantee"):
        budget.charge(NonPrivate(), "the published setting")
    assert budget.ledger.events() == ()


def test_internal_work_is_recorded_and_not_charged(budget):
    budget.note("an audit of run 3")
    assert budget.epsilon() == 0
    assert budget.ledger.lines()[-1].name == "an audit of run 3"
    assert budget.ledger.events() == ()


def test_a_run_that_goes_on_pays_once(budget, data, tmp_path):
    plan = Compose((Gaussian(8.0), Gaussian(9.0)))
    once = budget.charge(plan, "run", run=_run(tmp_path))
    ledger = _run(tmp_path)
    ledger.charge("counts", Gaussian(8.0))
    again = DataBudget.find(data)
    assert again.charge(plan, "run", run=_run(tmp_path)) == once
    _run(tmp_path).charge("lengths", Gaussian(9.0))
    assert len(again.ledger.events()) == 1


def test_a_step_done_again_is_charged_to_the_data_set_too(budget, data, tmp_path):
    budget.charge(Gaussian(8.0, 2), "run", run=_run(tmp_path))
    for _ in range(3):
        # As a resumed run opens it: by its path alone.
        _run(tmp_path).charge("step", Gaussian(8.0))
    assert DataBudget.load("mine").ledger.event() == Gaussian(8.0, 3)


def test_a_run_stops_when_the_budget_of_the_data_set_is_spent(budget, tmp_path):
    budget.charge(RELEASE, "run", run=_run(tmp_path))
    while budget.ledger.affords(RELEASE):
        budget.charge(RELEASE, "others")
    ledger = _run(tmp_path)
    ledger.charge("step", RELEASE)
    before = ledger.path.read_bytes()
    small = Gaussian(3 * SIGMA)
    assert epsilon(Compose((RELEASE, small)), DELTA) < ledger.limit_epsilon
    while budget.ledger.affords(small):
        budget.charge(small, "others")
    assert not ledger.affords(small)
    with pytest.raises(BudgetExceeded, match="data set 'mine'"):
        ledger.charge("step", small)
    assert ledger.path.read_bytes() == before


def test_classes_that_are_trained_alike_are_paid_for_once(budget, tmp_path):
    budget.charge(Gaussian(8.0, 5), "run", run=_run(tmp_path))
    ledger = _run(tmp_path)
    for part in ("spam", "ham"):
        for _ in range(5):
            ledger.charge("step", Gaussian(8.0), part=part)
    assert budget.ledger.event() == Gaussian(8.0, 5)


def test_what_a_run_spent_before_there_was_a_budget_is_charged(data, tmp_path):
    _run(tmp_path).charge("counts", Gaussian(5.0))
    budget = DataBudget.create(data, epsilon=8.0, delta=DELTA)
    budget.charge(Gaussian(8.0), "run", run=_run(tmp_path))
    assert budget.epsilon() == epsilon(Compose((Gaussian(5.0), Gaussian(8.0))), DELTA)


def test_a_copied_run_folder_is_another_run(budget, tmp_path):
    plan = Gaussian(8.0)
    budget.charge(plan, "run", run=_run(tmp_path))
    _run(tmp_path).charge("counts", plan)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    (tmp_path / "copy").rename(tmp_path / "run")
    for name, count in (("elsewhere", 1), ("run", 2)):
        budget.charge(plan, "run", run=_run(tmp_path, name))
        assert budget.ledger.event() == Gaussian(8.0, count)


def test_a_run_made_anew_in_the_same_folder_is_another_run(budget, tmp_path):
    for count in (1, 2):
        budget.charge(Gaussian(8.0), "run", run=_run(tmp_path))
        assert budget.ledger.event() == Gaussian(8.0, count)
        shutil.rmtree(tmp_path / "run")


def test_a_check_before_a_run_knows_what_the_run_has_paid(budget, tmp_path):
    path = tmp_path / "run" / "ledger.jsonl"
    assert budget.affords(RELEASE, run=path)
    budget.charge(RELEASE, "run", run=_run(tmp_path))
    while budget.ledger.affords(RELEASE):
        budget.charge(RELEASE, "others")
    assert budget.affords(RELEASE, run=path)
    assert not budget.affords(RELEASE, run=tmp_path / "new" / "ledger.jsonl")


def test_a_run_of_one_data_set_cannot_be_charged_to_another(budget, tmp_path):
    budget.charge(Gaussian(8.0), "run", run=_run(tmp_path))
    other = tmp_path / "other.csv"
    other.write_text("text\nb\n")
    second = DataBudget.create(other, epsilon=8.0, delta=DELTA)
    with pytest.raises(InputError, match="'mine'"):
        second.charge(Gaussian(8.0), "run", run=_run(tmp_path))
    assert second.ledger.events() == ()


# Which file is which data set.


def test_a_file_without_a_budget_has_none(data, budget, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("text\nb\n")
    assert DataBudget.find(other) is None


def test_nothing_is_made_where_no_budget_was_ever_made(data, state):
    assert DataBudget.find(data) is None
    assert not state.exists()


def test_a_copy_of_the_file_is_the_same_data_set(budget, data, tmp_path):
    copy = tmp_path / "another name.csv"
    shutil.copy(data, copy)
    assert DataBudget.find(copy).id == "mine"
    copy.write_text("text,label\nchanged,ham\n")
    with pytest.raises(InputError, match="changed file"):
        DataBudget.find(copy).charge(RELEASE, "release")


def test_a_changed_file_is_refused_until_it_is_accepted(budget, data):
    budget.charge(RELEASE, "before")
    data.write_text("text,label\nmore,ham\n")
    with pytest.raises(InputError, match="tfpriv budget accept") as error:
        DataBudget.find(data).charge(RELEASE, "after")
    assert "more" not in str(error.value).replace("more records", "")
    DataBudget.load("mine").accept(data)
    DataBudget.find(data).charge(RELEASE, "after")
    assert len(budget.ledger.events()) == 2


def test_other_records_under_the_same_name_may_have_a_budget_of_their_own(data, budget):
    old = data.read_bytes()
    data.write_text("text,label\nothers,ham\n")
    with pytest.raises(InputError, match="before it changed"):
        DataBudget.create(data, epsilon=1.0, delta=DELTA)
    DataBudget.create(data, epsilon=1.0, delta=DELTA, id="next")
    assert DataBudget.find(data).id == "next"
    data.write_bytes(old)
    assert DataBudget.find(data).id == "mine"


def test_a_data_set_has_one_budget_and_it_never_grows(budget, data, tmp_path):
    copy = tmp_path / "copy.csv"
    shutil.copy(data, copy)
    for path, name in ((data, None), (data, "new"), (copy, "new")):
        with pytest.raises(InputError, match="stays spent"):
            DataBudget.create(path, epsilon=100.0, delta=DELTA, id=name)
    other = tmp_path / "other.csv"
    other.write_text("text\nb\n")
    with pytest.raises(InputError, match="never made larger"):
        DataBudget.create(other, epsilon=100.0, delta=DELTA, id="mine")
    with pytest.raises(InputError, match="'mine'"):
        DataBudget.create(other, epsilon=8.0, delta=DELTA, id="other").accept(data)


def test_a_name_that_is_taken_gets_a_number(budget, tmp_path):
    (tmp_path / "b").mkdir()
    other = tmp_path / "b" / "mine.csv"
    other.write_text("text\nb\n")
    assert DataBudget.create(other, epsilon=1.0, delta=DELTA).id == "mine-2"


def test_an_id_that_is_given_must_be_the_files(budget, data, tmp_path):
    assert DataBudget.find(data, "mine").id == "mine"
    with pytest.raises(InputError, match="Known here: mine"):
        DataBudget.find(data, "yours")
    other = tmp_path / "other.csv"
    other.write_text("text\nb\n")
    with pytest.raises(InputError, match="does not know"):
        DataBudget.find(other, "mine")
    DataBudget.create(other, epsilon=8.0, delta=DELTA)
    with pytest.raises(InputError, match="'mine'"):
        DataBudget.find(data, "other")


@pytest.mark.parametrize("name", ["", "a b", "../x", "a/b", ".hidden", "x" * 65, 3])
def test_an_id_that_is_no_name_is_refused(data, name):
    with pytest.raises(InputError, match="id of a data set"):
        DataBudget.create(data, epsilon=8.0, delta=DELTA, id=name)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "8", True, None])
def test_a_bad_limit_leaves_nothing_behind(data, state, value):
    with pytest.raises(InputError, match="epsilon"):
        DataBudget.create(data, epsilon=value, delta=DELTA)
    assert not state.exists()


@pytest.mark.parametrize("value", [0, 1, 2, math.nan, "1e-5", None])
def test_a_bad_delta_leaves_nothing_behind(data, state, value):
    with pytest.raises(InputError, match="delta"):
        DataBudget.create(data, epsilon=8.0, delta=value)
    assert not state.exists()


def test_a_file_that_is_not_there_gets_no_budget(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(InputError, match="file of a data set"):
            DataBudget.create(path, epsilon=8.0, delta=DELTA)


# What is kept, and what happens to it.


def test_files_are_private_and_tell_nothing_of_the_records(budget, state):
    files = [path for path in state.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"key", "ledger.jsonl"}
    for path in files:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert SECRET.encode() not in path.read_bytes()
    for path in (state, state / "budgets", state / "budgets" / "mine"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path


def test_the_seal_of_a_file_is_no_plain_hash_and_differs_between_machines(
    budget, data, tmp_path, monkeypatch
):
    import hashlib

    seal = budget._files()[0]["hmac"]
    assert seal != hashlib.sha256(data.read_bytes()).hexdigest()
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(tmp_path / "another machine"))
    other = DataBudget.create(data, epsilon=8.0, delta=DELTA)
    assert other._files()[0]["hmac"] != seal


def test_a_lost_or_damaged_key_is_noticed(budget, data, state):
    (state / "key").write_bytes(b"short")
    with pytest.raises(InputError, match="damaged"):
        DataBudget.find(data).charge(RELEASE, "x")
    (state / "key").unlink()
    with pytest.raises(InputError, match="key that recognises"):
        DataBudget.find(data).charge(RELEASE, "x")
    assert budget.ledger.events() == ()
    budget.accept(data)
    DataBudget.find(data).charge(RELEASE, "x")


def _broken(ledger, how):
    lines = ledger.read_bytes().splitlines(keepends=True)
    if how == "truncated":
        ledger.write_bytes(b"".join(lines)[:-5])
    elif how == "edited":
        lines[-1] = lines[-1].replace(b"release", b"nothing")
        ledger.write_bytes(b"".join(lines))
    elif how == "shortened":
        ledger.write_bytes(b"".join(lines[:-1]))
    elif how == "lost":
        ledger.unlink()


def test_of_two_first_budgets_at_once_one_makes_the_key(data, state, monkeypatch):
    make_folder = _state.make_folder

    def meanwhile(folder):
        make_folder(folder)
        (state / "key").write_text("ab" * 32)

    monkeypatch.setattr(_state, "make_folder", meanwhile)
    _state.local_key()
    assert (state / "key").read_text() == "ab" * 32


@pytest.mark.parametrize("how", ["truncated", "edited", "shortened", "lost"])
def test_a_damaged_ledger_stops_every_release(budget, data, how):
    budget.charge(RELEASE, "release")
    _broken(budget.ledger.path, how)
    with pytest.raises(InputError) as error:
        DataBudget.find(data)
    assert "\n" not in str(error.value)
    with pytest.raises(InputError):
        DataBudget.create(data, epsilon=8.0, delta=DELTA)


def test_a_newer_version_is_named(budget, data, monkeypatch):
    monkeypatch.setattr("tfpriv.accounting.ledger.SCHEMA_VERSION", 1)
    with pytest.raises(InputError, match="version 2"):
        DataBudget.find(data)


def test_a_ledger_of_version_1_is_still_read(tmp_path, monkeypatch):
    monkeypatch.setattr("tfpriv.accounting.ledger.SCHEMA_VERSION", 1)
    _run(tmp_path).charge("counts", Gaussian(5.0))
    monkeypatch.undo()
    assert _run(tmp_path).event() == Gaussian(5.0)


def test_a_ledger_of_another_data_set_is_refused(budget, data, tmp_path, state):
    other = tmp_path / "other.csv"
    other.write_text("text\nb\n")
    DataBudget.create(other, epsilon=8.0, delta=DELTA)
    budget.charge(RELEASE, "release")
    budgets = state / "budgets"
    shutil.rmtree(budgets / "mine")
    (budgets / "other").rename(budgets / "mine")
    with pytest.raises(InputError, match="that of 'other'"):
        DataBudget.find(data)


def test_a_copied_budget_is_refused_until_it_is_declared_to_count(
    budget, data, state, tmp_path, monkeypatch
):
    budget.charge(RELEASE, "release")
    shutil.copytree(state, tmp_path / "copy")
    budget.charge(RELEASE, "after the copy")
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(tmp_path / "copy"))
    with pytest.raises(InputError, match="copy"):
        DataBudget.find(data)
    DataBudget.accept_move("mine")
    assert len(DataBudget.find(data).ledger.events()) == 1


def test_a_budget_whose_folder_is_moved_goes_on(budget, data, state, monkeypatch):
    budget.charge(RELEASE, "release")
    moved = state.rename(state.with_name("moved"))
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(moved))
    assert len(DataBudget.find(data).ledger.events()) == 1


def test_a_run_whose_budget_is_gone_does_not_go_on(budget, tmp_path, state):
    budget.charge(Gaussian(8.0), "run", run=_run(tmp_path))
    shutil.rmtree(state)
    with pytest.raises(InputError, match="budget"):
        _run(tmp_path).charge("step", Gaussian(8.0))
    other = tmp_path / "mine.csv"
    other.write_text("others\n")
    DataBudget.create(other, epsilon=8.0, delta=DELTA)
    with pytest.raises(InputError, match="another one of that name"):
        _run(tmp_path).charge("step", Gaussian(8.0))


def test_a_read_only_folder_stops_a_charge_and_not_a_look(budget, data, monkeypatch):
    budget.charge(RELEASE, "release")
    real = os.open

    def read_only(path, flags, *args, **kwargs):
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(30, "Read-only file system", str(path))
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(OSError, match="Read-only"):
        DataBudget.find(data)
    seen = DataBudget.load("mine", read_only=True)
    assert len(seen.ledger.events()) == 1


def test_a_clock_that_goes_backwards_changes_nothing(budget, data, monkeypatch):
    budget.charge(RELEASE, "now")
    monkeypatch.setattr(
        time, "gmtime", lambda: time.struct_time((1970, 1, 1) + (0,) * 6)
    )
    budget.charge(RELEASE, "long ago")
    charges = DataBudget.find(data).ledger.events()
    assert [charge.name for charge in charges] == ["now", "long ago"]
    assert charges[1].time < charges[0].time
    assert budget.epsilon() == epsilon(Gaussian(SIGMA, 2), DELTA)


_WORKER = """
import sys
from tfpriv._errors import BudgetExceeded
from tfpriv.accounting import DataBudget, Gaussian
made = 0
try:
    for _ in range(12):
        DataBudget.find(sys.argv[1]).charge(Gaussian(20.0), "step")
        made += 1
except BudgetExceeded:
    pass
print(made)
"""


def test_two_processes_at_once_never_overrun_and_lose_nothing(data):
    limit = epsilon(Gaussian(20.0, 15), DELTA)
    budget = DataBudget.create(data, epsilon=limit, delta=DELTA)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(data)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    made = [int(worker.communicate()[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert sum(made) == 15
    assert budget.ledger.event() == Gaussian(20.0, 15)


def test_a_charge_between_check_and_write_by_another_process_is_seen(budget, data):
    # Both looked while there was room for one.
    while budget.ledger.affords(Gaussian(SIGMA, 2)):
        budget.charge(RELEASE, "release")
    first, second = DataBudget.find(data), DataBudget.find(data)
    check = second.check_data
    second.check_data = lambda: (check(), first.charge(RELEASE, "quicker"))
    with pytest.raises(BudgetExceeded, match="data set 'mine'"):
        second.charge(RELEASE, "slower")
    assert budget.epsilon() <= 8.0


def test_what_is_left_fits_exactly(budget):
    budget.charge(RELEASE, "release")
    price, sigma = budget.largest_affordable()
    assert 5.0 < price < 8.0
    assert budget.ledger.affords(Gaussian(sigma))
    assert not budget.ledger.affords(Gaussian(sigma * 0.998))
    budget.charge(Gaussian(sigma), "all of it")
    left = budget.largest_affordable()
    assert left is None or left[0] < 0.2


def test_the_neighbours_of_the_total_are_those_all_charges_have(budget):
    assert budget.adjacency == "add-or-remove-one"
    budget.charge(PureDP(0.1), "vectors", adjacency="replace-one")
    assert budget.adjacency == "replace-one"
    budget.charge(RELEASE, "text")
    assert budget.adjacency == "zero-out-one"
    with pytest.raises(InputError, match="adjacency"):
        budget.charge(RELEASE, "text", adjacency="none")


def test_a_ledger_is_json_lines_that_a_person_can_read(budget):
    budget.charge(RELEASE, "release")
    lines = list(map(json.loads, budget.ledger.path.read_text().splitlines()))
    assert lines[0]["data_set"] == "mine"
    assert lines[-1]["name"] == "release"
