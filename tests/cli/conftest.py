"""Private files with a secret in every row, and runs that take a moment."""

from __future__ import annotations

import csv
import errno
import os
import tempfile

import pytest

from tfpriv.cli import main

SECRET = "hunter2"
TEXTS = {
    "ham": "the song is good and i love the words of it",
    "spam": "check my channel now and win free money @ the link = win",
}


@pytest.fixture
def run(capsys):
    """Runs a command line; gives (exit code, stdout, stderr)."""

    def call(*arguments) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main.run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def refused(run):
    """Runs what must be refused: code 2, one line, nothing private. Gives the line."""

    def call(*arguments) -> str:
        code, out, err = run(*arguments)
        assert code == 2, err
        assert out == ""
        assert err.startswith("tfpriv: error: ")
        assert err.count("\n") == 1
        assert SECRET not in err
        return err

    return call


def rows(**counts: int) -> list[list[str]]:
    """Rows of an author, a text and a label; the texts of a class differ."""
    names = list(TEXTS)
    found = []
    for number, (label, count) in enumerate(counts.items()):
        words = TEXTS[names[number % len(names)]].split()
        for i in range(count):
            start = i % len(words)
            text = " ".join([SECRET, *words[start:], *words[: start // 2]])
            found.append([f"{SECRET}-{label}-{i}", text, label])
    return found


@pytest.fixture
def private(tmp_path):
    """A private file: AUTHOR, CONTENT, CLASS; 63 rows of ham and 64 of spam."""
    path = tmp_path / "private.csv"
    write(path, rows(ham=63, spam=64))
    return path


def write(path, records, columns=("AUTHOR", "CONTENT", "CLASS")):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(records)
    return path


@pytest.fixture(scope="session")
def small_prior():
    """A language prior of thirty tokens."""
    from tfpriv.text import LanguagePrior, Vocabulary

    words = dict.fromkeys(" ".join(TEXTS.values()).split())
    return LanguagePrior.from_texts(TEXTS.values(), Vocabulary([*words, "-", "+"]))


@pytest.fixture
def tiny(monkeypatch, small_prior):
    """Makes runs without a discriminator take a fraction of a second."""
    from tfpriv.seqgan import guaranteed

    monkeypatch.setattr(guaranteed.LanguagePrior, "load", lambda: small_prior)
    monkeypatch.setattr(guaranteed, "_SEEDS", 8)
    monkeypatch.setattr(guaranteed, "_JUDGED", 8)
    monkeypatch.setattr("tfpriv.seqgan.seed_model.NUM_PAIR_TOKENS", 6)


@pytest.fixture
def full_disk(monkeypatch):
    """Gives a function: from now on, files whose name begins so do not fit."""
    made: dict[int, str] = {}
    full: list[str] = []
    mkstemp, fsync = tempfile.mkstemp, os.fsync

    def noted(*args, prefix="", **kwargs):
        descriptor, name = mkstemp(*args, prefix=prefix, **kwargs)
        made[descriptor] = prefix.lstrip(".")
        return descriptor, name

    def failing(descriptor):
        if any(made.get(descriptor, "").startswith(name) for name in full):
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr("tfpriv._files.tempfile.mkstemp", noted)
    monkeypatch.setattr(os, "fsync", failing)
    return full.append
