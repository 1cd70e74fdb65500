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


class _Full:
    """A file of which nothing fits on the disk."""

    def __init__(self, file):
        self._file = file

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()

    def write(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def full_disk(monkeypatch):
    """A list: files whose names begin with what is in it do not fit on the disk."""
    made: dict[int, str] = {}
    full: list[str] = []
    mkstemp, fdopen = tempfile.mkstemp, os.fdopen

    def noted(*args, prefix="", **kwargs):
        descriptor, name = mkstemp(*args, prefix=prefix, **kwargs)
        made[descriptor] = prefix.lstrip(".")
        return descriptor, name

    def opened(descriptor, *args, **kwargs):
        file = fdopen(descriptor, *args, **kwargs)
        if any(made.get(descriptor, "").startswith(name) for name in full):
            file = _Full(file)
        return file

    monkeypatch.setattr("tfpriv._files.tempfile.mkstemp", noted)
    monkeypatch.setattr("tfpriv._files.os.fdopen", opened)
    return full


# Representations: a BERT of a few thousand weights, and a run on it.

SENTENCES = {
    ("good", "female"): "she {} her great table , {}",
    ("good", "male"): "he {} his good car , {}",
    ("bad", "female"): "her awful door {} , {}",
    ("bad", "male"): "his bad car {} , {}",
}
ACTIONS = ["walks", "runs", "sees", "is", "was", "love", "hate", "play"]
WORDS = ["the", "a", "it", "you", "we", "they", "man", "woman", "fine", "sad", "."]
TASK = ["--text", "CONTENT", "--label", "MOOD", "--private", "GENDER"]
QUICK = ["--epochs", "2", "--batch-size", "32", "--no-tensorboard"]


def gendered(count: int = 160) -> list[list[str]]:
    """Rows of CONTENT, MOOD, GENDER; every text has the secret, no two are equal."""
    kinds = list(SENTENCES)
    found = []
    for number in range(count):
        mood, gender = kinds[number % len(kinds)]
        action = ACTIONS[number // 4 % len(ACTIONS)]
        word = " ".join(WORDS[number // 32 % len(WORDS)] for _ in range(1 + number % 3))
        text = SENTENCES[mood, gender].format(action, word)
        found.append([f"{text} {SECRET}{number}", mood, gender])
    return found


def write_gendered(path, records=None):
    columns = ("CONTENT", "MOOD", "GENDER")
    return write(path, gendered() if records is None else records, columns)


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """The folder of a tiny BERT, as KerasNLP writes one."""
    import keras_nlp

    from tests.representation.conftest import VOCABULARY, make_backbone

    folder = tmp_path_factory.mktemp("bert") / "tiny"
    make_backbone().save_to_preset(folder)
    tokenizer = keras_nlp.models.BertTokenizer(vocabulary=VOCABULARY, lowercase=True)
    tokenizer.save_to_preset(folder)
    return folder


@pytest.fixture(scope="session")
def trained(tmp_path_factory, bert):
    """A finished run, to be read and not written: (its folder, its file)."""
    folder = tmp_path_factory.mktemp("trained")
    file = write_gendered(folder / "private.csv")
    line = ["rmat", "train", file, *TASK, "--output", folder / "run", *QUICK]
    assert main.run([str(part) for part in [*line, "--preset", bert]]) == 0
    return folder / "run", file


@pytest.fixture(scope="session")
def trained_model(trained):
    """The model of that run, loaded once."""
    from tfpriv.cli._representation_run import load_model

    return load_model(trained[0])


@pytest.fixture
def preloaded(trained_model, monkeypatch):
    """Spares commands the loading of the run's model, which takes seconds."""
    for command in ("encode", "rmat_attack"):
        monkeypatch.setattr(
            f"tfpriv.cli.{command}.load_model", lambda folder: trained_model
        )
