"""Records of a file one after another, the bad ones among them.

The readers in `tfpriv.datasets` hold a whole table and stop at its first fault. Here a
file of any size streams past, and a fault is told and left behind: `Fault` says where
and why, never what.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from tfpriv._errors import InputError
from tfpriv.datasets._cells import _SIGNATURES, Source, find_columns, to_cell
from tfpriv.datasets._jsonl import _parse

FORMATS = ("txt", "csv", "tsv", "jsonl", "tfrecord")
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
# Bytes of a line; a longer one is no text that is released.
_LONGEST_LINE = 2**24
_TOO_LONG = "the line is too long"
_MISSING = "no field"
_REST = ": the rest of the file was not read"


class Columns(NamedTuple):
    """Names of the columns; None for plain text, and for a file without keys."""

    text: str | None
    key: str | None = None


class Record(NamedTuple):
    """A place in the file (the first row of a table's body is 2), key and text."""

    place: int
    key: str | None
    text: str | bytes


class Fault(NamedTuple):
    """A place in the file where there is no record, and why.

    Attributes:
        place: int. As of a record.
        reason: str. Tells no content.
        ends: bool. Whether nothing behind it can be read.
    """

    place: int
    reason: str
    ends: bool = False


def read_records(
    file: BinaryIO, name: str, format: str, columns: Columns
) -> Iterator[Record | Fault]:
    """Reads a file, gzip or not, in one pass; memory holds a row at a time.

    Args:
        file: open for reading bytes, at its beginning.
        name: what an error calls it.
        format: one of `FORMATS`.
        columns: as there are in `format`.

    Raises:
        InputError: it is no such table: what there is before the first record does
            not fit, a column that is missing for instance.
    """
    if format == "tfrecord":
        yield from _tfrecord(file, columns)
        return
    try:
        yield from _text(file, name, format, columns)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        yield Fault(0, f"a damaged gzip file{_REST}", ends=True)


def check_head(file: BinaryIO, name: str, format: str, columns: Columns) -> bool:
    """Reads as far as the first record, to find out what does not fit before work.

    Returns:
        Whether there is a first record, good or bad.

    Raises:
        InputError: as `read_records`, or the first record lacks a column or cannot be
            passed over.
    """
    first = next(read_records(file, name, format, columns), None)
    if isinstance(first, Fault) and (first.ends or first.reason.startswith(_MISSING)):
        raise InputError(
            f"Expected {format} records with their columns in {name}, received at "
            f"its first record: {first.reason}."
        )
    return first is not None


def _text(file: BinaryIO, name: str, format: str, columns: Columns) -> Iterator:
    buffered = io.BufferedReader(_Raw(file), 2**16)
    if buffered.peek(2)[:2] == _GZIP:
        buffered = io.BufferedReader(gzip.GzipFile(fileobj=buffered))
    head = buffered.peek(4)[:4]
    for signature, kind in _SIGNATURES.items():
        if head.startswith(signature):
            raise InputError(
                f"Expected UTF-8 text in {name}, received {kind}. Save it as plain "
                "text in UTF-8."
            )
    if head.startswith(_BOM):
        buffered.read(len(_BOM))
    readers = {"txt": _txt, "jsonl": _jsonl, "csv": _delimited, "tsv": _delimited}
    yield from readers[format](buffered, name, format, columns)


def _txt(file: BinaryIO, name: str, format: str, columns: Columns) -> Iterator:
    del name, format, columns
    for place, line in _lines(file):
        if line is None:
            yield Fault(place, _TOO_LONG)
        else:
            yield Record(place, None, line)


def _jsonl(file: BinaryIO, name: str, format: str, columns: Columns) -> Iterator:
    del name, format
    for place, line in _lines(file):
        if line is None:
            yield Fault(place, _TOO_LONG)
            continue
        if not line.strip():
            continue
        try:
            pairs = _parse(line.decode("utf-8"))
        except UnicodeDecodeError:
            yield Fault(place, "the line is not UTF-8")
            continue
        if pairs is None:
            yield Fault(place, "no JSON object")
        else:
            yield _object(pairs, place, columns)


def _object(pairs: list, place: int, columns: Columns) -> Record | Fault:
    names = [field for field, _ in pairs]
    cells = []
    for wanted in _wanted(columns):
        if wanted not in names:
            return Fault(place, f"{_MISSING} {wanted!r}")
        if names.count(wanted) > 1:
            return Fault(place, f"field {wanted!r} twice")
        value = pairs[names.index(wanted)][1]
        if isinstance(value, list):
            return Fault(place, f"neither text nor number in field {wanted!r}")
        cells.append(to_cell(value) or "")
    return _record(place, cells)


def _delimited(file: BinaryIO, name: str, format: str, columns: Columns) -> Iterator:
    # Bytes that are not UTF-8 pass as lone surrogates, so that their row alone is bad.
    text = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="")
    dialect, names, place = _header(text, name, format, _wanted(columns))
    positions = find_columns(_wanted(columns), names, Source(name))
    lines: list[str] = []
    kept = (lines.append(line) or line for line in text)
    reader = csv.reader(kept, strict=True, **dialect)
    while True:
        place += 1
        lines.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if "field larger" in str(error) and _are_whole(lines, dialect):
                yield Fault(
                    place, f"a cell of over {csv.field_size_limit()} characters"
                )
                continue
            yield Fault(place, f"a quote or a cell that does not end{_REST}", ends=True)
            return
        if not row:
            # In a file of one column a blank line is a blank cell.
            if len(names) > 1:
                continue
            row = [""]
        if len(row) != len(names):
            yield Fault(place, f"{len(row)} cells, not {len(names)} as in the header")
            continue
        cells = [row[position] for position in positions]
        if any(_has_surrogate(cell) for cell in cells):
            yield Fault(place, "the row is not UTF-8")
            continue
        yield _record(place, cells)


