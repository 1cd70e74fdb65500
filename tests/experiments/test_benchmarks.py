"""The benchmarks run, pair their turns, and leave a run that is there alone."""

from __future__ import annotations

import json

import pytest

from experiments.benchmarks import report
from experiments.benchmarks.__main__ import main, take_turns
from experiments.benchmarks.contests import CONTESTS


def test_ratio_is_taken_within_rounds():
    turns = {"base": [1.0, 10.0, 2.0], "other": [3.0, 30.0, 6.0]}
    rows = report.summary(
        [
            {"contest": "c", "contestant": name, "seconds": seconds}
            for name, seconds in turns.items()
        ]
    )
    assert rows[0]["ratio"] == [1, 1, 1]
    assert rows[1]["ratio"] == [3, 3, 3]
    assert rows[1]["difference_ms"][1] == 4000


def test_every_contestant_runs_once_a_round_and_once_before(monkeypatch):
    calls = []
    runs = {name: lambda name=name: calls.append(name) for name in "ab"}
    monkeypatch.setitem(CONTESTS, "c", lambda seed: runs)
    first, second = take_turns("c", 0, least=3, most=5, seconds=0)
    assert len(first["seconds"]) == len(second["seconds"]) == 3
    for turn in range(4):
        assert sorted(calls[2 * turn : 2 * turn + 2]) == ["a", "b"]


def test_folder_of_another_run_is_refused(tmp_path, capsys):
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(SystemExit) as stopped:
        main(["--quick", "--output", str(tmp_path)])
    assert stopped.value.code == 2
    assert "--output" in capsys.readouterr().err
    assert (tmp_path / "results.json").read_text() == "{}"


@pytest.mark.slow
def test_quick_run_times_every_contest(tmp_path):
    main(["--quick", "--output", str(tmp_path)])
    found = json.loads((tmp_path / "results.json").read_text())
    assert {row["contest"] for row in found["summary"]} == set(CONTESTS)
    assert all(row["ms"][0] > 0 for row in found["summary"])
    page = (tmp_path / "results.md").read_text()
    assert all(row["contestant"] in page for row in found["summary"])
    assert (tmp_path / "turns.png").stat().st_size > 0
