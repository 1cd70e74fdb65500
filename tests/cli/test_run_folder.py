from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys

import pytest

from tests.cli.conftest import SECRET
from tfpriv._errors import InputError
from tfpriv.cli.run_folder import RunFolder

RECORDS = [(f"{SECRET} one", "ham"), (f"{SECRET} two", "spam")]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "run"


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refused(path, records=RECORDS, **settings) -> str:
    with pytest.raises(InputError) as caught:
        RunFolder(path, records, settings)
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def test_a_new_folder_is_made_with_a_private_part(path):
    with RunFolder(path, RECORDS) as folder:
        assert sorted(entry.name for entry in path.iterdir()) == ["internal", "release"]
        assert list(folder.release.iterdir()) == []
        assert mode(folder.internal) == 0o700
        assert {mode(entry) for entry in folder.internal.iterdir()} == {0o600}


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_what_may_leave_is_open_whatever_else_is_open(path, tmp_path, umask):
    """A second run of one process, as in the demo, is made under a private umask."""
    before = os.umask(umask)
    try:
        with RunFolder(tmp_path / "first", RECORDS), RunFolder(path, RECORDS):
            pass
    finally:
        os.umask(before)
    for folder in (tmp_path / "first", path):
        assert mode(folder) == mode(folder / "release") == 0o755
        assert mode(folder / "internal") == 0o700


def test_a_folder_that_was_there_keeps_its_mode(path):
    path.mkdir(parents=True, mode=0o700)
    path.chmod(0o700)
    RunFolder(path, RECORDS).close()
    assert mode(path) == 0o700
    (path / "release").chmod(0o750)
    RunFolder(path, RECORDS).close()
    assert mode(path / "release") == 0o750


def test_an_internal_folder_that_was_opened_to_others_is_closed_again(path):
    RunFolder(path, RECORDS).close()
    (path / "internal").chmod(0o755)
    RunFolder(path, RECORDS).close()
    assert mode(path / "internal") == 0o700


def test_what_libraries_write_during_a_run_is_private(path):
    before = os.umask(0o022)
    try:
        with RunFolder(path, RECORDS) as folder:
            (folder.internal / "weights").write_text("x")
            assert mode(folder.internal / "weights") == 0o600
        (path / "after").write_text("x")
        assert mode(path / "after") == 0o644
        refused(path, RECORDS)
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)


def test_one_process_at_a_time(path):
    with RunFolder(path, RECORDS):
        assert "no other run uses" in refused(path)
    RunFolder(path, RECORDS).close()


def test_a_refusal_lets_go_of_the_lock(path):
    RunFolder(path, RECORDS).close()
    refused(path, RECORDS[:1])
    RunFolder(path, RECORDS).close()


@pytest.mark.parametrize(
    "others",
    [
        RECORDS[::-1],
        RECORDS[:1],
        [*RECORDS, RECORDS[0]],
        [(RECORDS[0][0], "spam"), RECORDS[1]],
        [(RECORDS[0][0] + RECORDS[0][1], ""), RECORDS[1]],
        [],
    ],
)
def test_other_records_are_refused(path, others):
    RunFolder(path, RECORDS).close()
    assert "received others" in refused(path, others)


def test_the_seal_of_records_tells_nothing_without_its_key(path, tmp_path):
    RunFolder(path, RECORDS).close()
    RunFolder(tmp_path / "b", RECORDS).close()
    seals = [p / "internal" / "records.hmac" for p in (path, tmp_path / "b")]
    assert seals[0].read_text() != seals[1].read_text()


def test_other_settings_are_refused_and_named(path):
    RunFolder(path, RECORDS, {"epsilon": 8.0}).close()
    config = path / "internal" / "config.json"
    config.write_text('{"epsilon": 8.0, "labels": ["a"], "seed": 0}')
    RunFolder(path, RECORDS, {"epsilon": 8, "labels": ["a"]}).close()
    assert "epsilon=8.0" in refused(path, epsilon=4.0)
    assert "labels=['a']" in refused(path, epsilon=8.0, labels=None)
    for damaged in ("", "[]", "{}", "null"):
        config.write_text(damaged)
        assert "damaged" in refused(path, epsilon=8.0)


def test_a_run_of_another_command_is_refused_as_such(path):
    RunFolder(path, RECORDS).close()
    config = path / "internal" / "config.json"
    config.write_text('{"epsilon": 8.0}')
    assert "a run of another" in refused(path, command="rmat train", epsilon=8.0)
    config.write_text('{"command": "rmat train", "epsilon": 8.0}')
    assert "a run of another" in refused(path, epsilon=8.0)
    RunFolder(path, RECORDS, {"command": "rmat train"}).close()


