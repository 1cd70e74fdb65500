"""A folder that TensorFlow Datasets reads, and parse specs of our TFRecords."""

from __future__ import annotations

import os

import pytest

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset, write_table
from tfpriv.datasets.tfds_folder import feature_spec, write_tfds

DATA = TextDataset(
    ["hi, all", "über ☃", "buy now"], ["ham", "ham", "spam"], ["a", "b", "c"]
)


def builder_of(folder):
    import tensorflow_datasets as tfds

    return tfds.builder_from_directory(folder)


def rows_of(folder, split="train"):
    data = builder_of(folder).as_dataset(split=split)
    return [{k: v.numpy() for k, v in row.items()} for row in data]


def test_what_is_written_is_read_by_tfds(tmp_path):
    folder = tmp_path / "mine"
    write_tfds(DATA, folder)
    builder = builder_of(folder)
    assert builder.info.features["label"].names == ["ham", "spam"]
    assert builder.info.splits["train"].num_examples == 3
    assert builder.info.supervised_keys == ("text", "label")
    assert rows_of(folder) == [
        {"text": text.encode(), "label": ["ham", "spam"].index(label)}
        for text, label in zip(DATA.texts, DATA.labels, strict=True)
    ]
    pairs = builder.as_dataset(split="train", as_supervised=True)
    assert len(list(pairs)) == 3


def test_splits_and_the_order_of_labels(tmp_path):
    folder = tmp_path / "mine"
    parts = {"train": DATA, "test": DATA.select([2])}
    write_tfds(parts, folder, label_names=["spam", "ham"], name="mine", version="2.1.0")
    assert [row["label"] for row in rows_of(folder)] == [1, 1, 0]
    assert [row["label"] for row in rows_of(folder, "test")] == [0]
    info = builder_of(folder).info
    assert (info.name, str(info.version)) == ("mine", "2.1.0")


def test_texts_alone(tmp_path):
    write_tfds(TextDataset(["a", "b"]), tmp_path / "mine")
    assert [set(row) for row in rows_of(tmp_path / "mine")] == [{"text"}] * 2


def test_a_moved_folder_is_read_all_the_same(tmp_path):
    write_tfds(DATA, tmp_path / "mine")
    os.rename(tmp_path / "mine", tmp_path / "other")
    assert len(rows_of(tmp_path / "other")) == 3


@pytest.mark.parametrize(("mode", "folder"), [(0o600, 0o700), (0o644, 0o755)])
def test_modes(tmp_path, mode, folder):
    path = tmp_path / "mine"
    write_tfds(DATA, path, mode=mode)
    assert {p.stat().st_mode & 0o777 for p in path.iterdir()} == {mode}
    assert path.stat().st_mode & 0o777 == folder


def test_nothing_else_is_in_the_files(tmp_path):
    data = TextDataset(
        ["a"], ["ham"], ["secret group"], private=("secret label",),
        provenance={"source": "secret place"},
    )  # fmt: skip
    write_tfds(data, tmp_path / "mine")
    whole = b"".join(path.read_bytes() for path in (tmp_path / "mine").iterdir())
    assert b"secret" not in whole
    assert str(tmp_path).encode() not in whole


REFUSED = {
    "a label without a name": ({"label_names": ["ham"]}, "row 2"),
    "no names": ({"label_names": []}, "label_names"),
    "a name": ({"name": "../mine"}, "name"),
    "a version": ({"version": "new"}, "version"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_settings_are_refused(tmp_path, case):
    settings, word = REFUSED[case]
    with pytest.raises(InputError, match=word):
        write_tfds(DATA, tmp_path / "mine", **settings)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "splits", [{}, {"a/b": DATA}, {"train": DATA, "test": TextDataset(["a"])}]
)
def test_bad_splits_are_refused(tmp_path, splits):
    with pytest.raises(InputError):
        write_tfds(splits, tmp_path / "mine")


def test_places_are_refused(tmp_path):
    with pytest.raises(InputError, match="which exists"):
        write_tfds(DATA, tmp_path)
    with pytest.raises(InputError, match="first"):
        write_tfds(DATA, tmp_path / "a" / "b")


def test_nothing_is_left_of_a_failure(tmp_path, monkeypatch):
    import tensorflow_datasets as tfds

    def fail(**kwargs):
        raise OSError("full")

    monkeypatch.setattr(tfds.folder_dataset, "write_metadata", fail)
    with pytest.raises(OSError, match="full"):
        write_tfds(DATA, tmp_path / "mine")
    assert list(tmp_path.iterdir()) == []


def test_the_spec_parses_what_the_writer_writes(tmp_path):
    import tensorflow as tf

    path = tmp_path / "mine.tfrecord"
    write_table(DATA, path)
    (batch,) = tf.data.TFRecordDataset(str(path)).batch(3)
    parsed = tf.io.parse_example(batch, feature_spec())
    assert [v.decode() for v in parsed["text"].numpy()] == list(DATA.texts)
    assert [v.decode() for v in parsed["label"].numpy()] == list(DATA.labels)
