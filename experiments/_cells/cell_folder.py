"""The folder of a run."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from experiments._cells.progress import say
from tfpriv._errors import InputError
from tfpriv._files import PUBLIC, write_json


@dataclasses.dataclass(frozen=True)
class Cell:
    """What may be missing in a folder.

    Attributes:
        name: of its file, without the ending.
        title: what progress calls it.
        run: makes it; its JSON has the wall time as "seconds".
    """

    name: str
    title: str
    run: Callable[[], dict[str, Any]]


class CellFolder:
    """Cells of one set of settings, which lie beside them.

    Args:
        path: of the folder, which is made where it is missing.
        settings: of the run, as JSON.

    Raises:
        InputError: the folder holds a run of other settings, or something else.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self._cells = path / "cells"
        wanted = json.loads(json.dumps(settings))
        kept = path / "settings.json"
        path.mkdir(parents=True, exist_ok=True)
        if kept.exists():
            saved = json.loads(kept.read_text(encoding="utf-8"))
            names = {**wanted, **saved}
            changed = [n for n in names if saved.get(n) != wanted.get(n)]
            if changed:
                raise InputError(
                    f"Expected {path} to hold a run of these settings, received one "
                    f"of another {changed[0]}. Choose another --output."
                )
        elif any(path.iterdir()):
            raise InputError(
                f"Expected an empty folder, received {path}. Choose another --output."
            )
        self._cells.mkdir(exist_ok=True)
        write_json(kept, wanted, mode=PUBLIC)

    def finished(self) -> list[dict[str, Any]]:
        """Returns the cells that are there, by name."""
        paths = sorted(self._cells.glob("*.json"))
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    def complete(self, cells: Iterable[Cell], report: Callable[[], None]) -> None:
        """Makes the cells that are missing.

        Args:
            cells: those that the folder should hold.
            report: called after each that was made.
        """
        for cell in cells:
            path = self._cells / f"{cell.name}.json"
            if path.exists():
                continue
            say(cell.title)
            made = cell.run()
            write_json(path, made, mode=PUBLIC)
            say(f"{cell.title} took {made['seconds']:.0f} s")
            report()
