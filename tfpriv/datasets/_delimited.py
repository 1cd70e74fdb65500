"""CSV and TSV to records, by the csv module of the standard library."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
import threading
from collections.abc import Iterator, Sequence

from tfpriv._errors import InputError
from tfpriv.datasets._cells import Record, Source, find_columns

_LIMIT_LOCK = threading.Lock()


def read_csv(text: str, wanted: Sequence[str], source: Source) -> list[Record]:
    """Reads comma-separated text, or semicolons where only these give the columns.

    Quoted cells may hold commas, quotes (doubled) and line breaks; rows end in LF,
    CRLF or CR. Blank lines are passed over.

    Args:
        text: the whole file.
        wanted: names of the columns to keep.
        source: the name of the file, for errors.

    Raises:
        InputError: a missing or doubled column, a row with more or fewer cells
            than the header, or a quote that does not close.
    """
    delimiter = ","
    if not _has_columns(text, ",", wanted) and _has_columns(text, ";", wanted):
        delimiter = ";"
    return _parse(text, wanted, source, delimiter, csv.QUOTE_MINIMAL)


def read_tsv(text: str, wanted: Sequence[str], source: Source) -> list[Record]:
    """Reads tab-separated text, whichever of two dialects it is in.

    Spreadsheets quote a cell as in CSV; many other programs never quote, and a
    quote is a character like any other. Only a reading in which each row has as
    many cells as the header counts; where both do and find the same number of rows,
    or the header itself is quoted, it is the spreadsheet's.

    Args:
        text: the whole file.
        wanted: names of the columns to keep.
        source: the name of the file, for errors.

    Raises:
        InputError: as `read_csv`, or both dialects fit and find different rows.
    """
    if '"' not in text:
        return _parse(text, wanted, source, "\t", csv.QUOTE_NONE)
    try:
        quoted = _parse(text, wanted, source, "\t", csv.QUOTE_MINIMAL)
    except InputError as error:
        with contextlib.suppress(InputError):
            return _parse(text, wanted, source, "\t", csv.QUOTE_NONE)
        raise error from None
    if text.lstrip().startswith('"'):
        return quoted
    literal = None
    with contextlib.suppress(InputError):
        literal = _parse(text, wanted, source, "\t", csv.QUOTE_NONE)
    if literal is not None and len(literal) != len(quoted):
        pairs = zip(quoted, literal, strict=False)
        place = next((q.place for q, plain in pairs if q != plain), len(quoted) + 1)
        raise InputError(
            f"Expected quotes that can be read in one way in {source.name}, received "
            f"a quote in row {place} that may or may not hold several lines together. "
            "Quote every cell, the header as well, or save the file as CSV."
        )
    return quoted


def _parse(
    text: str, wanted: Sequence[str], source: Source, delimiter: str, quoting: int
) -> list[Record]:
    records = []
    positions: list[int] | None = None
    width = 0
    with _no_field_limit():
        for place, row in _rows(text, source, delimiter, quoting):
            if positions is None:
                if not row:
                    continue
                width = len(row)
                names = [name.strip() for name in row]
                positions = find_columns(wanted, names, source)
                continue
            if not row:
                # In a file of one column a blank line is a blank cell.
                if width > 1:
                    continue
                row = [""]
            if len(row) != width:
                raise InputError(
                    f"Expected {width} cells in row {place} of {source.name} as in the "
                    f"header, received {len(row)}. Quote cells that hold "
                    f"{'tabs' if delimiter == chr(9) else repr(delimiter)} or line "
                    "breaks."
                )
            records.append(Record(place, tuple(row[i] for i in positions)))
    if positions is None:
        raise InputError(
            f"Expected a header and rows in {source.name}, received an empty file."
        )
    return records


def _rows(
    text: str, source: Source, delimiter: str, quoting: int
) -> Iterator[tuple[int, list[str]]]:
    # newline="" leaves CR, CRLF and LF as they are, inside quotes and outside.
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True
    )
    place = 0
    while True:
        place += 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = "a quote that does not close"
            if "expected after" in str(error):
                reason = "text behind a closing quote"
            raise InputError(
                f"Expected every quoted cell of {source.name} to be closed and its "
                f"quotes doubled, received {reason} in row {place}."
            ) from None
        yield place, row


def _has_columns(text: str, delimiter: str, wanted: Sequence[str]) -> bool:
    with _no_field_limit():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        with contextlib.suppress(csv.Error):
            for row in reader:
                if row:
                    return set(wanted) <= {name.strip() for name in row}
    return False


@contextlib.contextmanager
def _no_field_limit() -> Iterator[None]:
    # The limit is the csv module's own, one for all threads; `max_chars` of
    # read_table is ours, and names the row.
    with _LIMIT_LOCK:
        limit = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        try:
            yield
        finally:
            csv.field_size_limit(limit)
