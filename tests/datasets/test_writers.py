from __future__ import annotations

import csv
import errno
import io
import os
import stat
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset, guard_formula, read_table, write_table

FORMULAS = [
    "=1+1",
    "+1",
    "-1+1",
    "@SUM(A1)",
    " =1+1",
    "\t=1+1",
    "\n=1+1",
    "\r\n=1+1",
    "\u00a0=1+1",
    "\ufeff=1+1",
    "\u200b\u200e =1+1",
    "\0=1+1",
    "＝1+1",
    "＋1",
    "－1",
    "＠SUM",
    "﹦1",
    "\tharmless but a tab",
    "\rharmless but a CR",
    "−1",
]
HARMLESS = ["", "hi", "a=b", "1+1", "'quoted", "http://x.y/?a=b", "😀", "é", "   ", "…"]


def cells(path) -> list[list[str]]:
    text = path.read_bytes().decode()
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


@pytest.mark.parametrize("cell", FORMULAS)
def test_a_formula_gets_an_apostrophe_and_loses_nothing(cell):
    assert guard_formula(cell) == "'" + cell
    assert guard_formula(guard_formula(cell)) == "'" + cell


@pytest.mark.parametrize("cell", HARMLESS)
def test_other_cells_stay_as_they_are(cell):
    assert guard_formula(cell) == cell


@pytest.mark.parametrize("label", ["-1", "+1", "-1.5", "1e-3", "-.5"])
def test_a_label_that_is_a_plain_number_stays_itself(label):
    assert guard_formula(label, numbers=False) == label


@pytest.mark.parametrize("label", ["-1+1", "+A1", "=1", "-", "-1\n", "−1"])
def test_a_label_that_is_no_plain_number_is_guarded(label):
    assert guard_formula(label, numbers=False) == "'" + label


@given(st.text(st.characters(codec="utf-8")))
def test_no_guarded_cell_starts_like_a_formula(text):
    cell = guard_formula(text)
    assert cell.endswith(text)
    folded = unicodedata.normalize("NFKC", cell)
    assert not folded.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert not folded.strip().startswith(("=", "+", "-", "@"))


def test_only_the_text_and_the_label_column_are_written(tmp_path):
    data = TextDataset(
        ["hi", "=cmd|' /C calc'!A0"],
        ["ham", "=spam"],
        ["ann", "bob"],
        text_column="CONTENT",
        label_column="=CLASS",
        provenance={"source": "secret.csv"},
    )
    data.to_csv(tmp_path / "out.csv")
    assert cells(tmp_path / "out.csv") == [
        ["CONTENT", "'=CLASS"],
        ["hi", "ham"],
        ["'=cmd|' /C calc'!A0", "'=spam"],
    ]


def test_a_spreadsheet_that_splits_at_semicolons_or_tabs_finds_no_formula(tmp_path):
    texts = ["hello;=1+1", "a\t=1+1", 'say "x;=1+1"', "a;b\n=1+1"]
    TextDataset(texts, ["x"] * 4).to_csv(tmp_path / "out.csv")
    content = (tmp_path / "out.csv").read_text(encoding="utf-8")
    for delimiter in ";\t":
        # Lenient, as spreadsheets are: text behind a closing quote is kept.
        for row in csv.reader(io.StringIO(content, newline=""), delimiter=delimiter):
            assert not any(cell.lstrip().startswith(("=", "+")) for cell in row)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
@given(rows=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"))))
def test_what_is_written_unguarded_reads_back(tmp_path_factory, suffix, rows):
    path = tmp_path_factory.mktemp("round") / f"data.{suffix}"
    # A letter in front, so that the reader counts no text as empty.
    data = TextDataset(["x" + row for row in [*rows, '"', "\t\n"]])
    write_table(data, path, guard_formulas=False)
    assert read_table(path, text="text").texts == data.texts


def test_files_are_private_unless_a_release_says_otherwise(tmp_path):
    data = TextDataset(["hi"], ["ham"])
    data.to_csv(tmp_path / "private.csv")
    data.to_csv(tmp_path / "release.csv", mode=0o644)
    assert stat.S_IMODE(os.stat(tmp_path / "private.csv").st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "release.csv").st_mode) == 0o644


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    TextDataset(["old"], ["ham"]).to_csv(path)
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        TextDataset(["new"], ["ham"]).to_csv(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.csv"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="Create it first"):
        TextDataset(["hi"]).to_csv(tmp_path / "no" / "out.csv")


def test_half_a_surrogate_pair_does_not_break_a_release(tmp_path):
    TextDataset(["a\ud83d"], ["ham"]).to_csv(tmp_path / "out.csv")
    assert cells(tmp_path / "out.csv")[1] == ["a\ufffd", "ham"]
