"""Files of releases: TFRecord as `tfpriv encode` writes it, or Parquet."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import apache_beam as beam
import numpy as np
from apache_beam.coders import BytesCoder
from apache_beam.io.filebasedsink import FileBasedSink

from tfpriv._validation import one_of
from tfpriv.beam.places import OUTPUT_FORMATS
from tfpriv.beam.privatize import Letter


class WriteReleases(beam.PTransform):
    """Writes (key, vector) to `PREFIX-00000-of-00004.tfrecord` or `.parquet`.

    A TFRecord file holds one tf.Example a record, with the features of `tfpriv encode
    --output x.tfrecord`: `representation`, its floats, and `shape`; and `key`. A
    Parquet file has columns of the same names. The files appear when all is written.

    Args:
        prefix: str. Folder and beginning of the files' names.
        format: "tfrecord" or "parquet".
        shards: int. Number of files; 0 leaves it to the runner.
    """

    def __init__(self, prefix: str, format: str = "tfrecord", shards: int = 0) -> None:
        super().__init__()
        one_of(OUTPUT_FORMATS, format=format)
        self.prefix = prefix
        self.format = format
        self.shards = shards

    def expand(self, releases: beam.PCollection) -> Any:
        """Applies the transform."""
        suffix = f".{self.format}"
        if self.format == "parquet":
            rows = releases | "Row" >> beam.Map(to_row)
            return rows | "Write" >> beam.io.WriteToParquet(
                self.prefix,
                parquet_schema(),
                file_name_suffix=suffix,
                num_shards=self.shards,
            )
        examples = releases | "Example" >> beam.Map(to_example)
        return examples | "Write" >> beam.io.Write(
            _TFRecordSink(
                self.prefix, BytesCoder(), suffix, self.shards, mime_type=_BINARY
            )
        )


class WriteDeadLetters(beam.PTransform):
    """Writes letters to one file of JSON lines: `key` and `reason`."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def expand(self, letters: beam.PCollection) -> Any:
        """Applies the transform."""
        lines = letters | "Line" >> beam.Map(_line)
        return lines | "Write" >> beam.io.WriteToText(
            self.path, shard_name_template="", append_trailing_newlines=True
        )


def to_example(release: tuple[str, np.ndarray]) -> bytes:
    """A serialized tf.Example of (key, vector)."""
    import tensorflow as tf

    key, vector = release
    values = {
        "key": tf.train.Feature(bytes_list=tf.train.BytesList(value=[key.encode()])),
        "representation": tf.train.Feature(
            float_list=tf.train.FloatList(value=vector.ravel())
        ),
        "shape": tf.train.Feature(int64_list=tf.train.Int64List(value=vector.shape)),
    }
    features = tf.train.Features(feature=values)
    example = tf.train.Example(features=features)
    return example.SerializeToString(deterministic=True)


def to_row(release: tuple[str, np.ndarray]) -> dict[str, Any]:
    """A row of a Parquet file of (key, vector)."""
    key, vector = release
    return {"key": key, "representation": vector.ravel(), "shape": list(vector.shape)}


def parquet_schema() -> Any:
    """The columns of a Parquet file."""
    import pyarrow as pa

    return pa.schema(
        [
            ("key", pa.string()),
            ("representation", pa.list_(pa.float32())),
            ("shape", pa.list_(pa.int64())),
        ]
    )


_BINARY = "application/octet-stream"


class _TFRecordSink(FileBasedSink):
    """TFRecord by TensorFlow: Beam's own sink needs a package for its checksums."""

    def open(self, temp_path: str) -> _Spooled:
        """Opens a temporary file of the sink."""
        return _Spooled(super().open(temp_path))

    def write_encoded_record(self, file_handle: _Spooled, encoded_value: bytes) -> None:
        """Writes a serialized example."""
        file_handle.write(encoded_value)


class _Spooled:
    """Records in a local file, which goes where Beam wants it when it is closed.

    TensorFlow opens paths by itself, and not those of every file system.
    """

    def __init__(self, target: BinaryIO) -> None:
        import tensorflow as tf

        self._target = target
        self._folder = tempfile.TemporaryDirectory(prefix="tfpriv-")
        self._path = Path(self._folder.name, "records")
        self._writer = tf.io.TFRecordWriter(str(self._path))

    def write(self, record: bytes) -> None:
        self._writer.write(record)

    def close(self) -> None:
        self._writer.close()
        with self._folder, self._path.open("rb") as whole:
            shutil.copyfileobj(whole, self._target, 2**20)
        self._target.close()


def _line(letter: Letter) -> str:
    return json.dumps(letter._asdict(), ensure_ascii=False)
