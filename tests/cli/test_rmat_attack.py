from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from contextlib import nullcontext

import pytest

from tests.cli.conftest import SECRET, gendered, write_gendered
from tests.cli.test_rmat_train import files

LINEAR = ["--attackers", "logistic_regression"]


@pytest.fixture
def own(trained, tmp_path):
    """A copy of the run to write into."""
    output, _ = trained
    return shutil.copytree(output, tmp_path / "run")


def test_an_attack_says_who_was_worst_and_what_blind_guesses_reach(own, run):
    release = files(own / "release")
    code, out, err = run("rmat", "attack", own, *LINEAR)
    assert code == 0, err
    assert SECRET not in out + err
    for words in (
        "* logistic_regression",
        "best constant guess",
        "guess by training shares",
        "Worst attacker: logistic_regression",
        "AUC [95 %]",
    ):
        assert words in out
    path = own / "internal" / "attack.json"
    assert str(path) in out
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = json.loads(path.read_text())
    assert found["worst"] == "logistic_regression"
    assert found["statement"]["releases"] == 1
    assert files(own / "release") == release
    for word in ("female", SECRET):
        assert word not in path.read_text()


def test_several_releases_are_seen_and_paid_for(preloaded, own, run):
    code, out, err = run("rmat", "attack", own, *LINEAR, "--releases", "3", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["releases"] == 3
    assert found["statement"]["epsilon"] == pytest.approx(12)
    names = {score["name"] for score in found["attackers"]}
    assert names == {"logistic_regression (mean of 3)", "logistic_regression (all 3)"}


def test_the_records_may_have_been_moved_but_not_changed(
    preloaded, own, run, refused, tmp_path
):
    moved = write_gendered(tmp_path / "moved.csv")
    code, _, err = run("rmat", "attack", own, moved, *LINEAR)
    assert code == 0, err
    changed = write_gendered(tmp_path / "changed.csv", gendered()[::-1])
    assert "received others" in refused("rmat", "attack", own, changed)
    config = own / "internal" / "config.json"
    values = json.loads(config.read_text())
    config.write_text(json.dumps(values | {"file": str(tmp_path / "gone.csv")}))
    assert "gone.csv" in refused("rmat", "attack", own)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--attackers", "oracle"], "logistic_regression"),
        (["--attackers", ""], "logistic_regression"),
        (["--attackers", "mlp,mlp"], "none twice"),
        (["--releases", "0"], "releases=0"),
        (["--seed", "-1"], "seed=-1"),
    ],
)
def test_a_wrong_option_is_refused(trained, refused, change, words):
    assert words in refused("rmat", "attack", trained[0], *change)


def test_a_full_folder_for_temporary_files_is_no_damaged_model(
    own, refused, monkeypatch
):
    """Keras unpacks a model there."""

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def none(*args, **kwargs):
        message = "No usable temporary directory found in ['/tmp']"
        raise FileNotFoundError(errno.ENOENT, message)

    for fault in (full, none):
        with monkeypatch.context() as patch:
            patch.setattr("tfpriv.cli._representation_run.quiet_import", nullcontext)
            patch.setattr("keras.saving.load_model", fault)
            line = refused("rmat", "attack", own)
        assert "full disk" in line
        assert "damaged" not in line


def test_a_folder_without_a_finished_run_is_refused(own, refused, tmp_path):
    assert "config.json" in refused("rmat", "attack", tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (own / "internal" / "model.keras").write_bytes(b"damaged")
    assert "damaged" in refused("rmat", "attack", own)
    (own / "internal" / "model.keras").unlink()
    assert "to go on" in refused("rmat", "attack", own)
    (own / "internal" / "config.json").write_text('{"mode": "guaranteed"}')
    assert "another command" in refused("rmat", "attack", own)
