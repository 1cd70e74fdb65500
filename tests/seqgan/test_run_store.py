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


RECORDS = [("hunter2 one", "ham"), ("hunter2 two", "spam")]
OTHERS = [
    RECORDS[::-1],
    RECORDS[:1],
    [*RECORDS, RECORDS[0]],
    [(RECORDS[0][0], "spam"), RECORDS[1]],
    [(RECORDS[0][0] + RECORDS[0][1], ""), RECORDS[1]],
    [(text[:-1] + "2", label) for text, label in RECORDS],
    [],
]


def check_a_run_is_of_the_records_that_began_it(folder, store=RunStore):
    for number, others in enumerate(OTHERS):
        run = folder / str(number)
        assert store(run).claim(RECORDS)
        assert store(run).claim(iter(RECORDS))
        assert not store(run).claim(others)
        assert store(run).claim(RECORDS)
    seals = {path.read_text() for path in folder.glob("*/records.hmac")}
    assert len(seals) == len(OTHERS), "a seal without a key"
    for path in folder.glob("*/records.*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert "hunter2" not in path.read_text()


def test_a_run_is_of_the_records_that_began_it(tmp_path):
    check_a_run_is_of_the_records_that_began_it(tmp_path)


class AnyOrder(RunStore):
    def claim(self, records):
        return super().claim(sorted(records))


class TextsAlone(RunStore):
    def claim(self, records):
        return super().claim((text,) for text, _ in records)


class Joined(RunStore):
    def claim(self, records):
        return super().claim([("".join(part for r in records for part in r),)])


class SealsAnew(RunStore):
    def claim(self, records):
        (self.folder / "records.hmac").unlink(missing_ok=True)
        return super().claim(records)


class NoKey(RunStore):
    def claim(self, records):
        (self.folder / "records.key").write_text("0" * 64)
        return super().claim(records)


@pytest.mark.parametrize("twin", [AnyOrder, TextsAlone, Joined, SealsAnew, NoKey])
def test_a_twin_that_lets_other_records_in_is_refused(twin, tmp_path):
    with pytest.raises(AssertionError):
        check_a_run_is_of_the_records_that_began_it(tmp_path, twin)


def test_records_are_the_same_whatever_type_of_string_they_are(store):
    assert store.claim(RECORDS)
    assert store.claim([tuple(map(np.str_, record)) for record in RECORDS])
    assert store.claim([list(record) for record in RECORDS])


def test_without_the_key_nobody_is_let_in(store):
    assert store.claim(RECORDS)
    (store.folder / "records.key").unlink()
    assert not store.claim(RECORDS)


@pytest.mark.parametrize("content", ["", "häm", "0" * 64])
def test_a_damaged_seal_lets_nobody_in(store, content):
    assert store.claim(RECORDS)
    (store.folder / "records.hmac").write_text(content, encoding="utf-8")
    assert not store.claim(RECORDS)


def test_a_run_that_lost_its_seal_is_refused(store):
    assert store.claim(RECORDS)
    store.ledger(limit_epsilon=1.0, delta=1e-5)
    (store.folder / "records.hmac").unlink()
    with pytest.raises(InputError, match=r"without records\.hmac"):
        store.claim(RECORDS)


def test_results_without_a_ledger_are_refused(store):
    assert store.claim(RECORDS)
    store.save_arrays("tokens", {"x": np.arange(3)})
    with pytest.raises(InputError, match="what it spent is not known"):
        store.claim(RECORDS)


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
