"""Commands charge the budget of the data set they are given, before they read it."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import QUICK, TASK, write_gendered
from tests.cli.test_synthesize import COLUMNS, NO_GAN, files
from tfpriv.accounting import DataBudget


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def unread(monkeypatch):
    """Whatever reads records fails the test."""

    def fail(*args, **kwargs):
        raise AssertionError("a record was read")

    monkeypatch.setattr("tfpriv.datasets.read_table", fail)
    monkeypatch.setattr("tfpriv.cli.encode._read", fail)


@pytest.fixture
def synthesize(private, tmp_path):
    def line(name, epsilon):
        rest = ["--output", tmp_path / name, "--epsilon", epsilon, *NO_GAN]
        return ["synthesize", private, *COLUMNS, *rest]

    return line


def test_a_run_is_charged_whole_and_once(tiny, run, private, synthesize, tmp_path):
    assert run("budget", "init", private, "--epsilon", "8")[0] == 0
    for _ in range(2):
        code, _, err = run(*synthesize("one", 4))
        assert code == 0, err
        (charge,) = DataBudget.find(private).ledger.events()
        assert charge.name == "synthetic text"
        assert 3.9 < DataBudget.find(private).epsilon() <= 4
    statement = json.loads((tmp_path / "one" / "release" / "privacy.json").read_text())
    assert DataBudget.find(private).epsilon() == pytest.approx(statement["epsilon"])


def test_a_run_that_would_go_over_is_refused_unread(
    tiny, run, refused, private, synthesize, tmp_path, request
):
    assert run("budget", "init", private, "--epsilon", "5")[0] == 0
    assert run(*synthesize("one", 4))[0] == 0
    before = files(tmp_path / "state")
    request.getfixturevalue("unread")
    assert "no record was used" in refused(*synthesize("two", 4))
    assert "without a guarantee" in refused(
        "synthesize", private, *COLUMNS, "--output", tmp_path / "x", "--mode", "seqgan"
    )
    assert files(tmp_path / "state") == before
    assert not (tmp_path / "two").exists()


def test_a_file_that_changed_is_refused(tiny, run, refused, private, synthesize):
    assert run("budget", "init", private, "--epsilon", "8")[0] == 0
    with private.open("a") as file:
        file.write("me,more,spam\n")
    assert "changed" in refused(*synthesize("one", 4))
    assert DataBudget.load("private").ledger.events() == ()


def test_encoding_is_charged_and_refused_unread(
    trained, preloaded, run, refused, tmp_path, request
):
    texts = tmp_path / "texts.txt"
    texts.write_text("she is good\nhe is bad\n")
    assert run("budget", "init", texts, "--epsilon", "9")[0] == 0
    for spent in (4, 8):
        assert run("encode", trained[0], texts)[0] == 0
        assert DataBudget.find(texts).epsilon() == pytest.approx(spent)
    assert DataBudget.find(texts).adjacency == "replace-one"
    request.getfixturevalue("unread")
    assert "no record was used" in refused("encode", trained[0], texts)
    assert DataBudget.find(texts).epsilon() == pytest.approx(8)


def test_a_command_that_reads_before_it_asks_is_caught(
    tiny, run, refused, private, synthesize, monkeypatch, request
):
    """The twin: its budget says nothing before the records are read."""
    assert run("budget", "init", private, "--epsilon", "3")[0] == 0
    monkeypatch.setattr(DataBudget, "require", lambda *args: None)
    request.getfixturevalue("unread")
    with pytest.raises(AssertionError):
        refused(*synthesize("one", 4))


@pytest.fixture
def budgeted(run, bert, tmp_path):
    """People with a budget, and the line that trains an encoder on them."""
    file = write_gendered(tmp_path / "people.csv")
    assert run("budget", "init", file, "--epsilon", "3")[0] == 0
    line = ["rmat", "train", file, *TASK, "--output", tmp_path / "run", *QUICK]
    code, _, err = run(*line, "--preset", bert)
    assert code == 0, err
    return file, [*line, "--preset", bert]


def noted(file):
    return [line.name for line in DataBudget.find(file).ledger.lines()]


def test_training_an_encoder_is_noted_once_and_not_charged(run, budgeted, tmp_path):
    file, line = budgeted
    assert DataBudget.find(file).ledger.events() == ()
    assert noted(file).count("training of an encoder") == 1
    (tmp_path / "run" / "internal" / "evaluation.json").unlink()  # killed near its end
    assert run(*line)[0] == 0
    assert noted(file).count("training of an encoder") == 1


def test_what_an_encoder_releases_is_no_secret_of_its_training_data(
    run, refused, budgeted, tmp_path
):
    file, _ = budgeted
    texts = tmp_path / "texts.txt"
    texts.write_text("some words\n")
    moved = file.rename(tmp_path / "elsewhere.csv")
    line = ["encode", tmp_path / "run", texts]
    assert "--unprotected-training" in refused(*line)
    code, out, _ = run(*line, "--unprotected-training")
    assert code == 0
    assert out.startswith("[")
    what = "representations by an encoder trained on it"
    assert noted(moved).count(what) == 1
    _, out, _ = run("budget", "show", moved)
    assert "LEFT WITHOUT A GUARANTEE" in out