def _header(
    text: Iterator[str], name: str, format: str, wanted: list[str]
) -> tuple[dict[str, Any], list[str], int]:
    """How the rows below the header are quoted, the names in it, and its row."""
    seen: list[str] = []
    row: list[str] = []
    place = 0
    lines = (seen.append(line) or line for line in text)
    try:
        reader = csv.reader(lines, strict=True, **_dialect(format, ""))
        while not row:
            place += 1
            row = next(reader)
    except (StopIteration, csv.Error):
        raise InputError(
            f"Expected a header and rows in {name}, received none."
        ) from None
    dialect = _dialect(format, seen[-1])
    names = _names(seen, dialect)
    if format == "csv" and not set(wanted) <= set(names):
        other = _names(seen, {"delimiter": ";"})
        if set(wanted) <= set(other):
            dialect, names = {"delimiter": ";"}, other
    return dialect, names, place


def _are_whole(lines: list[str], dialect: dict[str, Any]) -> bool:
    """Whether no quote is open at the end, so that the next line begins a row."""
    if dialect.get("quoting") == csv.QUOTE_NONE:
        return True
    return sum(line.count('"') for line in lines) % 2 == 0


def _dialect(format: str, header: str) -> dict[str, Any]:
    """How a file is quoted: a TSV as a spreadsheet does it if its header is."""
    if format == "csv":
        return {"delimiter": ","}
    quoted = header.lstrip().startswith('"')
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    return {"delimiter": "\t", "quoting": quoting}


def _names(header: list[str], dialect: dict[str, Any]) -> list[str]:
    rows = csv.reader(header, **dialect)
    return [cell.strip() for cell in next((row for row in rows if row), [])]


def _tfrecord(file: BinaryIO, columns: Columns) -> Iterator:
    import tensorflow as tf

    with _as_path(file) as path:
        with open(path, "rb") as start:
            compressed = start.read(2) == _GZIP
        iterator = iter(tf.data.TFRecordDataset(path, "GZIP" if compressed else ""))
        place = 0
        while True:
            place += 1
            try:
                record = next(iterator).numpy()
            except StopIteration:
                return
            except tf.errors.OpError:
                yield Fault(place, f"a corrupt or truncated record{_REST}", ends=True)
                return
            yield _example(tf.train.Example, record, place, columns)


@contextlib.contextmanager
def _as_path(file: BinaryIO) -> Iterator[str]:
    """A path that TensorFlow opens, which knows not every file system."""
    name = getattr(file, "name", None)
    if isinstance(name, str) and os.path.isfile(name):
        yield name
        return
    with tempfile.NamedTemporaryFile(prefix="tfpriv-", suffix=".tfrecord") as copy:
        shutil.copyfileobj(file, copy, 2**20)
        copy.flush()
        yield copy.name


def _example(kind: Any, record: bytes, place: int, columns: Columns) -> Record | Fault:
    try:
        features = kind.FromString(record).features.feature
    except Exception as error:  # Each release of protobuf raises another class here.
        if isinstance(error, MemoryError):
            raise
        return Fault(place, "no tf.Example")
    cells: list[Any] = []
    for name in _wanted(columns):
        if name not in features:
            return Fault(place, f"{_MISSING} {name!r}")
        which = features[name].WhichOneof("kind")
        values = getattr(features[name], which).value if which else []
        if len(values) > 1:
            return Fault(place, f"several values in feature {name!r}")
        value = values[0] if values else ""
        cells.append(value if isinstance(value, bytes) else to_cell(value))
    if len(cells) == 2 and isinstance(cells[1], bytes):
        try:
            cells[1] = cells[1].decode("utf-8")
        except UnicodeDecodeError:
            return Fault(place, "the key is not UTF-8")
    return _record(place, cells)


def _record(place: int, cells: list[Any]) -> Record | Fault:
    if len(cells) == 2 and not cells[1]:
        return Fault(place, "the key is empty")
    return Record(place, cells[1] if len(cells) == 2 else None, cells[0])


def _wanted(columns: Columns) -> list[str]:
    return [name for name in columns if name is not None]


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Lines that end in LF or CRLF, numbered from 1; None for one that is too long."""
    place = 0
    while line := file.readline(_LONGEST_LINE):
        place += 1
        whole = line.endswith(b"\n")
        if not whole and len(line) == _LONGEST_LINE:
            while (rest := file.readline(_LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            yield place, None
            continue
        yield place, line.removesuffix(b"\n").removesuffix(b"\r")


def _has_surrogate(cell: str) -> bool:
    if cell.isascii():
        return False
    return any("\ud800" <= character <= "\udfff" for character in cell)


class _Raw(io.RawIOBase):
    """What BufferedReader asks of a file, over any object that reads bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def format_of(path: str, format: str | None) -> str:
    """The format that is given, or else the one that a name tells.

    Raises:
        InputError: an unknown format, or a name that does not tell.
    """
    from tfpriv._validation import one_of
    from tfpriv.datasets.readers import table_format

    if format is not None:
        one_of(FORMATS, format=format)
        return format
    name = os.path.basename(path).casefold().removesuffix(".gz")
    return "txt" if name.endswith(".txt") else table_format(name)
