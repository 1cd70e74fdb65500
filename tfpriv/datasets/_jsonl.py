"""JSON lines to records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tfpriv._errors import InputError
from tfpriv.datasets._cells import Record, Source, find_columns, to_cell


class _Number(str):
    """A number as the file writes it, so that 1 stays "1" and 1.0 stays "1.0"."""


class _Object(list):
    """The (name, value) pairs of an object, doubled names included."""


def read_jsonl(text: str, wanted: Sequence[str], source: Source) -> list[Record]:
    """Reads one JSON object a line; blank lines are passed over.

    Args:
        text: the whole file.
        wanted: names of the fields to keep.
        source: the name of the file, for errors.

    Raises:
        InputError: a line is no JSON object, or a wanted field is missing, doubled
            or neither text nor number. The message names the line, not its content.
    """
    # A CR inside a JSON string is always escaped, so these are line ends.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    records = []
    for place, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        pairs = _parse(line)
        if pairs is None:
            raise InputError(
                f"Expected one JSON object a line in {source.name}, received something "
                f"else in line {place}."
            )
        names = [name for name, _ in pairs]
        here = Source(f"{source.name}, line {place}")
        cells = []
        for position in find_columns(wanted, names, here):
            name, value = pairs[position]
            if isinstance(value, list):
                kind = "an object" if isinstance(value, _Object) else "a list"
                raise InputError(
                    f"Expected text or a number in field {name!r} of line {place} of "
                    f"{source.name}, received {kind}."
                )
            cells.append(to_cell(value))
        records.append(Record(place, tuple(cells)))
    if not records:
        raise InputError(
            f"Expected JSON objects in {source.name}, received an empty file."
        )
    return records


def _parse(line: str) -> _Object | None:
    try:
        value = json.loads(
            line,
            object_pairs_hook=_Object,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError):
        # Swallowed on purpose: the decoder's error carries the line.
        return None
    return value if isinstance(value, _Object) else None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)
