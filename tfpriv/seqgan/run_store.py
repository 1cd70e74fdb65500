"""What a run has released or learnt so far, so that a killed one goes on."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._files import PRIVATE, atomic_write, write_json
from tfpriv.accounting import PrivacyLedger


class RunStore:
    """A folder of named arrays and JSON values, each written whole or not at all.

    Args:
        folder: where; made with mode 0700. None takes a temporary folder, which
            `close` removes, for runs that need not survive a kill.
    """

    def __init__(self, folder: str | os.PathLike | None = None) -> None:
        self._temporary = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="tfpriv-")
            folder = self._temporary.name
        self.folder = Path(folder)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def close(self) -> None:
        """Removes a temporary folder; one that was given stays."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def ledger(self, *, limit_epsilon: float, delta: float) -> PrivacyLedger:
        """Returns the run's ledger."""
        return PrivacyLedger(
            self.folder / "ledger.jsonl", limit_epsilon=limit_epsilon, delta=delta
        )

    def arrays(self, name: str) -> dict[str, np.ndarray] | None:
        """Returns the arrays saved under a name, or None."""
        path = self.folder / f"{name}.npz"
        if not path.exists():
            return None
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                return dict(file)
        except (ValueError, EOFError, zipfile.BadZipFile):
            raise InputError(
                f"Expected {path} as this run wrote it, received a damaged file. "
                "Remove the output folder and start again; its budget is spent."
            ) from None

    def save_arrays(self, name: str, arrays: dict[str, Any]) -> None:
        """Saves arrays under a name, over what was there."""
        path = self.folder / f"{name}.npz"
        # Through memory: on a full disk, zipfile would complain once more, later.
        whole = io.BytesIO()
        np.savez(whole, **arrays)
        with atomic_write(path, mode=PRIVATE, binary=True) as file:
            file.write(whole.getbuffer())

    def json(self, name: str) -> Any:
        """Returns the JSON value saved under a name, or None."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            return None
        return json.loads(path.read_text(encoding="utf-8"))

    def save_json(self, name: str, value: Any) -> None:
        """Saves a JSON value under a name, over what was there."""
        write_json(self.folder / f"{name}.json", value, mode=PRIVATE)
