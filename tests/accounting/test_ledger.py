import json
import math
import os
import stat
import statistics
import subprocess
import sys
import time

import pytest

from tfpriv._errors import BudgetExceeded, InputError
from tfpriv.accounting import (
    Compose,
    DPSGDPlan,
    Gaussian,
    NonPrivate,
    Parallel,
    PoissonGaussian,
    PrivacyLedger,
    epsilon,
)

PLAN = DPSGDPlan(1956, 64, 306, 1.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.jsonl"


def _open(path, limit=8.0, delta=1e-5):
    return PrivacyLedger(path, limit_epsilon=limit, delta=delta)


def test_a_run_charged_step_by_step_costs_what_its_plan_says(path):
    ledger = _open(path)
    for step in range(PLAN.steps):
        ledger.charge("discriminator", PLAN.step_event(step))
    assert ledger.epsilon() == PLAN.epsilon(1e-5)
    assert ledger.event() == PLAN.event()
    assert len(ledger.events()) == PLAN.steps


def test_a_reload_sees_every_charge_ever_made(path):
    ledger = _open(path)
    ledger.charge("counts", Gaussian(4.0))
    ledger.charge("step", PoissonGaussian(0.1, 2.0), part="spam")
    again = _open(path)
    assert again.events() == ledger.events()
    assert again.event() == ledger.event()
    again.charge("step", PoissonGaussian(0.1, 2.0), part="spam")
    assert ledger.event() == again.event()


def test_what_would_overrun_is_refused_and_not_charged(path):
    limit = epsilon(Gaussian(2.0, 3), 1e-5)
    ledger = _open(path, limit)
    for _ in range(3):
        ledger.charge("counts", Gaussian(2.0))
    before = path.read_bytes()
    assert not ledger.affords(Gaussian(2.0))
    with pytest.raises(BudgetExceeded, match="Nothing was charged"):
        ledger.charge("counts", Gaussian(2.0))
    assert path.read_bytes() == before
    assert ledger.epsilon() == limit
    assert len(_open(path, limit).events()) == 3


def test_what_is_not_private_passes_only_without_a_limit(path, tmp_path):
    with pytest.raises(BudgetExceeded):
        _open(path, 1e9).charge("pre-training", NonPrivate())
    ledger = _open(tmp_path / "paper.jsonl", math.inf)
    assert ledger.charge("pre-training", NonPrivate()) == math.inf
    assert _open(tmp_path / "paper.jsonl", math.inf).epsilon() == math.inf


def test_disjoint_parts_are_charged_in_parallel(path):
    ledger = _open(path)
    ledger.charge("label names", Gaussian(5.0))
    for part in ("spam", "ham"):
        for _ in range(10):
            ledger.charge("step", PoissonGaussian(0.1, 1.5), part=part)
    ten = PoissonGaussian(0.1, 1.5, 10)
    assert ledger.event() == Compose((Gaussian(5.0), Parallel((ten, ten))))
    alone = Compose((Gaussian(5.0), ten))
    assert ledger.epsilon() == pytest.approx(epsilon(alone, 1e-5), rel=1e-12)


def test_files_are_private(path):
    _open(path).charge("counts", Gaussian(4.0))
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


def _filled(path, charges=5):
    ledger = _open(path)
    for i in range(charges):
        ledger.charge(f"step {i}", Gaussian(20.0 + i))
    return path.read_bytes()


@pytest.mark.parametrize("cut", [1, 2, 40])
def test_a_cut_off_last_line_is_noticed(path, cut):
    path.write_bytes(_filled(path)[:-cut])
    with pytest.raises(InputError, match="cut off"):
        _open(path)


@pytest.mark.parametrize("lines", [1, 3, 5])
def test_whole_lines_missing_at_the_end_are_noticed(path, lines):
    kept = _filled(path).splitlines(keepends=True)[:-lines]
    path.write_bytes(b"".join(kept))
    with pytest.raises(InputError, match="missing at its end"):
        _open(path)


@pytest.mark.parametrize("line", range(6))
def test_an_edited_line_is_noticed(path, line):
    lines = _filled(path).splitlines(keepends=True)
    old = b"8.0" if line == 0 else b'"name": "step'
    new = b"80.0" if line == 0 else b'"name": "stop'
    assert old in lines[line]
    lines[line] = lines[line].replace(old, new)
    path.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=f"line {line + 1} was changed"):
        _open(path)


def test_an_edit_behind_the_back_of_an_open_ledger_is_noticed(path):
    data = _filled(path)
    ledger = _open(path)
    path.write_bytes(data.replace(b"step 0", b"stop 0"))
    with pytest.raises(InputError, match="was changed"):
        ledger.charge("next", Gaussian(30.0))


def test_a_line_taken_out_or_moved_is_noticed(path):
    lines = _filled(path).splitlines(keepends=True)
    for broken in (lines[:2] + lines[3:], [*lines[:2], lines[3], lines[2], *lines[4:]]):
        path.write_bytes(b"".join(broken))
        with pytest.raises(InputError, match="was changed"):
            _open(path)


