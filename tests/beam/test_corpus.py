"""`python -m tfpriv.beam`: files in, a folder of releases out, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.beam.models import DIMENSION, SPAM
from tfpriv._errors import InputError
from tfpriv.accounting import DataBudget
from tfpriv.beam import Privatize, command, privatize_corpus
from tfpriv.datasets import TextDataset, write_table

SECRET = "my secret"
TEXTS = tuple(f"{SECRET} {n}" for n in range(30))


@pytest.fixture
def run(capsys):
    def call(*line):
        code = command.run([str(part) for part in line])
        out, err = capsys.readouterr()
        assert SECRET not in out + err
        return code, out, err

    return call


@pytest.fixture
def refused(run, tmp_path):
    def call(*line, code=2):
        before = sorted(tmp_path.rglob("*"))
        got, out, err = run(*line)
        assert (got, out) == (code, ""), err
        assert err.startswith("tfpriv.beam: error: ")
        assert err.count("\n") == 1
        state = tmp_path / "state"
        after = [p for p in sorted(tmp_path.rglob("*")) if state not in p.parents]
        assert [p for p in after if p != state] == [
            p for p in before if state not in p.parents and p != state
        ]
        return err

    return call


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "mine.csv"
    rows = [f"k{n},{text}" for n, text in enumerate(TEXTS)]
    path.write_text("\n".join(["id,text", *rows]) + "\n")
    return path


def read(folder):
    """key -> vector of the TFRecord files in a folder."""
    found = {}
    for path in sorted(folder.glob("release/part-*.tfrecord")):
        for record in tf.data.TFRecordDataset(str(path)):
            feature = tf.train.Example.FromString(record.numpy()).features.feature
            assert set(feature) == {"key", "representation", "shape"}
            (key,) = feature["key"].bytes_list.value
            assert key.decode() not in found
            vector = np.array(feature["representation"].float_list.value, np.float32)
            found[key.decode()] = vector.reshape(feature["shape"].int64_list.value)
    return found


def letters(folder):
    lines = (folder / "internal" / "dead_letters.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "tfrecord", "txt"])
def test_every_format_is_released_whole(run, model, format, tmp_path):
    source = tmp_path / f"mine.{format}"
    if format == "txt":
        source.write_text("\n".join(TEXTS) + "\n")
    else:
        write_table(TextDataset(TEXTS), source)
    column = [] if format == "txt" else ["--text", "text"]
    out = tmp_path / "out"
    code, said, err = run("--input", source, *column, "--model", model, "--output", out)
    assert code == 0, err
    assert "Wrote 30 representations" in said
    assert "epsilon 4" in err
    found = read(out)
    first = 2 if format in ("csv", "tsv") else 1
    assert set(found) == {f"mine.{format}:{n}" for n in range(first, first + 30)}
    assert all(vector.shape == (DIMENSION,) for vector in found.values())
    assert letters(out) == []
    assert (out / "_SUCCESS").exists()
    statement = json.loads((out / "release" / "privacy.json").read_text())
    exported = json.loads((model / "1/assets.extra/privacy.json").read_text())
    assert statement["releases"] == 1
    assert statement["epsilon"] == exported["epsilon"]
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert out.stat().st_mode & 0o777 == 0o700


def test_the_features_are_those_of_the_local_command(run, model, table, tmp_path):
    """Both write the same bytes for a vector, but for the key."""
    from tfpriv.cli.encode import _tfrecord

    out = tmp_path / "out"
    line = ["--input", table, "--text", "text", "--key", "id", "--model", model]
    assert run(*line, "--output", out)[0] == 0
    vectors = list(read(out).values())
    path = tmp_path / "local.tfrecord"
    path.write_bytes(b"".join(_tfrecord(np.stack(vectors))))
    local = [
        tf.train.Example.FromString(record.numpy())
        for record in tf.data.TFRecordDataset(str(path))
    ]
    (part,) = out.glob("release/part-*")
    for mine, record in zip(local, tf.data.TFRecordDataset(str(part)), strict=True):
        example = tf.train.Example.FromString(record.numpy())
        del example.features.feature["key"]
        assert example == mine


def test_parquet_has_the_same_columns(run, model, table, tmp_path):
    import pyarrow.parquet

    out = tmp_path / "out"
    line = ["--input", table, "--text", "text", "--key", "id", "--model", model]
    code, said, err = run(
        *line, "--output", out, "--output-format", "parquet", "--shards", "2", "--json"
    )
    assert code == 0, err
    told = json.loads(said)
    assert (told["released"], told["dead_letters"]) == (30, 0)
    parts = sorted(out.glob("release/part-*.parquet"))
    assert len(parts) == 2
    rows = [row for p in parts for row in pyarrow.parquet.read_table(p).to_pylist()]
    assert sorted(row["key"] for row in rows) == sorted(f"k{n}" for n in range(30))
    assert {len(row["representation"]) for row in rows} == {DIMENSION}
    assert all(row["shape"] == [DIMENSION] for row in rows)


def test_a_file_named_twice_is_read_once_and_keys_tell_files_apart(
    run, model, tmp_path
):
    for folder in ("one", "two"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        (tmp_path / "in" / folder / "a.txt").write_text("a\nb\n")
    out = tmp_path / "out"
    inputs = [f"{tmp_path}/in/*/a.txt", f"{tmp_path}/in/one/*"]
    assert run("--input", *inputs, "--model", model, "--output", out)[0] == 0
    assert set(read(out)) == {
        f"{folder}/a.txt:{n}" for folder in ("one", "two") for n in (1, 2)
    }


def test_bad_records_are_told_and_the_others_released(run, model, tmp_path):
    source = tmp_path / "mine.csv"
    source.write_bytes(b"id,text\nk1,a\nk1,b\nk2,\xff\nk3,c,d\n,e\nk4,\nk5,refused\n")
    out = tmp_path / "out"
    line = ["--input", source, "--text", "text", "--key", "id", "--model", model]
    code, said, err = run(*line, "--output", out)
    assert code == 0, err
    assert "dead letters: 5" in said
    assert set(read(out)) == {"k1", "k4"}
    assert sorted((letter["key"], letter["reason"]) for letter in letters(out)) == [
        ("k1", "the key came before: a record is released once"),
        ("k5", "the model refused the text"),
        ("mine.csv:4", "the row is not UTF-8"),
        ("mine.csv:5", "3 cells, not 2 as in the header"),
        ("mine.csv:6", "the key is empty"),
    ]
    counters = json.loads((out / "internal" / "counters.json").read_text())
    assert counters == {"read": 7, "released": 2, "dead_letters": 5, "unread_files": 0}


def test_a_corrupt_tfrecord_is_read_as_far_as_it_goes_and_told(run, model, tmp_path):
    for name in "ab":
        write_table(TextDataset(TEXTS), tmp_path / f"{name}.tfrecord")
    path = tmp_path / "b.tfrecord"
    path.write_bytes(path.read_bytes()[:-20])
    out = tmp_path / "out"
    line = ["--input", f"{tmp_path}/*.tfrecord", "--text", "text", "--model", model]
    code, _, err = run(*line, "--output", out)
    assert code == 0
    assert "warning: 1 files were not read to their end" in err
    assert len(read(out)) == 59
    (letter,) = letters(out)
    assert letter["key"] == "b.tfrecord:30"
    assert "corrupt" in letter["reason"]


def test_two_runs_differ_in_every_vector(run, model, table, tmp_path):
    line = ["--input", table, "--text", "text", "--key", "id", "--model", model]
    for name in ("one", "two"):
        assert run(*line, "--output", tmp_path / name)[0] == 0
    one, two = read(tmp_path / "one"), read(tmp_path / "two")
    assert one.keys() == two.keys()
    assert not any(np.array_equal(one[key], two[key]) for key in one)


def test_a_corpus_is_charged_once(run, refused, model, table, tmp_path):
    DataBudget.create(table, epsilon=9.0, delta=1e-5, id="mine")
    line = ["--input", table, "--text", "text", "--key", "id", "--model", model]
    for number in (1, 2):
        code, _, err = run(*line, "--output", tmp_path / f"out{number}")
        assert code == 0, err
        assert "charged to data set mine: 1 release" in err
        assert DataBudget.load("mine").epsilon() == pytest.approx(4.0 * number)
        assert DataBudget.load("mine").adjacency == "replace-one"
    assert "no record was used" in refused(*line, "--output", tmp_path / "out3")
    assert DataBudget.load("mine").epsilon() == pytest.approx(8.0)


@pytest.mark.parametrize(("key", "releases"), [(["--key", "id"], 1), ([], 2)])
def test_two_files_of_a_data_set_cost_once_only_where_keys_tell(
    run, model, table, tmp_path, key, releases
):
    budget = DataBudget.create(table, epsilon=100.0, delta=1e-5, id="mine")
    other = tmp_path / "other.csv"
    other.write_text("id,text\nk1,a\nnew,b\n")
    budget.accept(other)
    line = ["--input", table, other, "--text", "text", *key, "--model", model]
    assert run(*line, "--output", tmp_path / "out")[0] == 0
    assert len(read(tmp_path / "out")) == (31 if key else 32)
    assert DataBudget.load("mine").epsilon() == pytest.approx(4.0 * releases)


def test_a_changed_data_set_is_refused_uncharged(refused, model, table, tmp_path):
    DataBudget.create(table, epsilon=9.0, delta=1e-5, id="mine")
    table.write_text("id,text\nk1,other\n")
    line = ["--input", table, "--text", "text", "--model", model]
    assert "changed file" in refused(*line, "--output", tmp_path / "out")
    assert DataBudget.load("mine").epsilon() == 0


REFUSED = {
    "no file": (["--input", "{tmp}/none*.csv"], "received none"),
    "a folder": (["--input", "{tmp}"], "folders alone"),
    "no column": (["--text", "other"], "column 'other'"),
    "no text column": (["--text="], "column ''"),
    "no such key": (["--key", "other"], "column 'other'"),
    "one column twice": (["--key", "text"], "different columns"),
    "no model": (["--model", "{tmp}"], "numbered version"),
    "output that exists": (["--output", "{tmp}"], "which exists"),
    "output nowhere": (["--output", "{tmp}/a/b"], "Make"),
    "output in the model": (["--output", "{model}/out"], "outside the model"),
    "unknown format": (["--format", "xml"], "xml"),
    "a name that tells nothing": (["--input", "{tmp}/mine"], "file name"),
    "columns of plain text": (["--format", "txt"], "Expected no columns"),
    "no record": (["--input", "{tmp}/empty.csv"], "received none"),
    "not a table": (["--format", "tfrecord"], "corrupt"),
    "no batch": (["--batch-size", "0"], "batch_size"),
    "shards": (["--shards", "-1"], "shards"),
    "unknown runner": (["--runner", "Spark"], "Spark"),
    "unknown option": (["--txet", "text"], "'--txet'"),
    "Dataflow and a local disk": (["--runner", "DataflowRunner"], "gs://|apache-beam"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_refused_before_work(refused, model, table, tmp_path, name):
    import re

    changed, word = REFUSED[name]
    (tmp_path / "mine").write_text("a\n")
    (tmp_path / "empty.csv").write_text("id,text\n")
    line = ["--input", table, "--text", "text", "--model", model]
    line += ["--output", tmp_path / "out"]
    line += [part.format(tmp=tmp_path, model=model) for part in changed]
    assert re.search(word, refused(*line))


def test_logging_is_as_it_was_before(refused, model, table, tmp_path):
    import logging

    before = logging.root.manager.disable
    refused("--input", table, "--model", model, "--output", tmp_path)
    assert logging.root.manager.disable == before


def test_nothing_is_left_if_no_record_can_be_released(refused, model, tmp_path):
    source = tmp_path / "mine.jsonl"
    source.write_text("no json\n" * 5)
    line = ["--input", source, "--text", "text", "--model", model]
    said = refused(*line, "--output", tmp_path / "out", code=1)
    assert "all 5 records are dead letters" in said


class Dies:
    """A model that goes while it works."""

    def __init__(self, error):
        self._error = error

    def __call__(self, texts):
        raise self._error


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (RuntimeError(SECRET), "RuntimeError"),
        (tf.errors.InternalError(None, None, SECRET), "InternalError"),
    ],
)
def test_nothing_is_left_of_a_run_that_dies(
    refused, model, table, tmp_path, monkeypatch, error, word
):
    from tfpriv.serving import ExportedModel

    monkeypatch.setattr(ExportedModel, "load", lambda self: Dies(error))
    line = ["--input", table, "--text", "text", "--model", model]
    assert word in refused(*line, "--output", tmp_path / "out", code=1)


def test_a_model_without_a_guarantee_says_so(run, model, table, tmp_path):

    copy = shutil.copytree(model, tmp_path / "copy")
    path = copy / "1" / "assets.extra" / "privacy.json"
    from tfpriv.accounting import RepresentationStatement

    statement = RepresentationStatement(
        None, method="Unprotected", encoder_trained_on_private_text=True
    )
    path.write_text(json.dumps(statement.to_json()))
    line = ["--input", table, "--text", "text", "--model", copy]
    code, _, err = run(*line, "--output", tmp_path / "out")
    assert code == 0
    assert "NO guarantee" in err


def test_a_function_too(model, table, tmp_path):
    made = privatize_corpus(str(table), tmp_path / "out", model, text="text", key="id")
    assert made.counters["released"] == 30
    assert made.statement.epsilon == 4.0
    assert made.charged == {}
    with pytest.raises(InputError, match="which exists"):
        privatize_corpus(str(table), tmp_path / "out", model, text="text")


def test_help_imports_neither_beam_nor_tensorflow():
    code = (
        "import sys\n"
        "from tfpriv.beam import command\n"
        "try:\n    command.run(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'apache_beam', 'tensorflow'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("[]\n")


@pytest.fixture
def started(model, tmp_path):
    """A run over many records, in the middle of its work, and its outputs' folder."""
    source = tmp_path / "mine.txt"
    source.write_text(f"{SECRET}\n" * 60_000)
    folder = tmp_path / "outputs"
    folder.mkdir()
    processes = []

    def start(mode):
        line = ["--input", source, "--model", model, "--output", folder / "out"]
        line += ["--direct_num_workers", "2", "--direct_running_mode", mode]
        process = subprocess.Popen(
            [sys.executable, "-m", "tfpriv.beam", *map(str, line)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        deadline = time.monotonic() + 120
        while not list(folder.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(5)
        return process, folder

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()


def children(pid):
    """Processes below one, the youngest last."""
    task = Path(f"/proc/{pid}/task")
    found = []
    for thread in task.iterdir():
        for child in map(int, (thread / "children").read_text().split()):
            found += [child, *children(child)]
    return found


def resident(pid):
    """MiB of a process."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") >> 20


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["in_memory", "multi_processing"])
def test_ctrl_c_leaves_nothing(started, mode):
    process, folder = started(mode)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert SECRET not in out + err
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_a_worker_that_is_killed_fails_the_run_and_leaves_nothing(started):
    process, folder = started("multi_processing")
    # They are begun after the runner, and one that is killed before it has reported is
    # waited for, by Beam's runner.
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        below = children(process.pid)
        workers = [
            pid
            for pid in below
            if b"sdk_worker_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        if workers and resident(workers[-1]) >= 500:
            break
        time.sleep(0.2)
    time.sleep(2)
    os.kill(workers[-1], signal.SIGKILL)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 1, err
    assert SECRET not in out + err
    assert list(folder.iterdir()) == []


_MEASURE = """
import resource, sys
from tfpriv.beam.command import run

code = run(sys.argv[1:])
kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
print(code, *(resource.getrusage(kind).ru_maxrss // 1024 for kind in kinds))
"""


@pytest.mark.slow
def test_memory_over_a_hundred_thousand_rows_is_bounded(tmp_path):
    """The local runner holds what it shuffles; its workers take a little more."""
    peaks = {}
    for rows in (10_000, 100_000):
        source = tmp_path / f"{rows}.csv"
        with source.open("w") as file:
            file.write("id,text\n")
            for n in range(rows):
                file.write(f"k{n},check my channel number {n} and subscribe\n")
        line = ["--input", source, "--text", "text", "--key", "id", "--model", SPAM]
        line += ["--output", tmp_path / f"out{rows}", "--json"]
        line += ["--direct_num_workers", "2"]
        line += ["--direct_running_mode", "multi_processing"]
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, *map(str, line)],
            capture_output=True,
            text=True,
            check=True,
        )
        *_, last = done.stdout.strip().splitlines()
        code, *peaks[rows] = map(int, last.split())
        assert code == 0
        assert len(read(tmp_path / f"out{rows}")) == rows
    print("peak MiB, runner and largest worker:", peaks)
    runner, worker = (b - a for a, b in zip(*peaks.values(), strict=True))
    assert worker < 200
    # Bytes that a row may take in the runner's own shuffles.
    assert runner * 2**20 / 90_000 < 3000


@pytest.fixture
def of_a_data_set(model, tmp_path):
    """A model whose encoder learnt from a data set that has a budget."""
    records = tmp_path / "records.csv"
    records.write_text("text\nshe is good\n")
    budget = DataBudget.create(records, epsilon=8.0, delta=1e-5, id="learnt")
    folder = shutil.copytree(model, tmp_path / "of")
    path = folder / "1" / "assets.extra" / "serving.json"
    lineage = {"data_set": budget.id, "ledger": budget.ledger.id}
    path.write_text(json.dumps({**json.loads(path.read_text()), "trained_on": lineage}))
    return folder


def unprotected():
    lines = DataBudget.load("learnt").ledger.lines()
    details = [getattr(line, "details", None) or {} for line in lines]
    return [found for found in details if found.get("unprotected")]


def test_an_encoder_of_a_data_set_with_a_budget_needs_leave(
    run, refused, of_a_data_set, table, tmp_path
):
    line = ["--input", table, "--text", "text", "--key", "id", "--model", of_a_data_set]
    message = refused(*line, "--output", tmp_path / "out")
    assert "--unprotected-training" in message
    assert "learnt" in message
    with pytest.raises(InputError, match="unprotected_training=True"):
        Privatize(of_a_data_set)
    assert unprotected() == []
    code, _, err = run(*line, "--output", tmp_path / "out", "--unprotected-training")
    assert code == 0, err
    assert len(unprotected()) == 1
