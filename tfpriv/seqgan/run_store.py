"""What a run has released or learnt so far, so that a killed one goes on."""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import secrets
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._files import PRIVATE, atomic_write, write_json
from tfpriv.accounting import PrivacyLedger

_KEY, _SEAL = "records.key", "records.hmac"
_LEDGER = "ledger.jsonl"


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
            self.folder / _LEDGER, limit_epsilon=limit_epsilon, delta=delta
        )

    def claim(self, records: Iterable[Sequence[str]]) -> bool:
        """Makes a new run that of these records, and says whether an old one is.

        What a run paid for was measured on its own records; with others, one budget
        would pay for two data sets. An HMAC under a key of the run's own detects
        other records and, without the key, tells nothing of them.

        Args:
            records: the private records in order, each the same number of strings:
                a text and its label.

        Returns:
            Whether they are the run's.

        Raises:
            InputError: the run lost its ledger or its seal.
        """
        key_path, seal_path = self.folder / _KEY, self.folder / _SEAL
        ledger = (self.folder / _LEDGER).exists()
        paid = [self.folder / "labels.json", *self.folder.glob("*.npz")]
        if not ledger and any(path.exists() for path in paid):
            raise InputError(
                f"Expected the ledger of the run in {self.folder}, received a run "
                f"without {_LEDGER}: what it spent is not known. Restore that file and "
                "its .head, or name a new output folder."
            )
        if ledger and not seal_path.exists():
            raise InputError(
                f"Expected the seal of the run in {self.folder}, received a run "
                f"without {_SEAL}: what records it is of is not known. Restore that "
                "file, or name a new output folder."
            )
        if not key_path.exists():
            with atomic_write(key_path, mode=PRIVATE) as file:
                file.write(secrets.token_hex(32))
        digest = hmac.new(key_path.read_bytes(), digestmod=hashlib.sha256)
        for record in records:
            part = repr(tuple(map(str, record))).encode("utf-8", "surrogatepass")
            digest.update(len(part).to_bytes(8, "big") + part)
        seal = digest.hexdigest()
        if not seal_path.exists():
            with atomic_write(seal_path, mode=PRIVATE) as file:
                file.write(seal)
        return hmac.compare_digest(seal_path.read_bytes(), seal.encode())

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
