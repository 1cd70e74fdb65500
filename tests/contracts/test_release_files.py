"""The files of a release tell what was paid for, and nothing else.

Two commands run on records, file formats, folders, users and machines that have
nothing in common; only what the mechanisms measured is the same. The files that may
leave must be the same, byte for byte, and hold nothing of either. Twins that write
one thing more must be refused.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import getpass
import json
import re
import socket
import time

import pytest

from tests.seqgan.small_release import (
    LABELS,
    OTHER_LABELS,
    OTHER_TEXTS,
    SECRET,
    SETTINGS,
    TEXTS,
    pinned,
    small_world,
)
from tfpriv.cli import main, synthesize
from tfpriv.seqgan import dp_seqgan

FILES = ["privacy.json", "statement.txt", "synthetic.csv"]


@pytest.fixture(autouse=True, scope="module")
def world():
    small = dataclasses.replace(SETTINGS, rounds=1)
    with small_world(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(dp_seqgan, "GANSettings", lambda **_: small)
        yield


@dataclasses.dataclass
class Run:
    """One command, and what it must not tell."""

    user: str
    machine: str
    name: str
    texts: list[str]
    labels: list[str]
    files: dict[str, bytes] = dataclasses.field(default_factory=dict)
    modes: set[int] = dataclasses.field(default_factory=set)

    def start(self, folder, *options):
        home = folder / self.user
        home.mkdir(parents=True)
        path, output = home / self.name, home / "run"
        self._write(path)
        line = ["synthesize", path, "--text", "text", "--label", "label"]
        line += ["--output", output, *options]
        with pytest.MonkeyPatch.context() as patch, pinned():
            for variable in ("USER", "LOGNAME", "USERNAME"):
                patch.setenv(variable, self.user)
            patch.setenv("HOME", str(home))
            patch.setenv("HOSTNAME", self.machine)
            patch.setattr(socket, "gethostname", lambda: self.machine)
            patch.chdir(home)
            assert main.run([str(part) for part in line]) == 0
        for path in sorted((output / "release").iterdir()):
            self.files[path.name] = path.read_bytes()
            self.modes.add(path.stat().st_mode & 0o777)

    def _write(self, path):
        rows = [
            {"author": f"{SECRET}-{i}", "text": f"{text} {SECRET}", "label": label}
            for i, (text, label) in enumerate(zip(self.texts, self.labels, strict=True))
        ]
        with path.open("w", encoding="utf-8", newline="") as file:
            if path.suffix == ".jsonl":
                file.writelines(json.dumps(row) + "\n" for row in rows)
            else:
                table = csv.DictWriter(file, rows[0])
                table.writeheader()
                table.writerows(rows)


def run_both(folder, *options):
    """Runs the command for two parties and returns both."""
    texts, labels = [*TEXTS * 4, *TEXTS[:7]], [*LABELS * 4, *LABELS[:7]]
    one = Run("annabel", "annas-tower", "klinik.csv", texts, labels)
    texts, labels = OTHER_TEXTS * 61, OTHER_LABELS * 61
    other = Run("bartholomew", "node-7", "notes.jsonl", texts, labels)
    one.start(folder, *options)
    other.start(folder, *options)
    return one, other


def check_the_files_are_the_same_whatever_the_records(one, other):
    assert sorted(one.files) == FILES
    assert one.files == other.files
    assert one.modes == other.modes == {0o644}


def check_the_files_hold_nothing_of_the_run(*runs):
    for run in runs:
        sizes = {len(run.texts), *map(run.labels.count, set(run.labels))}
        assert min(sizes) > 50
        for name, content in run.files.items():
            text = content.decode("utf-8")
            for word in (SECRET, run.user, run.machine, run.name, "nobody"):
                assert word not in text, name
            assert getpass.getuser() not in re.findall(r"\w+", text)
            assert not re.search(r"/(home|root|tmp|work|Users)\b|[A-Z]:\\", text)
            assert not re.search(
                r"\b20\d\d-\d\d?-\d\d?\b|\d\d:\d\d|(?<![\w.])1[6-9]\d{8}", text
            )
            numbers = re.findall(r"(?<![\w.])\d+(?![\w.])", text)
            assert not sizes & set(map(int, numbers)), name


SAME = check_the_files_are_the_same_whatever_the_records
NOTHING = check_the_files_hold_nothing_of_the_run
COUNTS = ["--discriminator-steps", "0"]
NETWORKS = ["--discriminator-steps", "1", "--labels", "ham,spam", "--rows", "30"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(COUNTS, id="counts"),
        pytest.param(NETWORKS, id="networks", marks=pytest.mark.slow),
    ],
)
def test_release_files(options, tmp_path):
    runs = run_both(tmp_path, *options)
    SAME(*runs)
    NOTHING(*runs)


RELEASE = synthesize.release


def exact_number_of_rows(model, data, folder, rows, budget):
    return RELEASE(model, data, folder, len(data), budget)


def adding(name, line):
    """A release that writes one line more to one of its files."""

    def twin(model, data, folder, rows, budget):
        result = RELEASE(model, data, folder, rows, budget)
        path = folder.release / name
        if path.suffix == ".json":
            value = json.loads(path.read_text())
            path.write_text(json.dumps(value | {"more": line(data, folder)}))
        else:
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{line(data, folder)}\n")
        return result

    return twin


@pytest.mark.parametrize(
    ("twin", "checks"),
    [
        (exact_number_of_rows, [SAME]),
        (adding("privacy.json", lambda data, _: len(data)), [SAME, NOTHING]),
        (
            adding("statement.txt", lambda data, _: data.labels.count("ham")),
            [SAME, NOTHING],
        ),
        (adding("statement.txt", lambda data, _: data.provenance["format"]), [SAME]),
        (adding("statement.txt", lambda _, folder: folder.path), [SAME, NOTHING]),
        (adding("privacy.json", lambda *_: socket.gethostname()), [SAME, NOTHING]),
        (adding("privacy.json", lambda *_: time.time()), [SAME, NOTHING]),
        (adding("statement.txt", lambda *_: datetime.date.today()), [NOTHING]),
        (
            adding("synthetic.csv", lambda data, _: f"{data.texts[3]},ham"),
            [SAME, NOTHING],
        ),
    ],
)
def test_a_twin_that_tells_more_is_refused(twin, checks, tmp_path, monkeypatch):
    monkeypatch.setattr(synthesize, "release", twin)
    runs = run_both(tmp_path, *COUNTS)
    for check in checks:
        with pytest.raises(AssertionError):
            check(*runs)
