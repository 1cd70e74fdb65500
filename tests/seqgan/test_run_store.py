"""What a run knows is on disk whole, private, and there again after a kill."""

import stat

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.accounting import Gaussian
from tfpriv.seqgan.run_store import RunStore


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "run")


def test_what_was_saved_comes_back(store):
    store.save_arrays("counts", {"x": np.arange(3), "noise": 1.5})
    store.save_json("labels", ["häm", "spam"])
    again = RunStore(store.folder)
    assert again.arrays("counts")["x"].tolist() == [0, 1, 2]
    assert float(again.arrays("counts")["noise"]) == 1.5
    assert again.json("labels") == ["häm", "spam"]


def test_what_was_not_saved_is_none(store):
    assert store.arrays("counts") is None
    assert store.json("labels") is None


def test_nobody_else_can_read_it(store):
    store.save_arrays("counts", {"x": np.arange(3)})
    store.save_json("labels", [])
    store.ledger(limit_epsilon=1.0, delta=1e-5).charge("tokens", Gaussian(9.0))
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert len(list(store.folder.iterdir())) >= 3
    for path in store.folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_a_save_that_fails_leaves_what_was_there(store, monkeypatch):
    store.save_arrays("counts", {"x": np.arange(3)})

    def half(file, **arrays):
        file.write(b"PK")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="no space"):
        store.save_arrays("counts", {"x": np.arange(4)})
    assert store.arrays("counts")["x"].tolist() == [0, 1, 2]
    assert [path.name for path in store.folder.iterdir()] == ["counts.npz"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"no archive"])
def test_a_damaged_file_is_an_error_that_says_which(store, content):
    (store.folder / "counts.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"counts\.npz"):
        store.arrays("counts")


def test_nothing_is_unpickled(store):
    path = store.folder / "counts.npz"
    np.savez(path, x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError):
        store.arrays("counts")


def test_without_a_folder_nothing_outlives_the_store():
    store = RunStore()
    folder = store.folder
    store.save_json("labels", ["ham"])
    assert folder.exists()
    store.close()
    assert not folder.exists()


def test_the_ledger_of_a_folder_remembers_its_charges(store):
    store.ledger(limit_epsilon=2.0, delta=1e-5).charge("tokens", Gaussian(9.0))
    again = RunStore(store.folder).ledger(limit_epsilon=2.0, delta=1e-5)
    assert [charge.name for charge in again.events()] == ["tokens"]
