"""The options of commands that read private records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tfpriv._errors import InputError

if TYPE_CHECKING:
    from tfpriv.accounting import GroupBound

RecordsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="Private records: CSV, TSV, JSONL or TFRecord."
    ),
]
TextOption = Annotated[
    str, typer.Option("--text", metavar="COL", help="Column of the text.")
]
RunOption = Annotated[
    Path,
    typer.Option(
        "--output",
        metavar="DIR",
        help="Folder of the run; given again, the run goes on.",
    ),
]
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="csv, tsv, jsonl or tfrecord, where the file's name does not tell.",
    ),
]
GroupColumnOption = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="COL",
        help="Column of who wrote a record: the statement then has the epsilon for "
        "all the records of one, too.",
    ),
]
GroupSizeOption = Annotated[
    int | None,
    typer.Option(
        "--group-size",
        metavar="K",
        help="With --group: records of one, at most; more are refused.",
    ),
]


def group_bound(group: str | None, size: int | None) -> GroupBound | None:
    """Returns what --group and --group-size say together.

    Raises:
        InputError: one without the other, or a size that is none.
    """
    if group is None and size is None:
        return None
    if group is None or size is None:
        raise InputError(
            "Expected --group COL and --group-size K together, received "
            f"{'--group-size' if group is None else '--group'} alone."
        )
    from tfpriv.accounting import GroupBound

    return GroupBound(group, size)
