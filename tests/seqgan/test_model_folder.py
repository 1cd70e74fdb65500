"""A model on disk is there as a whole or not at all, and open to those it may be."""

import contextlib
import os
import stat

import pytest

from tfpriv._errors import InputError
from tfpriv.seqgan.model_folder import model_folder

FILES = ("counts.npz", "generator-0.keras", "model.json")


class Killed(BaseException):
    """What ends a process and no `except Exception` sees."""


def save(path, content="new", fail_before=None, writer=model_folder, private=False):
    with writer(path, private=private) as folder:
        for name in FILES:
            if name == fail_before:
                (folder / name).write_text("ha")
                raise Killed
            (folder / name).write_text(content)


def content(path):
    if not path.exists():
        return {}
    return {entry.name: entry.read_text() for entry in path.iterdir()}


def whole(text):
    return dict.fromkeys(FILES, text)


def modes(path):
    return {stat.S_IMODE(p.stat().st_mode) for p in path.iterdir()}


def check_a_save_that_fails_leaves_what_was_there(folder, writer):
    path = folder / "deep" / "model"
    for name in FILES:
        with pytest.raises(Killed):
            save(path, fail_before=name, writer=writer)
        assert not path.exists()
    save(path, "old", writer=writer)
    for name in FILES:
        with pytest.raises(Killed):
            save(path, fail_before=name, writer=writer)
        assert content(path) == whole("old")
    save(path, "new", writer=writer)
    assert content(path) == whole("new")
    assert list(path.parent.iterdir()) == [path]


def test_a_save_that_fails_leaves_what_was_there(tmp_path):
    check_a_save_that_fails_leaves_what_was_there(tmp_path, model_folder)


@contextlib.contextmanager
def straight(path, *, private):
    path.mkdir(parents=True, exist_ok=True)
    yield path


@contextlib.contextmanager
def emptied_first(path, *, private):
    with contextlib.suppress(FileNotFoundError):
        for entry in path.iterdir():
            entry.unlink()
        path.rmdir()
    with model_folder(path, private=private) as folder:
        yield folder


@pytest.mark.parametrize("writer", [straight, emptied_first])
def test_a_twin_that_writes_where_a_model_may_be_is_refused(writer, tmp_path):
    with pytest.raises(AssertionError):
        check_a_save_that_fails_leaves_what_was_there(tmp_path, writer)


def test_a_rename_that_fails_puts_the_old_model_back(tmp_path, monkeypatch):
    path = tmp_path / "model"
    save(path, "old")
    rename = os.rename

    def failing(source, target):
        if source.name == "new":
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(OSError, match="Input/output"):
        save(path)
    assert content(path) == whole("old")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("umask", "private", "expected"),
    [
        (0o022, False, (0o755, 0o644)),
        (0o027, False, (0o750, 0o640)),
        (0o077, False, (0o700, 0o600)),
        (0o022, True, (0o700, 0o600)),
    ],
)
def test_modes_are_those_of_the_umask_unless_it_is_private(
    tmp_path, umask, private, expected
):
    before = os.umask(umask)
    try:
        save(tmp_path / "model", private=private)
    finally:
        os.umask(before)
    folder, files = expected
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == folder
    assert modes(tmp_path / "model") == {files}


def test_half_a_model_is_open_to_nobody(tmp_path):
    with model_folder(tmp_path / "model", private=True) as folder:
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
        assert folder.parent.parent == tmp_path


def test_an_empty_folder_and_a_link_to_one_are_filled(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    save(link)
    assert link.is_symlink()
    assert content(real) == whole("new")


@pytest.mark.parametrize("name", ["notes.txt", "counts.npz", ".hidden"])
def test_what_is_no_model_is_never_replaced(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(InputError, match=name):
        save(tmp_path)
    assert content(tmp_path) == {name: "mine"}
    with pytest.raises(InputError, match="is a file"):
        save(tmp_path / name)
    save(tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt"):
        save(tmp_path / "model")
    assert content(tmp_path / "model") == whole("new") | {"notes.txt": "mine"}
