"""Tables of text from CSV, TSV, JSONL and TFRecord files."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tfpriv import _validation
from tfpriv._errors import InputError
from tfpriv.datasets._cells import Record, Source, decode
from tfpriv.datasets._delimited import read_csv, read_tsv
from tfpriv.datasets._jsonl import read_jsonl
from tfpriv.datasets.text_dataset import TextDataset
from tfpriv.text.cleaning import clean as clean_text

FORMATS = ("csv", "tsv", "jsonl", "tfrecord")
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
}
_PARSERS = {"csv": read_csv, "tsv": read_tsv, "jsonl": read_jsonl}
# What a row is called, and what the columns are, in each format's errors.
_ROWS = {"csv": "row", "tsv": "row", "jsonl": "line", "tfrecord": "record"}
# Why a cell must not be empty: that of the group column (True) or the private one.
_WHY = {
    True: "who shares a group with it cannot be told",
    False: "a record without a private label can be neither protected nor attacked",
}


class Columns(NamedTuple):
    """The names of the columns that are kept, None where there is none."""

    text: str
    label: str | None = None
    group: str | None = None
    private: str | None = None


def read_table(
    path: str | os.PathLike,
    *,
    text: str,
    label: str | None = None,
    group: str | None = None,
    private: str | None = None,
    format: str | None = None,
    max_chars: int = 100_000,
) -> TextDataset:
    r"""Reads the named columns of a file; no other column is kept.

    Texts stay as they are but for NUL characters, which are taken out, and lone
    surrogates, which become U+FFFD; labels of both kinds and groups lose the blanks
    around them and are never turned into numbers. Rows whose text is nothing once
    cleaned, or whose label is empty, are left out, with a warning that counts them; an
    empty group or private label is an error. An error names the file, row and column
    (the header of a CSV file is row 1), never what a cell holds.

    Args:
        path: the file. UTF-8, with or without a byte order mark; CSV cells may hold
            quoted commas and line breaks, rows end in LF, CRLF or CR.
        text: str. Name of the column (field, feature) with the text.
        label: str or None. Name of the column with the label.
        group: str or None. Name of the column whose value ties records together,
            an author for instance. It is read for splitting and for the unit of
            privacy, and never written out.
        private: str or None. Name of the column with the private label, which a
            representation must not tell. It is never written out.
        format: one of `"csv"`, `"tsv"`, `"jsonl"`, `"tfrecord"`, or None: told from
            the name of the file.
        max_chars: int. A longer text is an error.

    Returns:
        TextDataset with at least one record.

    Raises:
        InputError: there is no such file, it is no such table, a column is missing,
            or no row has a text (and a label, where asked for).

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "mine.csv")
        >>> _ = path.write_text('CONTENT,CLASS\n"hi, all",0\nbuy now,1\n')
        >>> data = read_table(path, text="CONTENT", label="CLASS")
        >>> data.texts, data.labels
        (('hi, all', 'buy now'), ('0', '1'))
    """
    path = Path(path)
    format = table_format(path, format)
    if not path.exists():
        raise InputError(f"Expected a file, received {path}, which does not exist.")
    if not path.is_file():
        raise InputError(f"Expected a file, received {path}, which is not one.")
    columns = Columns(text, label, group, private)
    return _read(path.read_bytes(), path, format, columns, max_chars)


def read_bytes(
    data: bytes,
    name: str,
    *,
    format: str,
    text: str,
    label: str | None = None,
    group: str | None = None,
    private: str | None = None,
    max_chars: int = 100_000,
) -> TextDataset:
    """`read_table` for the content of a CSV, TSV or JSONL file called `name`."""
    _validation.one_of(_PARSERS, format=format)
    columns = Columns(text, label, group, private)
    return _read(data, Path(name), format, columns, max_chars)


def table_format(path: str | os.PathLike, format: str | None = None) -> str:
    """The format of a table: the one given, or else the one its name tells.

    Raises:
        InputError: an unknown format, or a name that does not tell.
    """
    if format is not None:
        _validation.one_of(FORMATS, format=format)
        return format
    name = Path(path).name.casefold()
    for suffix, known in _SUFFIXES.items():
        # TFDS and Beam number their shards behind the suffix: x.tfrecord-00000-of-8.
        if name.endswith(suffix) or (known == "tfrecord" and f"{suffix}-" in name):
            return known
    raise InputError(
        f"Expected a file name in {', '.join(_SUFFIXES)}, received {Path(path).name}. "
        f"Give the format: one of {', '.join(FORMATS)}."
    )


def _read(
    data: bytes,
    path: Path,
    format: str,
    columns: Columns,
    max_chars: int,
) -> TextDataset:
    _validation.integer(max_chars=max_chars)
    source = Source(str(path), _ROWS[format])
    wanted = [name for name in columns if name is not None]
    if len(set(wanted)) < len(wanted):
        raise InputError(
            "Expected different columns for text, label, group and private, received "
            f"{', '.join(wanted)}."
        )
    if not data.removeprefix(b"\xef\xbb\xbf").strip():
        raise InputError(f"Expected a table in {source.name}, received an empty file.")
    if format == "tfrecord":
        from tfpriv.datasets.tfrecord import read_tfrecord

        records = read_tfrecord(path, wanted, source)
    else:
        records = _PARSERS[format](decode(data, source), wanted, source)
    provenance = {
        "source": source.name,
        "format": format,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    return assemble(records, source, columns, max_chars, provenance)


def assemble(
    records: Sequence[Record],
    source: Source,
    columns: Columns,
    max_chars: int,
    provenance: dict[str, object],
) -> TextDataset:
    """A data set of records whose cells are those columns that are named, in order.

    What is left out, mended and refused is told in `read_table`.
    """
    text, label, group, private = columns
    if not records:
        raise InputError(
            f"Expected rows below the header of {source.name}, received none."
        )
    texts: list[str] = []
    labels: list[str] = []
    ties: dict[str, list[str]] = {name: [] for name in (group, private) if name}
    no_text: list[int] = []
    no_label: list[int] = []
    repaired: list[int] = []
    for place, cells in records:
        mended = [_repair(cell or "") for cell in cells]
        text_cell = mended[0]
        label_cell = _strip(mended[1]) if label is not None else ""
        if not clean_text(text_cell):
            no_text.append(place)
            continue
        if label is not None and not label_cell:
            no_label.append(place)
            continue
        if len(text_cell) > max_chars:
            raise InputError(
                f"Expected at most {max_chars} characters in column {text!r} of "
                f"{source.row} {place} of {source.name}, received more. "
                "Cut the text; in Python a larger max_chars takes it whole."
            )
        for name, cell in zip(ties, mended[len(mended) - len(ties) :], strict=True):
            kept = _strip(cell)
            if not kept:
                raise InputError(
                    f"Expected a value in column {name!r} of {source.row} {place} of "
                    f"{source.name}, received none. Fill it, or leave the row out: "
                    f"{_WHY[name == group]}."
                )
            ties[name].append(kept)
        if mended != [cell or "" for cell in cells]:
            repaired.append(place)
        texts.append(text_cell)
        labels.append(label_cell)
    _report(no_text, f"no text in column {text!r}", "left out", len(records), source)
    _report(no_label, f"no label in column {label!r}", "left out", len(records), source)
    _report(repaired, "NUL or half characters", "mended", len(records), source)
    if not texts:
        parts = "a text" if label is None else "a text and a label"
        raise InputError(
            f"Expected at least one {source.row} with {parts} in {source.name}, "
            f"received none among {len(records)}."
        )
    provenance |= {
        "rows": len(records),
        "without_text": len(no_text),
        "without_label": len(no_label),
        "mended": len(repaired),
    }
    return TextDataset(
        texts=tuple(texts),
        labels=None if label is None else tuple(labels),
        groups=None if group is None else tuple(ties[group]),
        private=None if private is None else tuple(ties[private]),
        text_column=text,
        label_column=label if label is not None else _other_name(text),
        private_column=private if private is not None else "private",
        provenance=provenance,
    )


def _report(
    places: Sequence[int], what: str, done: str, total: int, source: Source
) -> None:
    if places:
        warnings.warn(
            f"{len(places)} of {total} {source.row}s of {source.name} have {what} and "
            f"were {done}; the first is {source.row} {places[0]}.",
            stacklevel=5,
        )


def _repair(cell: str) -> str:
    cell = cell.replace("\0", "")
    if cell.isascii():
        return cell
    # JSON can hold half of a surrogate pair, which no UTF-8 file can.
    return cell.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _strip(cell: str) -> str:
    return cell.strip().strip("\ufeff\u200b").strip()


def _other_name(text: str) -> str:
    return "label" if text != "label" else "class"
