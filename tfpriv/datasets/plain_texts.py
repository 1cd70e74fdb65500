"""The texts of a file as they are, each in its place: to encode, not to learn from."""

from __future__ import annotations

import os
from pathlib import Path

from tfpriv._errors import InputError
from tfpriv.datasets._cells import Source, decode
from tfpriv.datasets._delimited import read_csv, read_tsv
from tfpriv.datasets._jsonl import read_jsonl
from tfpriv.datasets.readers import FORMATS, table_format

LONGEST = 100_000
_PARSERS = {"csv": read_csv, "tsv": read_tsv, "jsonl": read_jsonl}


def read_texts(
    path: str | os.PathLike,
    *,
    text: str | None = None,
    format: str | None = None,
    max_chars: int = LONGEST,
) -> list[str]:
    r"""Reads the texts of a file, in order and none left out.

    `read_table` leaves out rows that nothing can be learnt from; here an empty text
    stays, so that what is made of the i-th text is the i-th result. NUL characters
    are taken out and lone surrogates become U+FFFD.

    Args:
        path: a table, or plain text (`.txt`) with a text a line.
        text: str. Name of the column with the text; None for plain text.
        format: one of "csv", "tsv", "jsonl", "tfrecord", "txt", or None: told from
            the name of the file.
        max_chars: int. A longer text is an error.

    Returns:
        At least one text.

    Raises:
        InputError: there is no such file, it is no such table, the column is missing,
            it has no texts or one that is too long.

    Examples:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "mine.txt")
        >>> _ = path.write_text("hi, all\n\nbuy now\n")
        >>> read_texts(path)
        ['hi, all', '', 'buy now']
    """
    path = Path(path)
    if format is None and path.suffix.casefold() == ".txt":
        format = "txt"
    if format != "txt":
        if format is None and not path.suffix:
            raise InputError(
                f"Expected a file name in .txt or that of a table, received "
                f"{path.name}. Give the format: one of {', '.join(FORMATS)}, txt."
            )
        format = table_format(path, format)
    if not path.is_file():
        what = "is not one" if path.exists() else "does not exist"
        raise InputError(f"Expected a file, received {path}, which {what}.")
    if format == "txt":
        if text is not None:
            raise InputError(
                f"Expected no column for {path}, plain text with a text a line, "
                f"received {text!r}. Leave it out, or give the format."
            )
        source = Source(str(path), "line")
        places = enumerate(_lines(decode(path.read_bytes(), source)), start=1)
    else:
        if text is None:
            raise InputError(
                f"Expected the name of the text column of {path}, received none."
            )
        rows = {"jsonl": "line", "tfrecord": "record"}
        source = Source(str(path), rows.get(format, "row"))
        places = (
            (p, cells[0] or "") for p, cells in _table(path, text, format, source)
        )
    texts = []
    for place, cell in places:
        if len(cell) > max_chars:
            raise InputError(
                f"Expected at most {max_chars} characters in {source.row} {place} of "
                f"{source.name}, received more. Cut the text."
            )
        texts.append(_mended(cell))
    if not texts:
        raise InputError(f"Expected texts in {source.name}, received none.")
    return texts


def read_groups(
    path: str | os.PathLike, *, group: str, format: str | None = None
) -> list[str]:
    """Reads who shares records with whom: one name for each text of `read_texts`.

    Blanks around a name are taken off, as `read_table` does.

    Args:
        path: a table.
        group: name of the column.
        format: as for `read_texts`.

    Raises:
        InputError: as for `read_texts`; or a row without a name.
    """
    names = [cell.strip() for cell in read_texts(path, text=group, format=format)]
    for place, name in enumerate(names, start=1):
        if not name:
            raise InputError(
                f"Expected a value in column {group!r} of record {place} of {path}, "
                "received none. Fill it, or leave the record out: who shares a group "
                "with it cannot be told."
            )
    return names


def _table(path: Path, text: str, format: str, source: Source) -> list:
    if format == "tfrecord":
        from tfpriv.datasets.tfrecord import read_tfrecord

        return read_tfrecord(path, [text], source)
    data = path.read_bytes()
    if not data.removeprefix(b"\xef\xbb\xbf").strip():
        raise InputError(f"Expected a table in {source.name}, received an empty file.")
    return _PARSERS[format](decode(data, source), [text], source)


def _lines(text: str) -> list[str]:
    """Lines that end in LF, CRLF or CR; a line break at the very end begins none."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if not lines[-1] else lines


def _mended(cell: str) -> str:
    cell = cell.replace("\0", "")
    if cell.isascii():
        return cell
    return cell.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