def test_a_new_run_that_is_abandoned_leaves_nothing(path):
    before = os.umask(0o022)
    try:
        with RunFolder(path, RECORDS) as folder:
            (folder.internal / "config.json").write_text("{}")
            folder.abandon()
        assert not path.exists()
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    path.mkdir(parents=True)
    RunFolder(path, RECORDS).abandon()
    assert list(path.iterdir()) == []


def test_a_run_that_had_begun_is_not_abandoned(path):
    RunFolder(path, RECORDS).close()
    RunFolder(path, RECORDS).abandon()
    assert (path / "internal" / "records.hmac").exists()
    refused(path, RECORDS[:1])


def test_an_opening_that_was_killed_can_be_repeated(path):
    RunFolder(path, RECORDS).close()
    internal = path / "internal"
    (internal / "records.hmac").unlink()
    (internal / ".records.hmac.ab12cd").write_text("half")
    RunFolder(path, RECORDS).close()
    (internal / "records.hmac").unlink()
    (internal / "records.key").unlink()
    RunFolder(path, RECORDS).close()


@pytest.mark.parametrize("name", ["labels.json", "tokens.npz"])
def test_results_without_a_ledger_are_refused(path, name):
    RunFolder(path, RECORDS).close()
    (path / "internal" / name).write_text("")
    assert "what it spent is not known" in refused(path)


def test_a_run_that_lost_its_seal_is_refused(path):
    RunFolder(path, RECORDS).close()
    (path / "internal" / "ledger.jsonl").write_text("")
    (path / "internal" / "records.hmac").unlink()
    assert "ledger.jsonl" in refused(path)


def test_half_written_files_of_a_killed_run_are_removed(path):
    RunFolder(path, RECORDS).close()
    leftover = path / "internal" / ".tokens.npz.x1y2z3"
    leftover.write_text(SECRET)
    half_a_model = path / "internal" / ".model.x1y2z3"
    half_a_model.mkdir()
    (half_a_model / "counts.npz").write_text(SECRET)
    RunFolder(path, RECORDS).close()
    assert not leftover.exists()
    assert not half_a_model.exists()


def test_refusing_other_records_brings_no_tensorflow(path):
    RunFolder(path, RECORDS).close()
    code = (
        "import pathlib, sys; from tfpriv.cli.run_folder import RunFolder\n"
        "try: RunFolder(pathlib.Path(sys.argv[1]), [])\n"
        "except ValueError: sys.exit('tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_release_appears_as_a_whole_the_statement_first(path, monkeypatch):
    order = []
    replace = os.replace
    with RunFolder(path, RECORDS) as folder:
        with folder.staged_release() as staged:
            for name in ("synthetic.csv", "statement.txt", "privacy.json"):
                (staged / name).write_text("new")
                assert list(folder.release.iterdir()) == []
            monkeypatch.setattr(
                os, "replace", lambda a, b: (order.append(b.name), replace(a, b))
            )
        assert order == ["privacy.json", "statement.txt", "synthetic.csv"]
        assert {entry.name for entry in folder.release.iterdir()} == set(order)
        assert folder.statement() == b"new"


def test_a_release_that_fails_leaves_the_earlier_one(path):
    with RunFolder(path, RECORDS) as folder:
        assert folder.statement() is None
        (folder.release / "privacy.json").write_text("old")
        (folder.release / "synthetic.csv").write_text("old")
        before = sorted(folder.internal.iterdir())
        with (
            contextlib.suppress(KeyboardInterrupt),
            folder.staged_release() as staged,
        ):
            (staged / "synthetic.csv").write_text("new")
            raise KeyboardInterrupt
        assert folder.statement() == b"old"
        assert (folder.release / "synthetic.csv").read_text() == "old"
        assert sorted(folder.internal.iterdir()) == before


def test_a_new_release_takes_away_the_page_about_the_old_one(tmp_path):
    with RunFolder(tmp_path / "run", RECORDS) as folder:
        page = folder.release / "report.html"
        page.write_text("about an older release")
        with pytest.raises(OSError), folder.staged_release():
            raise OSError
        assert page.exists()
        with folder.staged_release() as staged:
            (staged / "privacy.json").write_text("{}")
        assert not page.exists()
