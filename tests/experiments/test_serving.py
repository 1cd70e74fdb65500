"""The serving experiment pairs its turns, and leaves a run that is there alone."""

from __future__ import annotations

import json

import pytest

from experiments.serving import report
from experiments.serving.__main__ import BATCHES, main


def test_ratio_is_that_of_throughputs_within_rounds():
    turns = {report.BARE: [1.0, 10.0], report.TEXT: [2.0, 20.0], report.OURS: [4, 40]}
    rows = report.summary(
        [
            {"batch": 8, "contestant": name, "seconds": seconds}
            for name, seconds in turns.items()
        ]
    )
    assert [row["of_ids"][1] for row in rows] == [1, 0.5, 0.25]
    assert [row["of_text"][1] for row in rows] == [2, 1, 0.5]
    assert [target["met"] for target in report.targets(rows)] == [False, False]


def test_folder_of_another_run_is_refused(tmp_path, capsys):
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(SystemExit) as stopped:
        main(["--quick", "--output", str(tmp_path)])
    assert stopped.value.code == 2
    assert "--output" in capsys.readouterr().err


@pytest.mark.slow
def test_quick_run_times_every_batch_size(tmp_path):
    main(["--quick", "--output", str(tmp_path)])
    found = json.loads((tmp_path / "results.json").read_text())
    assert {row["batch"] for row in found["summary"]} == set(BATCHES)
    assert {row["contestant"] for row in found["summary"]} == {
        report.BARE,
        report.TEXT,
        report.OURS,
    }
    assert report.OURS in (tmp_path / "results.md").read_text()
