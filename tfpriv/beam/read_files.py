"""Files to (key, text), by Beam: what `records.py` reads of one, of many at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.metrics import Metrics

from tfpriv.beam.places import open_file
from tfpriv.beam.privatize import DEAD_LETTERS, NAMESPACE, Letter
from tfpriv.beam.records import Columns, Fault, read_records

_BAD = "bad"


class ReadRecords(NamedTuple):
    """What `ReadFiles` makes.

    Attributes:
        records: PCollection of (key, text).
        dead_letters: PCollection of `Letter`.
    """

    records: beam.PCollection
    dead_letters: beam.PCollection


class ReadFiles(beam.PTransform):
    """Reads (path, name, format, columns) to (key, text); a file is read by one worker.

    The key is that of the record, or else "name:place". Counters: `read`, records
    good and bad; `unread_files`, those with something that no reader gets past.
    """

    def expand(self, files: beam.PCollection) -> ReadRecords:
        """Applies the transform."""
        read = (
            files
            | "Spread" >> beam.Reshuffle()
            | "Read" >> beam.ParDo(_Read()).with_outputs(_BAD, main="records")
        )
        return ReadRecords(read.records, read[_BAD])


class _Read(beam.DoFn):
    def __init__(self) -> None:
        self._read = Metrics.counter(NAMESPACE, "read")
        self._bad = Metrics.counter(NAMESPACE, DEAD_LETTERS)
        self._unread = Metrics.counter(NAMESPACE, "unread_files")

    def process(self, file: tuple[str, str, str, Columns]) -> Iterator[Any]:
        path, name, format, columns = file
        with open_file(path) as opened:
            for record in read_records(opened, path, format, Columns(*columns)):
                self._read.inc()
                place = f"{name}:{record.place}"
                if isinstance(record, Fault):
                    self._bad.inc()
                    if record.ends:
                        self._unread.inc()
                    letter = Letter(place, record.reason)
                    yield beam.pvalue.TaggedOutput(_BAD, letter)
                    continue
                key = place if record.key is None else record.key
                yield key, record.text
