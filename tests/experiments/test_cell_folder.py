"""A folder of cells goes on where it was, and refuses what is not its own."""

import json
from pathlib import Path

import pytest

import experiments
from experiments._cells.cell_folder import Cell, CellFolder
from tfpriv._errors import InputError

SETTINGS = {"epochs": 2, "widths": (1, 2)}


def made(name, log):
    def run():
        log.append(name)
        return {"name": name, "seconds": 1.0}

    return Cell(name, f"the cell {name}", run)


def test_missing_cells_are_made_and_reported_one_by_one(tmp_path, capsys):
    log = []
    CellFolder(tmp_path, SETTINGS).complete([made("a", log)], lambda: None)
    again = CellFolder(tmp_path, SETTINGS)
    again.complete(
        [made(name, log) for name in "abc"], lambda: log.append(len(again.finished()))
    )
    assert log == ["a", "b", 2, "c", 3]
    assert [cell["name"] for cell in again.finished()] == ["a", "b", "c"]
    assert "the cell c took 1 s" in capsys.readouterr().err


def test_a_cell_that_fails_leaves_no_file_and_keeps_the_others(tmp_path):
    def run():
        raise RuntimeError("no memory")

    log = []
    folder = CellFolder(tmp_path, SETTINGS)
    with pytest.raises(RuntimeError):
        folder.complete([made("a", log), Cell("b", "b", run)], lambda: None)
    assert [path.name for path in (tmp_path / "cells").iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    "settings",
    [{"epochs": 3, "widths": (1, 2)}, {"widths": (1, 2)}, {**SETTINGS, "more": 1}],
)
def test_another_setting_is_refused_by_name(tmp_path, settings):
    CellFolder(tmp_path, SETTINGS)
    kept = (tmp_path / "settings.json").read_text("utf-8")
    with pytest.raises(InputError, match=r"another (epochs|more)\."):
        CellFolder(tmp_path, settings)
    assert (tmp_path / "settings.json").read_text("utf-8") == kept


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="empty folder"):
        CellFolder(tmp_path, SETTINGS)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def settings_today(name):
    if name == "youtube_spam":
        from experiments.youtube_spam.__main__ import STUDY as study
    elif name == "sentiment":
        from experiments.sentiment.__main__ import STUDY as study
    elif name == "rmat_tables":
        from experiments.rmat_tables.__main__ import SETTINGS

        return SETTINGS.to_json()
    elif name == "growth":
        from experiments.growth.__main__ import ROWS

        return {"rows": ROWS, "quick": False}
    else:
        from experiments.dp_seqgan.settings import Settings

        return Settings().to_json()
    return {**study.to_json(), "part": "test"}


@pytest.mark.parametrize(
    "path",
    sorted(Path(experiments.__path__[0]).glob("*/results/settings.json")),
    ids=lambda path: path.parts[-3],
)
def test_committed_results_can_be_gone_on_with(path):
    kept = json.loads(path.read_text("utf-8"))
    assert kept == json.loads(json.dumps(settings_today(path.parts[-3])))