@pytest.mark.parametrize("junk", [b"", b"\n", b"[]\n", b"{}\n", b"\xff\xfe\n", b"1\n"])
def test_a_file_that_is_no_ledger_is_refused(path, junk):
    path.write_bytes(junk)
    with pytest.raises(InputError):
        _open(path)


def test_a_lost_ledger_or_head_is_noticed(path):
    _filled(path)
    head = path.with_name("ledger.jsonl.head")
    kept = head.read_bytes()
    head.unlink()
    with pytest.raises(InputError, match="head is missing"):
        _open(path)
    head.write_bytes(kept)
    _open(path)
    path.unlink()
    with pytest.raises(InputError, match="the file is gone"):
        _open(path)


def test_an_older_copy_put_back_is_noticed(path):
    old = _filled(path)
    ledger = _open(path)
    ledger.charge("more", Gaussian(50.0))
    path.write_bytes(old)
    for use in (lambda: ledger.charge("again", Gaussian(50.0)), lambda: _open(path)):
        with pytest.raises(InputError, match="missing at its end"):
            use()


def test_a_head_that_is_a_line_behind_is_no_damage(path):
    _filled(path, 2)
    head = path.with_name("ledger.jsonl.head")
    behind = head.read_bytes()
    _open(path).charge("the process died after this line", Gaussian(50.0))
    head.write_bytes(behind)
    assert len(_open(path).events()) == 3


@pytest.mark.parametrize(
    ("limit", "delta"), [(9.0, 1e-5), (math.inf, 1e-5), (8.0, 1e-6)]
)
def test_another_budget_than_the_file_was_made_with_is_refused(path, limit, delta):
    _open(path)
    with pytest.raises(InputError, match="was made"):
        _open(path, limit, delta)


def test_a_ledger_of_a_newer_version_is_refused(path, monkeypatch):
    monkeypatch.setattr("tfpriv.accounting.ledger.SCHEMA_VERSION", 3)
    _open(path)
    monkeypatch.undo()
    with pytest.raises(InputError, match="version 3"):
        _open(path)


@pytest.mark.parametrize("limit", [0, -1, math.nan, -math.inf, "8", True, None])
def test_a_bad_limit_is_refused_and_leaves_no_file(path, limit):
    with pytest.raises(InputError, match="limit_epsilon"):
        _open(path, limit)
    assert not path.exists()


@pytest.mark.parametrize("delta", [0, 1, 2, math.nan, "1e-5", None])
def test_a_bad_delta_is_refused_and_leaves_no_file(path, delta):
    with pytest.raises(InputError, match="delta"):
        _open(path, 8.0, delta)
    assert not path.exists()


def test_a_missing_folder_is_refused_and_not_made(tmp_path):
    with pytest.raises(InputError, match="folder"):
        _open(tmp_path / "no" / "ledger.jsonl")
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("event", [None, 1.0, "Gaussian", {"type": "Gaussian"}])
def test_what_is_no_event_is_refused(path, event):
    ledger = _open(path)
    with pytest.raises(InputError, match="event"):
        ledger.charge("x", event)
    assert ledger.events() == ()


def test_a_full_disk_charges_nothing_and_leaves_a_whole_file(path, monkeypatch):
    ledger = _open(path)
    ledger.charge("counts", Gaussian(4.0))
    before = path.read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: len(data) // 2]))
    with pytest.raises(OSError, match="full"):
        ledger.charge("step", Gaussian(4.0))
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert len(_open(path).events()) == 1
    ledger.charge("step", Gaussian(4.0))
    assert len(_open(path).events()) == 2


def test_an_interrupt_while_writing_charges_nothing(path, monkeypatch):
    ledger = _open(path)

    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ledger.charge("step", Gaussian(4.0))
    monkeypatch.undo()
    assert _open(path).events() == ()


def test_a_line_is_on_disk_when_charge_returns(path, monkeypatch):
    ledger = _open(path)
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), fsync(fd)))
    ledger.charge("step", Gaussian(4.0))
    assert synced
    assert json.loads(path.read_bytes().splitlines()[-1])["name"] == "step"


_WORKER = """
import sys
from tfpriv._errors import BudgetExceeded
from tfpriv.accounting import Gaussian, PrivacyLedger
ledger = PrivacyLedger(sys.argv[1], limit_epsilon=float(sys.argv[2]), delta=1e-5)
made = 0
try:
    for _ in range(40):
        ledger.charge("step", Gaussian(20.0))
        made += 1
except BudgetExceeded:
    pass
print(made)
"""


def test_two_processes_at_once_never_overrun_and_lose_nothing(path):
    limit = epsilon(Gaussian(20.0, 50), 1e-5)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _WORKER, str(path), repr(limit)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    made = [int(worker.communicate()[0]) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    assert sum(made) == 50
    assert len(_open(path, limit).events()) == 50


def test_a_charge_takes_less_than_five_milliseconds_of_work(path):
    ledger = _open(path)
    ledger.charge("counts", Gaussian(20.0))
    times = []
    for step in range(60):
        begin = time.process_time()
        ledger.charge("step", PLAN.step_event(step), part="ab"[step % 2])
        times.append(time.process_time() - begin)
    assert statistics.median(times[2:]) < 0.005
