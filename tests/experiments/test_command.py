import dataclasses
import json

import pytest

from experiments._synthesis import command, measures
from tests.experiments.conftest import make_cell


@pytest.fixture(autouse=True)
def no_public_text(monkeypatch):
    monkeypatch.setattr(measures, "public_model", lambda folder: None)


@pytest.fixture
def run(study, tmp_path):
    done = []

    def run_cell(study, arm, seed, part):
        done.append((seed, arm.key, part))
        return make_cell(arm.key, seed, 0.9, 0.9)

    def call(*arguments):
        done.clear()
        output = ["--output", str(tmp_path / "run")]
        return command.main(study, [*output, *arguments], run_cell), list(done)

    return call


def test_every_cell_is_run_once_and_never_again(run, tmp_path):
    code, done = run("--seeds", "0", "1", "--only", "original", "paper")
    assert code == 0
    assert [cell[:2] for cell in done] == [
        (0, "original"),
        (0, "paper"),
        (1, "original"),
        (1, "paper"),
    ]
    code, done = run("--seeds", "1", "2", "--only", "paper")
    assert (code, done) == (0, [(2, "paper", "test")])
    results = json.loads((tmp_path / "run" / "results.json").read_text("utf-8"))
    assert results["seeds"] == [0, 1, 2]
    assert len(results["cells"]) == 5


def test_a_run_of_other_settings_is_refused_before_work(run, capsys):
    run("--only", "original")
    code, done = run("--only", "original", "--part", "validation")
    assert (code, done) == (2, [])
    assert "part" in capsys.readouterr().err


def test_a_folder_with_other_files_is_refused(run, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("mine")
    assert run("--only", "original") == (2, [])
    assert (tmp_path / "run" / "mine.txt").read_text() == "mine"


def test_an_unknown_arm_and_missing_data_are_found_before_work(
    run, study, tmp_path, capsys, monkeypatch
):
    assert run("--only", "magic") == (2, [])
    monkeypatch.setenv("TFPRIV_DATA_DIR", str(tmp_path / "nowhere"))
    study = dataclasses.replace(study, dataset="youtube_spam")
    arguments = ["--output", str(tmp_path / "run")]
    assert command.main(study, arguments, lambda *_: pytest.fail("ran")) == 2
    assert capsys.readouterr().err.count("\n") == 2
