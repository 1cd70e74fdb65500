"""A file of JSON lines that only grows and notices what was done to it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tfpriv._errors import InputError
from tfpriv._files import PRIVATE, atomic_write

_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


class SealedLines:
    """Lines that carry a hash of themselves and of the line before.

    A second file, `<name>.head`, says how many lines there were. Every method but
    `locked` and `damaged` is called while the lock is held.

    Args:
        path: the file; its folder must exist.
        read_only: nothing is written; where not even a lock can be, it is left out.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self.read_only = read_only
        self._head_path = path.with_name(path.name + ".head")
        self._lock_path = path.with_name(path.name + ".lock")
        self.forget()
        if not path.parent.is_dir():
            # Checked here: filelock would make the folder.
            raise InputError(
                f"Expected an existing folder for the ledger, received {path}."
            )

    def forget(self) -> None:
        """Reads all lines again next time."""
        self._lines = 0
        self._chain = ""
        self._size = 0
        self._stamp: tuple[int, ...] = ()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes out; waits up to a minute for them."""
        import filelock

        lock = filelock.FileLock(self._lock_path, mode=PRIVATE, timeout=60)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise OSError(
                f"Expected {self.path} to be free within 60 s, received a lock that "
                "another process holds. Wait for it, or end it."
            ) from None
        except OSError as error:
            if not self.read_only or error.errno not in _NOT_WRITABLE:
                raise
        try:
            yield
        finally:
            lock.release()

    def create(self, header: Mapping[str, Any]) -> None:
        """Writes the first line, with the file's inode, which no copy shares."""
        if self._head_path.exists():
            raise self.damaged("the file is gone and its head is there")
        with atomic_write(self.path, mode=PRIVATE, binary=True) as file:
            inode = os.fstat(file.fileno()).st_ino
            file.write(_sealed({**header, "inode": inode}, "")[0])

    def refresh(self) -> tuple[bool, list[dict[str, Any]]]:
        """Takes in what other processes wrote; reads all again after an edit.

        Returns:
            (whether the lines begin with the first of the file, the new lines).

        Raises:
            InputError: a line was edited, cut off, taken out or put in; or the file
                or its head is gone.
        """
        try:
            stamp = _stamp(self.path)
        except FileNotFoundError:
            raise self.damaged("the file is gone") from None
        if stamp == self._stamp:
            return False, []
        if not (stamp[:1] == self._stamp[:1] and stamp[1] > self._size):
            self.forget()
        with self.path.open("rb") as file:
            file.seek(self._size)
            data = file.read()
        if not data.endswith(b"\n"):
            raise self.damaged("its last line is cut off")
        head, chain, first = self._read_head(), self._chain, self._lines + 1
        payloads = []
        for number, line in enumerate(data[:-1].split(b"\n"), first):
            payload, chain = self._opened(line, number, chain)
            payloads.append(payload)
            if head and head[0] == number and head[1] != chain:
                raise self.damaged(f"line {number} is not the one that was written")
        lines = self._lines + len(payloads)
        if head and head[0] > lines:
            lost = head[0] - lines
            raise self.damaged(f"lines are missing at its end: {lost}")
        if not head and lines > 1:
            raise self.damaged(f"{self._head_path.name} is missing beside it")
        self._lines, self._chain = lines, chain
        self._size, self._stamp = self._size + len(data), stamp
        if head != (lines, chain) and not self.read_only:
            self._write_head()
        return first == 1, payloads

    def append(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Writes one line, whole and to disk, or raises and writes nothing.

        Returns:
            The line as `refresh` returns it to others.
        """
        whole = {"index": self._lines, **payload}
        line, chain = _sealed(whole, self._chain)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            try:
                if os.write(descriptor, line) != len(line):
                    raise OSError(f"{self.path}: the disk is full.")
                os.fsync(descriptor)
            except BaseException:
                # Half a line would make the file unreadable for good.
                os.ftruncate(descriptor, self._size)
                raise
        finally:
            os.close(descriptor)
        self._lines += 1
        self._chain = chain
        self._size += len(line)
        self._stamp = _stamp(self.path)
        self._write_head()
        return json.loads(line)

    def damaged(self, what: str) -> InputError:
        """Returns the error for a file that is not as it was written."""
        return InputError(
            f"Expected a whole privacy ledger at {self.path}, but {what}. What was "
            "spent is no longer known: restore the file and its .head from a copy, "
            "or treat the budget of these records as used up."
        )

    def _opened(
        self, line: bytes, number: int, previous: str
    ) -> tuple[dict[str, Any], str]:
        try:
            payload = json.loads(line)
            payload.pop("chain")
            sealed, chain = _sealed(payload, previous)
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            raise self.damaged(f"line {number} is not a line of a ledger") from None
        if sealed != line + b"\n":
            raise self.damaged(f"line {number} was changed, or one before it")
        if number > 1 and payload.get("index") != number - 1:
            raise self.damaged(f"line {number} is out of order")
        return payload, chain

    def _read_head(self) -> tuple[int, str] | None:
        try:
            lines, chain = self._head_path.read_text(encoding="ascii").split()
            return int(lines), chain
        except FileNotFoundError:
            return None
        except ValueError:
            raise self.damaged(f"{self._head_path.name} beside it is broken") from None

    def _write_head(self) -> None:
        # One write of constant length: a reader sees the old head or the new one.
        # If the process dies before it, the head is a line behind, which is allowed.
        head = f"{self._lines:012d} {self._chain}\n".encode("ascii")
        descriptor = os.open(self._head_path, os.O_WRONLY | os.O_CREAT, PRIVATE)
        try:
            os.pwrite(descriptor, head, 0)
        finally:
            os.close(descriptor)


def _sealed(payload: Mapping[str, Any], previous: str) -> tuple[bytes, str]:
    """Returns the line of a payload and its hash, chained to the line before."""
    text = _canonical(payload)
    chain = hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
    return (_canonical({**payload, "chain": chain}) + "\n").encode(), chain


def _canonical(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, sort_keys=True, allow_nan=False)


def _stamp(path: Path) -> tuple[int, ...]:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
