"""TFRecord files of tf.train.Example. TensorFlow is imported inside the functions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfpriv._errors import InputError
from tfpriv._files import PRIVATE, atomic_write
from tfpriv.datasets._cells import Record, Source, find_columns, to_cell


def read_tfrecord(
    path: str | os.PathLike, wanted: Sequence[str], source: Source
) -> list[Record]:
    """Reads tf.Examples, compressed with gzip or not.

    Args:
        path: the file.
        wanted: names of the features to keep; each holds one value or none.
        source: the name of the file, for errors.

    Raises:
        InputError: a corrupted record, a missing feature, one of several values,
            or bytes that are not UTF-8. The message names the record.
    """
    import tensorflow as tf

    with open(path, "rb") as file:
        compression = "GZIP" if file.read(2) == b"\x1f\x8b" else ""
    iterator = iter(tf.data.TFRecordDataset(os.fspath(path), compression))
    records: list[Record] = []
    while True:
        place = len(records) + 1
        corrupted = False
        try:
            example = tf.train.Example.FromString(next(iterator).numpy())
        except StopIteration:
            break
        except Exception as error:  # Each release raises another class here.
            if isinstance(error, MemoryError):
                raise
            corrupted = True
        if corrupted:
            raise InputError(
                f"Expected a tf.Example in record {place} of {source.name}, received a "
                "corrupted or truncated record. Write the file again."
            )
        records.append(Record(place, _cells(example, wanted, place, source)))
    if not records:
        raise InputError(
            f"Expected tf.Examples in {source.name}, received an empty file."
        )
    return records


def write_tfrecord(
    path: str | os.PathLike,
    columns: Mapping[str, Sequence[str]],
    *,
    mode: int = PRIVATE,
) -> None:
    """Writes one tf.Example a row, atomically.

    Args:
        path: the file to write.
        columns: a sequence of n texts for each feature name.
        mode: permission bits of the file.
    """
    import tensorflow as tf

    # TFRecordWriter opens a path by itself, so it gets one in a folder of ours.
    with tempfile.TemporaryDirectory(dir=Path(path).parent, prefix=".tfrecord.") as at:
        whole = Path(at, "whole")
        with tf.io.TFRecordWriter(os.fspath(whole)) as writer:
            for row in zip(*columns.values(), strict=True):
                feature = {
                    name: tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[cell.encode()])
                    )
                    for name, cell in zip(columns, row, strict=True)
                }
                features = tf.train.Features(feature=feature)
                example = tf.train.Example(features=features)
                writer.write(example.SerializeToString())
        with atomic_write(path, mode=mode, binary=True) as file:
            file.write(whole.read_bytes())


def _cells(
    example: Any, wanted: Sequence[str], place: int, source: Source
) -> tuple[str | None, ...]:
    features = example.features.feature
    find_columns(wanted, sorted(features), Source(f"{source.name}, record {place}"))
    cells = []
    for name in wanted:
        kind = features[name].WhichOneof("kind")
        values = getattr(features[name], kind).value if kind else []
        if len(values) > 1:
            raise InputError(
                f"Expected one value in feature {name!r} of record {place} of "
                f"{source.name}, received {len(values)}."
            )
        value = values[0] if values else None
        if isinstance(value, bytes):
            value = _decode(value, name, place, source)
        cells.append(to_cell(value))
    return tuple(cells)


def _decode(value: bytes, name: str, place: int, source: Source) -> str:
    offset = None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        offset = error.start
    raise InputError(
        f"Expected UTF-8 in feature {name!r} of record {place} of {source.name}, "
        f"received another encoding at byte offset {offset}."
    )
