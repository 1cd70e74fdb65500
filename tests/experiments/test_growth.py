"""Its arithmetic by hand, and a run of its smallest sizes."""

import json

import numpy as np
import pytest

from experiments.growth import __main__ as command
from experiments.growth import report
from experiments.growth.measure import measure
from experiments.growth.tasks import corpus


def cell(task, rows, cpu, peak=100.0, **found):
    return {
        "task": task,
        "rows": rows,
        "seed": 0,
        "cpu_seconds": cpu,
        "peak_mib": peak,
        "found": found,
        "machine": "abacus, 2 cores",
        "versions": {"tfpriv": "0"},
    }


def test_a_row_more_is_the_difference_to_the_line_above():
    lines = report.summary(
        [
            cell("read", 100, 2.0),
            cell("read", 300, 3.0, 100.5),
            cell("step", 9, 1, **{"step_ms": 4.0}),
        ]
    )
    assert "row_us" not in lines[0]
    assert lines[1]["row_us"] == pytest.approx(5000)
    assert lines[1]["row_bytes"] == pytest.approx(2**19 / 200)
    assert "row_us" not in lines[2]


@pytest.mark.parametrize(("last", "met"), [(102.0, True), (1000.0, False)])
def test_time_that_is_not_linear_misses_the_target(last, met):
    cells = [cell("read", 10, 1.0), cell("read", 100, 2.0), cell("read", 10_000, last)]
    (target,) = report.targets(report.summary(cells))
    assert target["met"] is met


@pytest.mark.parametrize(("last", "met"), [(5.0, True), (9.0, False)])
def test_a_step_that_grows_with_the_records_misses_the_target(last, met):
    cells = [cell("step", 10, 1.0, step_ms=4.5), cell("step", 99, 1.0, step_ms=last)]
    (target,) = report.targets(report.summary(cells))
    assert target["met"] is met


def test_reading_and_near_copies_are_measured_from_outside(tmp_path):
    path = corpus(tmp_path, 40, 0)
    assert len(path.read_text("utf-8").splitlines()) == 41
    found = measure("read", 40, 0, tmp_path)
    assert found["found"] == {"read": 40}
    assert found["cpu_seconds"] > 0
    assert 10 < found["peak_mib"] < 2000


def test_the_parent_is_not_in_the_child(tmp_path):
    ballast = np.ones(150_000_000)  # 1.1 GiB
    assert measure("read", 10, 0, tmp_path)["peak_mib"] < 8 * len(ballast) / 2**20


def test_an_unknown_task_is_refused_before_work(tmp_path, capsys):
    arguments = ["--only", "magic", "--output", str(tmp_path / "run")]
    assert command.main(arguments) == 2
    assert "'magic'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_quick_run_measures_every_task(tmp_path):
    assert command.main(["--quick", "--output", str(tmp_path / "run")]) == 0
    results = json.loads((tmp_path / "run" / "results.json").read_text("utf-8"))
    assert len(results["summary"]) == len(command.TASKS) * len(command.QUICK_ROWS)
    assert (tmp_path / "run" / "growth.png").stat().st_size > 10_000
