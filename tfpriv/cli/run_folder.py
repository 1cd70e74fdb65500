"""The folder of one run: what may leave, what may not, and who is using it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfpriv._errors import InputError
from tfpriv._files import PRIVATE

_LEAST_FREE = 200 * 2**20
_OURS = frozenset({"release", "internal"})
_STAGED = "staged"
# What `tfpriv report --release` makes of a release.
_REPORT = "report.html"
_OPEN = 0o755
# The setting that names what made a run; those of `tfpriv synthesize` have none.
_COMMAND = "command"
# What an opening that was killed may have left, before anything was read or paid.
_BEFORE_WORK = ("run.lock", "records.", ".records.")


class RunFolder:
    """`release/` (0755, may leave) and `internal/` (0700, must not) of one run.

    Opening it takes a lock that is held until `close`, so that two processes never
    work on one run, and checks that it belongs to these records (`RunStore.claim`).
    While it is open, files that this process makes are private (umask 077) unless
    whoever writes them says otherwise: libraries that save models do not ask.

    Args:
        path: the folder; made if missing. It has to be empty or hold a run.
        records: the private records, in order: text and label of each.
        settings: of the run, as far as the caller knows them; another value than the
            run began with is refused.

    Raises:
        InputError: it holds something else, another process uses it, it belongs to
            other records or settings, its ledger is lost, it is not writable, or the
            disk is full.
    """

    def __init__(
        self,
        path: Path,
        records: Iterable[Sequence[str]],
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = path
        self.release = path / "release"
        self.internal = path / "internal"
        self._check_free_to_use()
        self._new = not path.exists(), not self.internal.exists()
        try:
            self.internal.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.internal.chmod(0o700)
            self.release.mkdir(exist_ok=True)
            self._open_release()
        except OSError as error:
            raise InputError(
                f"Expected an output folder that can be written, received {path}: "
                f"{error.strerror}."
            ) from None
        self._lock = self._locked()
        self._umask = os.umask(0o077)
        try:
            self._check_settings(settings or {})
            self._check_room()
            self._check_records(records)
            self._remove_leftovers()
        except BaseException:
            self.close()
            raise

    def statement(self) -> bytes | None:
        """Returns privacy.json of the whole release that is there, or None."""
        path = self.release / "privacy.json"
        whole = path.exists() and (self.release / "synthetic.csv").exists()
        return path.read_bytes() if whole else None

    @contextlib.contextmanager
    def staged_release(self) -> Iterator[Path]:
        """Gives a folder whose files go to `release/` together, when the block ends.

        A block that raises, out of disk for instance, leaves `release/` as it was.
        The statement moves first: no text is there without what it cost.
        """
        staged = self.internal / _STAGED
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(mode=0o700)
        try:
            yield staged
            # A page about what was here before.
            (self.release / _REPORT).unlink(missing_ok=True)
            for file in sorted(staged.iterdir(), key=_statement_first):
                os.replace(file, self.release / file.name)
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    def abandon(self) -> None:
        """Takes away what opening made, where that was a new run; then closes.

        For what can be refused only after opening, with nothing done yet: the folder
        is not left to records or settings that no run was made of.
        """
        new_path, new_run = self._new
        self.close()
        if new_run:
            shutil.rmtree(self.internal, ignore_errors=True)
            with contextlib.suppress(OSError):
                self.release.rmdir()
                if new_path:
                    self.path.rmdir()

    def close(self) -> None:
        """Lets go of the lock."""
        os.umask(self._umask)
        self._lock.release()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_release(self) -> None:
        """Lets others into what this made and what may leave.

        Whatever the umask: that of a process with another run open is a private one.
        """
        new_path, new_run = self._new
        if new_path:
            self.path.chmod(_OPEN)
        if new_path or new_run:
            self.release.chmod(_OPEN)

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
        self._check_ours()
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise InputError(
                f"Expected an output folder that can be written, received {self.path}."
            )

    def _check_ours(self) -> None:
        """Refuses folders of the names of ours that no run made."""
        if (self.internal / "records.hmac").exists():
            return
        for folder in (self.internal, self.release):
            if folder.is_dir():
                for entry in folder.iterdir():
                    if folder is self.release or not entry.name.startswith(
                        _BEFORE_WORK
                    ):
                        raise InputError(
                            f"Expected an empty folder or an earlier run for "
                            f"--output, received {self.path}, which holds "
                            f"'{folder.name}/{entry.name}' and no run. Name a new "
                            "folder."
                        )

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        try:
            saved = json.loads(
                (self.internal / "config.json").read_text(encoding="utf-8")
            )
            other = saved.get(_COMMAND) != settings.get(_COMMAND)
            changed = []
            if not other:
                # A setting that an older tfpriv had not was None there.
                changed = [
                    name
                    for name, value in settings.items()
                    if (saved.get(name) if value is None else saved[name]) != value
                ]
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(
                f"Expected the settings of a run in {self.internal / 'config.json'}, "
                "received a damaged file. Name a new output folder."
            ) from None
        if other:
            raise InputError(
                f"Expected an empty folder or an earlier run of this command for "
                f"--output, received {self.path}, which holds a run of another. Name "
                "a new folder."
            )
        if changed:
            name = changed[0]
            raise InputError(
                f"Expected {name}={saved.get(name)}, with which the run in {self.path} "
                f"began, received {name}={settings[name]}. Give the same settings to "
                "go on, or name a new output folder."
            )

    def _remove_leftovers(self) -> None:
        """Removes what a killed write left: nobody else has the lock."""
        for path in self.internal.glob(".*"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def _locked(self) -> Any:
        import filelock

        lock = filelock.FileLock(self.internal / "run.lock", mode=PRIVATE)
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

    def _check_records(self, records: Iterable[Sequence[str]]) -> None:
        from tfpriv.seqgan.run_store import RunStore

        if not RunStore(self.internal).claim(records):
            raise InputError(
                f"Expected the records of the run in {self.path}, received others: the "
                "file changed, or it is another. Give the same file to go on, or name "
                "a new output folder."
            )


def _statement_first(path: Path) -> tuple[bool, str]:
    return path.suffix == ".csv", path.name
