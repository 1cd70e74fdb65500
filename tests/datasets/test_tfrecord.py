from __future__ import annotations

import gzip
import os
import stat

import pytest

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset, read_table, write_table

SECRET = "my password is hunter2"


def write_examples(path, *rows: dict) -> None:
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            feature = {}
            for name, values in row.items():
                kind = {bytes: "bytes", int: "int64", float: "float"}[type(values[0])]
                lists = {
                    "bytes": "BytesList",
                    "int64": "Int64List",
                    "float": "FloatList",
                }
                values = getattr(tf.train, lists[kind])(value=values)
                feature[name] = tf.train.Feature(**{f"{kind}_list": values})
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())


def refused(path) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path, text="text", label="label")
    message = str(caught.value)
    assert "hunter2" not in message
    assert "\n" not in message
    assert caught.value.__context__ is None
    return message


def test_what_is_written_reads_back_and_is_private(tmp_path):
    path = tmp_path / "data.tfrecord"
    data = TextDataset(["=hi\n", "é😀"], ["ham", "1"], ["ann", "bob"])
    write_table(data, path)
    back = read_table(path, text="text", label="label")
    assert (back.texts, back.labels) == (data.texts, data.labels)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.tfrecord"]


def test_gzip_and_number_features_are_read(tmp_path):
    path = tmp_path / "data.tfrecord"
    write_examples(path, {"text": [b"a"], "label": [1]}, {"text": [b"b"], "label": [2]})
    packed = tmp_path / "packed.tfrecord"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, packed):
        data = read_table(file, text="text", label="label")
        assert (data.texts, data.labels) == (("a", "b"), ("1", "2"))


def test_a_missing_feature_is_named_with_its_record(tmp_path):
    path = tmp_path / "data.tfrecord"
    rows = {"text": [b"a"], "label": [1]}, {"text": [SECRET.encode()], "lable": [1]}
    write_examples(path, *rows)
    message = refused(path)
    assert "record 2" in message
    assert "lable, text" in message


def test_a_feature_of_several_values_is_refused(tmp_path):
    path = tmp_path / "data.tfrecord"
    write_examples(path, {"text": [SECRET.encode(), b"b"], "label": [1]})
    assert "feature 'text' of record 1" in refused(path)


def test_bytes_that_are_not_utf8_are_named_by_their_offset(tmp_path):
    path = tmp_path / "data.tfrecord"
    write_examples(path, {"text": [SECRET.encode() + b"\xe9"], "label": [1]})
    assert "byte offset 22" in refused(path)


@pytest.mark.parametrize("damage", ["flip", "cut", "text"])
def test_a_damaged_file_is_named_by_its_record(tmp_path, damage):
    path = tmp_path / "data.tfrecord"
    rows = [{"text": [SECRET.encode()], "label": [i]} for i in range(3)]
    write_examples(path, *rows)
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
    elif damage == "cut":
        del content[-3:]
    else:
        content = bytearray(f"text,label\n{SECRET},ham\n".encode())
    path.write_bytes(content)
    number = {"flip": 2, "cut": 3, "text": 1}[damage]
    assert f"record {number}" in refused(path)
