from __future__ import annotations

import json
import shutil

import pytest

from tests.evaluation.run_folders import representation_run, synthetic_run, texts, write
from tests.evaluation.test_report import outside
from tfpriv.evaluation.report_run import (
    REPRESENTATION,
    TEXT,
    InternalFiles,
    ReleasedFiles,
)


@pytest.fixture
def run(tmp_path):
    return synthetic_run(tmp_path / "run")


def test_a_release_is_read_without_the_rest(run):
    shutil.rmtree(run / "internal")
    released = ReleasedFiles.read(run)
    assert released.kind == TEXT
    assert len(released.synthetic) == 50
    assert released.faults == ()
    assert set(released.digests) == {"privacy.json", "synthetic.csv"}
    with pytest.raises(ValueError, match="--release"):
        InternalFiles.read(run, TEXT)


def test_a_representation_has_no_text(tmp_path):
    run = representation_run(tmp_path / "run")
    released = ReleasedFiles.read(run)
    assert (released.kind, released.synthetic) == (REPRESENTATION, None)
    files = InternalFiles.read(run, REPRESENTATION)
    assert files.ledger is None
    assert len(files.history) == 2


def test_rows_without_text_are_counted(run):
    with (run / "release" / "synthetic.csv").open("a", encoding="utf-8") as file:
        file.write('"","ham"\n" ","spam"\n')
    released = ReleasedFiles.read(run)
    assert (len(released.synthetic), released.dropped) == (50, 2)
    assert "2 more have no text" in outside(run)


def test_a_statement_that_its_events_do_not_bear_out_has_faults(run):
    path = run / "release" / "privacy.json"
    write(path, json.loads(path.read_text()) | {"epsilon": 0.1})
    assert "epsilon" in ReleasedFiles.read(run).faults[0]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("release/privacy.json", None, "has ended.*privacy.json.*command again"),
        ("release/privacy.json", "{", "no JSON"),
        ("release/privacy.json", "{}", "JSON that is none"),
        ("release/privacy.json", '{"schema_version": 99}', "version 99"),
        ("release/synthetic.csv", None, "has ended.*synthetic.csv"),
        ("release/synthetic.csv", "", "two|text and a label column.*0 columns"),
        ("release/synthetic.csv", "text,label\n", "rows below the header"),
        ("release/synthetic.csv", "text\nx\n", "1 columns"),
        ("internal/config.json", None, "whole run.*config.json"),
        ("internal/config.json", "{", "damaged"),
        ("internal/config.json", "[]", "damaged"),
        ("internal/config.json", '{"schema_version": 7}', "version 7"),
        ("internal/config.json", '{"command": "rmat train"}', "another command"),
        ("internal/config.json", '{"mode": "other"}', "another version"),
        ("internal/ledger.jsonl", "{}", "ledger"),
    ],
)
def test_half_a_run_or_another_version_is_refused_in_one_line(
    run, name, content, words
):
    path = run / name
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(ValueError, match=words) as caught:
        InternalFiles.read(run, ReleasedFiles.read(run).kind)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_what_is_no_run_is_refused(make, tmp_path):
    make(tmp_path / "none")
    with pytest.raises(ValueError, match=r"folder of a run .* `tfpriv synth"):
        ReleasedFiles.read(tmp_path / "none")


def test_damaged_results_are_named_and_left_out(run):
    for name in ("audit.json", "attack.json"):
        (run / "internal" / name).write_text("{")
    files = InternalFiles.read(run, TEXT)
    assert set(files.damaged) == {"audit.json", "attack.json"}
    assert files.audit is files.attribute_attack is None


def test_the_release_is_read_as_it_was_written(tmp_path):
    rows = texts(40, 3)
    run = synthetic_run(tmp_path / "run", synthetic=rows)
    found = ReleasedFiles.read(run).synthetic
    assert (found.texts, found.labels) == (rows.texts, rows.labels)
