from __future__ import annotations

import csv
import functools
import json
import stat
import subprocess
import sys

import pytest

from tfpriv._errors import InputError
from tfpriv.cli import _demo_representation
from tfpriv.cli._representation_run import targets
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
    monkeypatch.setattr(_demo_representation.RepresentationDemo, "run", _compared)
    return compared


def _compared(self):
    """What the second half gives, without a BERT."""
    with self.folder.staged_release() as staged:
        (staged / "statement.txt").write_text("Certified: epsilon 4 per release")
    area = {"value": 0.75, "low": 0.5, "high": 1.0}
    row = {
        "task_macro_f1": 0.8125,
        "constant_macro_f1": 0.341,
        "epsilon": 4.0,
        "attack": {"auc": area},
    }
    return {
        "folder": str(self.folder.path),
        "backbone": "MiniLM",
        "private": "gender",
        "privacy": str(self.folder.release / "privacy.json"),
        "statement": str(self.folder.release / "statement.txt"),
        "rmat": row,
        "unprotected": {**row, "epsilon": None},
    }


def test_a_demo_says_what_it_wrote_and_compares_accuracies(quick, run, tmp_path):
    code, out, err = run("demo", "--output", tmp_path / "demo")
    assert code == 0, err
    for words in ("Plan", "guarantee", "epsilon 8"):
        assert words.casefold() in (out + err).casefold()
    for name in ("synthetic.csv", "privacy.json", "statement.txt"):
        assert str(tmp_path / "demo" / "release" / name) in out
    for words in ("10 of 2000 synthetic rows", "0.875", "0.750", "synthetic rows"):
        assert words in out
    for words in ("RMAT", "unprotected", "0.812", "0.750 [0.500, 1.000]", "epsilon 4"):
        assert words in out
    assert str(tmp_path / "demo-rmat" / "release" / "privacy.json") in out
    [(real, synthetic, test)] = quick
    parts = load("sample")
    assert real == parts.train
    assert test == parts.test
    with (tmp_path / "demo" / "release" / "synthetic.csv").open(newline="") as file:
        header, *lines = csv.reader(file)
    assert header == ["text", "label"]
    # What is compared is what is released, before cells are guarded for spreadsheets.
    assert [label for _, label in lines] == list(synthetic.labels)


def test_each_half_is_shown_under_its_heading_when_it_is_done(
    quick, run, tmp_path, monkeypatch
):
    def interrupt(self):
        raise KeyboardInterrupt

    output = tmp_path / "demo"
    with monkeypatch.context() as patch:
        patch.setattr(_demo_representation.RepresentationDemo, "run", interrupt)
        code, out, err = run("demo", "--output", output)
    assert code == 130
    assert "Half 1 of 2: the synthetic data set" in out
    assert "0.875" in out
    assert "Half 2 of 2" not in out
    assert "Half 2 of 2: representations" in err
    code, out, err = run("demo", "--output", output)
    assert code == 0, err
    first, second = out.split("Half 2 of 2: ")
    assert "synthetic rows" in first
    assert "RMAT" not in first
    assert "RMAT" in second
    _, out, err = run("demo", "--output", output, "--half", "synthetic")
    assert "The synthetic data set" in out
    assert "Half" not in out + err


def test_both_folders_have_the_same_modes(quick, run, tmp_path):
    assert run("demo", "--output", tmp_path / "demo")[0] == 0
    for name in ("demo", "demo-rmat"):
        folder = tmp_path / name
        for part, wanted in ((folder, 0o755), (folder / "release", 0o755)):
            assert stat.S_IMODE(part.stat().st_mode) == wanted
        assert stat.S_IMODE((folder / "internal").stat().st_mode) == 0o700


def test_json_alone_is_on_stdout(quick, run, tmp_path):
    code, out, _ = run("demo", "--output", tmp_path / "demo", "--json")
    assert code == 0
    result = json.loads(out)
    assert result["accuracy"]["LogisticRegression"]["synthetic"] == 0.75
    assert len(result["examples"]) == 10
    assert result["epsilon"] <= 8
    assert result["representation"]["rmat"]["epsilon"] == 4


def test_either_half_runs_alone(quick, run, tmp_path):
    output = tmp_path / "demo"
    code, out, err = run("demo", "--half", "synthetic", "--output", output, "--json")
    assert code == 0, err
    assert "representation" not in json.loads(out)
    assert not (tmp_path / "demo-rmat").exists()
    output = tmp_path / "b"
    code, out, _ = run("demo", "--half", "representation", "--output", output, "--json")
    assert set(json.loads(out)) == {"representation", "seconds"}
    assert not output.exists()
    assert (tmp_path / "b-rmat").is_dir()


def test_both_halves_use_the_same_parts_of_the_sample(tmp_path):
    from tfpriv.cli._representation_run import parts_of

    demo = _demo_representation.RepresentationDemo(tmp_path / "demo-rmat", 0)
    demo.folder.close()
    parts = parts_of(demo.data, _demo_representation._SPLIT_KEY)
    theirs = load("sample", seed=0)
    for ours, other in zip(parts, theirs, strict=True):
        assert set(ours.texts) == set(other.texts)
    config = {
        "label_names": demo.data.label_names,
        "private_names": demo.data.private_names,
    }
    for values in targets(parts.train, config).values():
        assert set(values) == {0, 1}


def test_without_minilm_a_small_bert_is_made_once(tmp_path, monkeypatch, capsys):
    from tfpriv import representation

    def missing():
        raise InputError("Expected MiniLM to be installed.")

    monkeypatch.setattr(representation, "minilm_folder", missing)
    demo = _demo_representation.RepresentationDemo(tmp_path / "demo-rmat", 0)
    with demo.folder:
        settings = demo._on_a_bert()
        assert demo._on_a_bert() == settings
        model = settings.build(2, 2)
    assert "not installed" in capsys.readouterr().err
    assert model.encode(["Win a free phone now!", ""]).shape == (2, 2)


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
    assert "representation" in refused("demo", "--half", "none")
    (tmp_path / "new-rmat").mkdir()
    (tmp_path / "new-rmat" / "notes").write_text("mine")
    assert "'notes'" in refused("demo", "--output", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
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
    told = result["representation"]
    assert told["unprotected"]["attack"]["leaks"]
    assert told["rmat"]["attack"]["auc"]["low"] < 0.55
    assert told["rmat"]["task_macro_f1"] > 0.7
    assert result["seconds"] < 900
