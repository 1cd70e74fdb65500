"""The folder of one run: what may leave, what may not, and who is using it."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tfpriv._errors import InputError
from tfpriv._files import PRIVATE, atomic_write

_LEAST_FREE = 200 * 2**20
_OURS = frozenset({"release", "internal"})


class RunFolder:
    """`release/` (may leave) and `internal/` (mode 0700, must not) of one run.

    Opening it takes a lock that is held until `close`, so that two processes never
    work on one run, and checks that it belongs to these records: an HMAC under a key
    of its own, kept in `internal/`, detects a changed file and nothing more.

    Args:
        path: the folder; made if missing. It has to be empty or hold a run.
        records: the texts of the private records, in order.

    Raises:
        InputError: it holds something else, another process uses it, it belongs to
            other records, it is not writable, or the disk is full.
    """

    def __init__(self, path: Path, records: Iterable[Any]) -> None:
        self.path = path
        self.release = path / "release"
        self.internal = path / "internal"
        self._check_free_to_use()
        try:
            self.internal.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.release.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(
                f"Expected an output folder that can be written, received {path}: "
                f"{error.strerror}."
            ) from None
        self._lock = self._locked()
        try:
            self._check_room()
            self._check_records(records)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets go of the lock."""
        self._lock.release()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_free_to_use(self) -> None:
        if not self.path.exists():
            return
        if not self.path.is_dir():
            raise InputError(
                f"Expected a folder for --output, received {self.path}, which is a "
                "file."
            )
        try:
            others = sorted(
                entry.name for entry in self.path.iterdir() if entry.name not in _OURS
            )
        except PermissionError:
            raise InputError(
                f"Expected a folder that can be read for --output, received "
                f"{self.path}."
            ) from None
        if others:
            raise InputError(
                f"Expected an empty folder or an earlier run for --output, received "
                f"{self.path}, which holds {others[0]!r}. Name a new folder."
            )
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise InputError(
                f"Expected an output folder that can be written, received {self.path}."
            )

    def _locked(self) -> Any:
        import filelock

        lock = filelock.FileLock(self.internal / "run.lock")
        try:
            lock.acquire(blocking=False)
        except filelock.Timeout:
            raise InputError(
                f"Expected an output folder that no other run uses, received "
                f"{self.path}, where one is under way. Wait for it or name another."
            ) from None
        except OSError as error:
            raise InputError(
                f"Expected an output folder that can be written, received "
                f"{self.path}: {error.strerror}."
            ) from None
        return lock

    def _check_room(self) -> None:
        free = shutil.disk_usage(self.path).free
        if free < _LEAST_FREE:
            raise InputError(
                f"Expected {_LEAST_FREE >> 20} MB of free disk under {self.path}, "
                f"received {free >> 20} MB. Free some, or name another folder."
            )

    def _check_records(self, records: Iterable[Any]) -> None:
        key_path = self.internal / "records.key"
        seal_path = self.internal / "records.hmac"
        if not key_path.exists():
            with atomic_write(key_path, mode=PRIVATE) as file:
                file.write(secrets.token_hex(32))
        digest = hmac.new(
            key_path.read_text(encoding="utf-8").encode(), digestmod=hashlib.sha256
        )
        for record in records:
            part = repr(record).encode("utf-8", "surrogatepass")
            digest.update(len(part).to_bytes(8, "big") + part)
        seal = digest.hexdigest()
        if not seal_path.exists():
            with atomic_write(seal_path, mode=PRIVATE) as file:
                file.write(seal)
        elif not hmac.compare_digest(seal_path.read_text(encoding="utf-8"), seal):
            raise InputError(
                f"Expected the records of the run in {self.path}, received others: the "
                "file changed, or it is another. Give the same file to go on, or name "
                "a new output folder."
            )
