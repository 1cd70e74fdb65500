from __future__ import annotations

import pytest

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset, write_table
from tfpriv.datasets.plain_texts import read_texts

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\n\r\nb", ["a", "", "b"]),
        (b"a\rb\r", ["a", "b"]),
        (b"\n", [""]),
        (b"\xef\xbb\xbfa \n  \n", ["a ", "  "]),
        (b"a\0bcdefghijkl\n", ["abcdefghijkl"]),
    ],
)
def test_a_line_is_a_text_and_none_is_left_out(tmp_path, content, texts):
    path = tmp_path / "texts.txt"
    path.write_bytes(content)
    assert read_texts(path) == texts


def test_rows_of_a_table_keep_their_places(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('ID,TEXT\n1,one\n2,""\n3," "\n4,"a, ""b""\nc"\n')
    assert read_texts(path, text="TEXT") == ["one", "", " ", 'a, "b"\nc']


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "tfrecord"])
def test_every_format_is_read(tmp_path, kind):
    path = tmp_path / f"table.{kind}"
    write_table(TextDataset(["one", "two"], ["a", "b"]), path)
    assert read_texts(path, text="text") == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("a.txt", b"", {}, "received none"),
        ("a.csv", b"", {"text": "TEXT"}, "empty file"),
        ("a.csv", b"ID,TEXT\n", {"text": "TEXT"}, "received none"),
        ("a.csv", b"ID,TEXT\n1,hunter2\n", {"text": "WORDS"}, "ID, TEXT"),
        ("a.csv", b"ID,TEXT\n1,hunter2\n", {}, "text column"),
        ("a.txt", b"hunter2\n", {"text": "TEXT"}, "no column"),
        ("a.txt", b"hunter2 \xe9\n", {}, "UTF-8"),
        ("a.txt", b"hunter2\nhunter2 x\n", {"max_chars": 8}, "line 2"),
        ("a", b"hunter2", {}, "csv, tsv, jsonl, tfrecord, txt"),
        ("a.pdf", b"hunter2", {}, "Give the format"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, name, content, options, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_texts(path, **options)
    assert words in str(caught.value)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_is_none_is_refused(tmp_path):
    for path in (tmp_path / "none.txt", tmp_path):
        with pytest.raises(InputError):
            read_texts(path, format="txt")
