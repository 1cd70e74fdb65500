"""What the readers share: bytes to text, values to cells, errors without content."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

from tfpriv._errors import InputError

# A header is made of names. Something longer is a first row of private text.
_LONGEST_NAME = 40
_MOST_NAMES = 30
_SIGNATURES = {
    b"PK\x03\x04": "a zip archive or a spreadsheet workbook",
    b"\x1f\x8b": "compressed with gzip",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


class Record(NamedTuple):
    """One row: its number in the file and the wanted cells, None where missing."""

    place: int
    cells: tuple[str | None, ...]


class Source(NamedTuple):
    """What an error calls the file and one of its rows."""

    name: str
    row: str = "row"


def decode(data: bytes, source: Source) -> str:
    """The text of a file in UTF-8, without its byte order mark.

    Raises:
        InputError: the bytes are something else; the message names the offset of
            the first byte that does not fit, and shows none.
    """
    for signature, kind in _SIGNATURES.items():
        if data.startswith(signature):
            raise InputError(
                f"Expected UTF-8 text in {source.name}, received {kind}. "
                "Save it as plain text in UTF-8."
            )
    if data.count(0) * 10 > len(data):
        raise InputError(
            f"Expected UTF-8 text in {source.name}, received mostly NUL bytes (UTF-16, "
            "or no text at all). Save it as plain text in UTF-8."
        )
    offset = None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        # Raised below, outside the handler: this error carries the whole file.
        offset = error.start
    if offset is not None:
        raise InputError(
            f"Expected UTF-8 in {source.name}, received another encoding at byte "
            f"offset {offset}. Save it as UTF-8 (from Windows: "
            "iconv -f WINDOWS-1252 -t UTF-8)."
        )
    return text.removeprefix("\ufeff")


def find_columns(
    wanted: Sequence[str], columns: Sequence[str], source: Source
) -> list[int]:
    """The position of each wanted column.

    Raises:
        InputError: a column is missing (the message says which there are) or
            stands there twice.
    """
    positions = []
    for name in wanted:
        if columns.count(name) > 1:
            raise InputError(
                f"Expected one column {name!r} in {source.name}, received "
                f"{columns.count(name)} of that name. Rename all but one."
            )
        if name not in columns:
            raise InputError(_missing_column(name, columns, source))
        positions.append(columns.index(name))
    return positions


def _missing_column(name: str, columns: Sequence[str], source: Source) -> str:
    shown = [_show_name(column) for column in columns[:_MOST_NAMES]]
    if len(columns) > _MOST_NAMES:
        shown.append(f"and {len(columns) - _MOST_NAMES} more")
    folded = {column.casefold(): column for column in columns}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.8)
    match = folded[close[0]] if close else ""
    hint = f" Did you mean {match!r}?" if 0 < len(match) <= _LONGEST_NAME else ""
    return (
        f"Expected a column {name!r} in {source.name}, received the columns "
        f"{', '.join(shown) or '(none)'}.{hint}"
    )


def _show_name(name: str) -> str:
    if len(name) > _LONGEST_NAME:
        return f"(a name of {len(name)} characters)"
    return name if name.isprintable() and name else repr(name)


def to_cell(value: str | bool | int | float | None) -> str | None:
    """A value of JSON or of a tf.Example as the cell a CSV file would hold."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
