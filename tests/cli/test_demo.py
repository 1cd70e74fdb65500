from __future__ import annotations

import csv
import functools
import json
import subprocess
import sys

import pytest

from tfpriv.datasets import load


@pytest.fixture
def quick(tiny, monkeypatch):
    """A demo without discriminators and classifiers; those have their own tests."""
    from tfpriv.seqgan import dp_seqgan

    model = functools.partial(dp_seqgan.DPSeqGAN, discriminator_steps=0)
    monkeypatch.setattr(dp_seqgan, "DPSeqGAN", model)
    compared = []

    def accuracy(real, synthetic, test):
        compared.append((real, synthetic, test))
        return {"LogisticRegression": {"real": 0.875, "synthetic": 0.75}}

    monkeypatch.setattr("tfpriv.cli.demo._accuracy", accuracy)
    return compared


def test_a_demo_says_what_it_wrote_and_compares_accuracies(quick, run, tmp_path):
    code, out, err = run("demo", "--output", tmp_path / "demo")
    assert code == 0, err
    for words in ("Plan", "guarantee", "epsilon 8"):
        assert words.casefold() in (out + err).casefold()
    for name in ("synthetic.csv", "privacy.json", "statement.txt"):
        assert str(tmp_path / "demo" / "release" / name) in out
    for words in ("10 of 2000 synthetic rows", "0.875", "0.750", "synthetic rows"):
        assert words in out
    [(real, synthetic, test)] = quick
    parts = load("sample")
    assert real == parts.train
    assert test == parts.test
    with (tmp_path / "demo" / "release" / "synthetic.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["text", "label"]
    # What is compared is what is released, before cells are guarded for spreadsheets.
    assert [label for _, label in lines] == list(synthetic.labels)


def test_json_alone_is_on_stdout(quick, run, tmp_path):
    code, out, _ = run("demo", "--output", tmp_path / "demo", "--json")
    assert code == 0
    result = json.loads(out)
    assert result["accuracy"]["LogisticRegression"]["synthetic"] == 0.75
    assert len(result["examples"]) == 10
    assert result["epsilon"] <= 8


def test_ctrl_c_while_classifiers_train_keeps_the_release(
    quick, run, tmp_path, monkeypatch
):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("tfpriv.cli.demo._accuracy", interrupt)
    code, out, err = run("demo", "--output", tmp_path / "demo")
    assert (code, out) == (130, "")
    assert "same command again" in err.splitlines()[-1]
    assert (tmp_path / "demo" / "release" / "synthetic.csv").exists()


def test_bad_input_is_refused_before_work(refused, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert "which is a file" in refused("demo", "--output", tmp_path / "file")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes").write_text("mine")
    assert "'notes'" in refused("demo", "--output", tmp_path / "folder")
    assert "seed=-1" in refused("demo", "--output", tmp_path / "new", "--seed", "-1")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_whole_demo(tmp_path):
    line = [sys.executable, "-m", "tfpriv.cli.main", "demo", "--json"]
    done = subprocess.run(
        [*line, "--output", str(tmp_path / "demo")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["rows"] == 2000
    assert 7.9 < result["epsilon"] <= 8
    for row in result["accuracy"].values():
        assert row["real"] > 0.65
        assert row["synthetic"] > 0.6
    assert result["seconds"] < 900
