"""Files read as a stream: the same texts as the readers give, and faults told apart."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from tfpriv._errors import InputError
from tfpriv.beam.records import Columns, Fault, Record, check_head, read_records
from tfpriv.datasets import TextDataset, read_texts, write_table

TEXTS = ("hi, all", 'say "no"', "two\nlines", "", "über ☃", "=1+1", "a;b\tc")
SECRET = "my secret"


def read(data, format="csv", *columns):
    columns = Columns(*(columns or ("text",)))
    return list(read_records(io.BytesIO(data), "mine", format, columns))


def as_text(record):
    text = record.text
    return text.decode() if isinstance(text, bytes) else text


@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl", "tfrecord"])
@pytest.mark.parametrize("packed", [False, True])
def test_a_table_reads_as_the_readers_read_it(format, packed, tmp_path):
    path = tmp_path / f"mine.{format}"
    write_table(TextDataset(TEXTS), path)
    expected = read_texts(path, text="text")
    data = path.read_bytes()
    if packed:
        data = gzip.compress(data)
    records = read(data, format)
    assert [as_text(record) for record in records] == expected
    places = range(1, 8) if format in ("jsonl", "tfrecord") else range(2, 9)
    assert [record.place for record in records] == list(places)


@pytest.mark.parametrize(
    "data", [b"a\nb\r\n\nc", b"\xef\xbb\xbfa\n", b"a", b"\n", "\u2028a\n".encode()]
)
def test_plain_text_reads_as_the_readers_read_it(data, tmp_path):
    path = tmp_path / "mine.txt"
    path.write_bytes(data)
    records = list(read_records(io.BytesIO(data), "mine", "txt", Columns(None)))
    assert [as_text(record) for record in records] == read_texts(path)


def test_a_file_with_semicolons_and_keys():
    records = read(b"\nid;text\n1;a,b\n2;c\n", "csv", "text", "id")
    assert records == [Record(3, "1", "a,b"), Record(4, "2", "c")]


ROWS = {
    "too many cells": (b"id,text\n1,a,x\n2,b\n", "3 cells, not 2"),
    "not UTF-8": (b"id,text\n1,\xff\n2,b\n", "not UTF-8"),
    "no key": (b"id,text\n,a\n2,b\n", "the key is empty"),
}
LINES = {
    "no JSON": (b'{"id": 1, "text": \n{"id": 2, "text": "b"}\n', "no JSON"),
    "a list": (b'[1]\n{"id": 2, "text": "b"}\n', "no JSON object"),
    "no field": (b'{"id": 1}\n{"id": 2, "text": "b"}\n', "no field 'text'"),
    "twice": (
        b'{"id": 1, "text": "a", "text": "a"}\n{"id": 2, "text": "b"}\n',
        "'text' twice",
    ),
    "no text": (
        b'{"id": 1, "text": ["a"]}\n{"id": 2, "text": "b"}\n',
        "neither text nor number",
    ),
    "not UTF-8": (b'{"id": 1, "text": "\xff"}\n{"id": 2, "text": "b"}\n', "not UTF-8"),
}
CASES = [("csv", *case) for case in ROWS.values()] + [
    ("jsonl", *case) for case in LINES.values()
]


@pytest.mark.parametrize(("format", "data", "reason"), CASES)
def test_a_bad_record_is_passed_over(format, data, reason):
    bad, good = read(data, format, "text", "id")
    assert isinstance(bad, Fault)
    assert not bad.ends
    assert reason in bad.reason
    assert (good.key, good.text) == ("2", "b")


def test_a_quote_that_does_not_close_ends_the_file_and_fills_no_memory():
    rows = f'id,text\n1,a\n2,"{SECRET}\n'.encode() + b"3,text\n" * 100_000
    good, bad = read(rows, "csv", "text", "id")
    assert good.text == "a"
    assert bad.ends
    assert SECRET not in repr(bad)


@pytest.mark.parametrize("format", ["csv", "tsv"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_cell_that_is_too_long_is_one_bad_record(format, quote):
    between = {"csv": ",", "tsv": "\t"}[format]
    rows = [("id", "text"), ("1", "a"), ("2", "x" * 10**6), ("3", "c")]
    lines = (between.join(f"{quote}{c}{quote}" for c in row) for row in rows)
    good, bad, last = read("\n".join(lines).encode(), format, "text", "id")
    assert (good.text, last.text) == ("a", "c")
    assert not bad.ends
    assert "over 131072 characters" in bad.reason
    assert last.place == 4


def test_a_cell_that_is_too_long_over_many_lines_ends_the_file():
    rows = f'id,text\n1,a\n2,"{"x" * 10**6}\n3,c"\n4,d\n'.encode()
    good, bad = read(rows, "csv", "text", "id")
    assert good.text == "a"
    assert bad.ends


def test_a_line_without_an_end_is_one_bad_record(monkeypatch):
    monkeypatch.setattr("tfpriv.beam.records._LONGEST_LINE", 100)
    records = read(b"a\n" + b"x" * 1000 + b"\nb\n", "txt", None)
    assert [type(record) for record in records] == [Record, Fault, Record]
    assert records[-1] == Record(3, None, b"b")


@pytest.mark.parametrize("cut", [20, -3])
def test_a_corrupt_tfrecord_is_read_as_far_as_it_goes(cut, tmp_path):
    path = tmp_path / "mine.tfrecord"
    write_table(TextDataset(("a", "b", "c")), path)
    data = bytearray(path.read_bytes())
    whole = len(data) // 3
    broken = bytes(data[:whole]) + bytes(data[whole : whole + cut])
    if cut < 0:
        data[whole + 20] ^= 1
        broken = bytes(data)
    first, bad = read(broken, "tfrecord")
    assert as_text(first) == "a"
    assert bad.ends
    assert "corrupt" in bad.reason


def test_a_tfrecord_of_something_else(tmp_path):
    import tensorflow as tf

    path = tmp_path / "mine.tfrecord"
    value = tf.train.BytesList(value=[b"\xff"])
    two = tf.train.BytesList(value=[b"a", b"b"])
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"no example at all")
        for feature in ({"other": value}, {"text": two}, {"text": value}):
            features = {
                name: tf.train.Feature(bytes_list=part)
                for name, part in feature.items()
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    records = read(path.read_bytes(), "tfrecord")
    reasons = [r.reason for r in records if isinstance(r, Fault)]
    assert reasons == [
        "no tf.Example",
        "no field 'text'",
        "several values in feature 'text'",
    ]
    # Whether bytes are text is asked further on.
    assert records[-1] == Record(4, None, b"\xff")


HEADS = {
    "a missing column": (b"id,other\n1,a\n", "csv", "column 'text'"),
    "a doubled column": (b"id,text,text\n1,a,b\n", "csv", "one column 'text'"),
    "a zip": (b"PK\x03\x04", "csv", "zip"),
    "UTF-16": ("id,text".encode("utf-16"), "csv", "UTF-16"),
    "a missing field": (b'{"id": 1}\n', "jsonl", "no field 'text'"),
    "no TFRecord": (b"id,text\n1,a\n", "tfrecord", "corrupt"),
    "a cut gzip": (gzip.compress(b"id,text\n1,a\n")[:-4], "csv", "gzip"),
    "nothing": (b"", "csv", "none"),
}


@pytest.mark.parametrize("name", HEADS)
def test_what_does_not_fit_is_found_before_work(name):
    data, format, word = HEADS[name]
    with pytest.raises(InputError, match=word):
        check_head(io.BytesIO(data), "mine", format, Columns("text", "id"))


def test_a_file_without_records_is_told():
    header = io.BytesIO(b"id,text\n")
    assert not check_head(header, "mine", "csv", Columns("text"))
    assert check_head(io.BytesIO(b"id,text\n1,a\n"), "mine", "csv", Columns("text"))


def test_a_number_is_as_the_file_writes_it():
    data = json.dumps({"text": "a", "id": 1.0}).encode()
    assert read(data, "jsonl", "text", "id") == [Record(1, "1.0", "a")]
