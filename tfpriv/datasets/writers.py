"""Tables of text to CSV, TSV, JSONL and TFRecord files."""

from __future__ import annotations

import csv
import json
import os
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from tfpriv._errors import InputError
from tfpriv._files import PRIVATE, atomic_write
from tfpriv.datasets.readers import table_format

if TYPE_CHECKING:
    from tfpriv.datasets.text_dataset import TextDataset

_SIGNS = frozenset("=+-@\u2212")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def write_table(
    dataset: TextDataset,
    path: str | os.PathLike,
    *,
    format: str | None = None,
    mode: int = PRIVATE,
    guard_formulas: bool = True,
) -> None:
    """Writes the text and the label column, under their own names, and no other.

    The file is whole or not there. Groups and provenance are never written. In CSV
    and TSV every cell is quoted, the text comes first, and a cell that a spreadsheet
    would run gets an apostrophe in front (see `guard_formula`); JSONL and TFRecord
    hold texts as they are.

    Args:
        dataset: what to write.
        path: the file to write, in a folder that exists.
        format: as in `read_table`; None tells it from the name of the file.
        mode: permission bits. Private (0600) by default; a synthetic release takes
            0644.
        guard_formulas: whether to guard cells; without, CSV and TSV read back
            exactly as they were.

    Raises:
        InputError: the folder does not exist, or the format is unknown.
        OSError: the file cannot be written.
    """
    path = Path(path)
    format = table_format(path, format)
    if not path.parent.is_dir():
        raise InputError(
            f"Expected a folder that exists, received {path.parent}. Create it first."
        )
    columns = {dataset.text_column: [_encodable(text) for text in dataset.texts]}
    if dataset.labels is not None:
        columns[dataset.label_column] = [_encodable(label) for label in dataset.labels]
    if format == "tfrecord":
        from tfpriv.datasets.tfrecord import write_tfrecord

        write_tfrecord(path, columns, mode=mode)
        return
    with atomic_write(path, mode=mode) as file:
        if format == "jsonl":
            for row in zip(*columns.values(), strict=True):
                record = dict(zip(columns, row, strict=True))
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            return
        # Quoting all cells keeps a text whole where a spreadsheet splits at
        # semicolons or tabs, too: "a;=1+1" never becomes a cell =1+1.
        writer = csv.writer(
            file,
            delimiter="," if format == "csv" else "\t",
            quoting=csv.QUOTE_ALL,
            lineterminator="\n",
        )
        names = list(columns)
        if guard_formulas:
            names = [guard_formula(name) for name in names]
        writer.writerow(names)
        for text, *label in zip(*columns.values(), strict=True):
            if guard_formulas:
                text = guard_formula(text)
                label = [guard_formula(cell, numbers=False) for cell in label]
            writer.writerow([text, *label])


def guard_formula(cell: str, *, numbers: bool = True) -> str:
    r"""Puts an apostrophe before a cell that a spreadsheet would run as a formula.

    That is a cell whose first visible character is one of = + - @ (full-width and
    other forms of them included; blanks, line breaks and invisible characters before
    it do not help), and any cell that starts with a tab, CR or LF. The apostrophe is
    part of the cell: readers here leave it in.

    Args:
        cell: str. What the file would hold.
        numbers: bool. Whether plain numbers such as -1 are guarded as well. A
            spreadsheet does not run them, so labels are spared: the class "-1" must
            stay "-1".

    Examples:
        >>> guard_formula("=1+1"), guard_formula("\n@SUM(A1)"), guard_formula("a=b")
        ("'=1+1", "'\n@SUM(A1)", 'a=b')
        >>> guard_formula("-1"), guard_formula("-1", numbers=False)
        ("'-1", '-1')
    """
    if not numbers and _NUMBER.fullmatch(cell):
        return cell
    if cell[:1] in ("\t", "\r", "\n"):
        return "'" + cell
    for character in cell:
        if unicodedata.category(character) in ("Cc", "Cf", "Zs", "Zl", "Zp"):
            continue
        folded = unicodedata.normalize("NFKC", character)[0]
        return "'" + cell if folded in _SIGNS else cell
    return cell


def _encodable(cell: str) -> str:
    if cell.isascii():
        return cell
    return cell.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
