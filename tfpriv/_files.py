"""Files that are either whole or not there, and private where they must be."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from tfpriv._errors import InputError

PRIVATE = 0o600
PUBLIC = 0o644
# What reading an archive may raise that is not what was written.
DAMAGED = (
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# The machine's faults, which say nothing of the file that was read meanwhile.
_OF_THE_SYSTEM = _FULL | {
    errno.EACCES,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.EPERM,
    errno.EROFS,
}
_NO_TEMPORARY = "No usable temporary directory"


@contextlib.contextmanager
def atomic_write(
    path: str | os.PathLike, *, mode: int = PRIVATE, binary: bool = False
) -> Iterator[IO]:
    """Opens a temporary file that takes the name `path` once it is whole.

    The temporary file lies in the same folder; it is flushed to disk and renamed
    when the block ends, and removed when the block raises: a reader sees the old
    file or the new one, never half of either.

    Args:
        path: the file to write.
        mode: permission bits of the result. Private (0600) unless told otherwise.
        binary: whether the file takes bytes.

    Yields:
        The open file.

    Raises:
        InputError: what has that name is no ordinary file; a device would be lost.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise InputError(f"Expected the name of an ordinary file, received {path}.")
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        kwargs = {} if binary else {"encoding": "utf-8", "newline": ""}
        with os.fdopen(descriptor, "wb" if binary else "w", **kwargs) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
        raise


def write_json(path: str | os.PathLike, value: Any, *, mode: int = PRIVATE) -> None:
    """Writes `value` as indented JSON, atomically; refuses NaN and infinity."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_write(path, mode=mode) as file:
        file.write(text + "\n")


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk is full, or a quota used up."""
    if not isinstance(error, OSError):
        return False
    if error.errno is None:
        # HDF5, in which Keras keeps weights, has the reason in its message alone.
        return os.strerror(errno.ENOSPC) in str(error)
    return error.errno in _FULL or _NO_TEMPORARY in str(error)


def raise_if_of_the_system(error: BaseException) -> None:
    """Raises the fault of the machine that an error is, or was made of, if any.

    For whoever takes an error while a file is read for a damaged file: a folder for
    temporary files that is full, where Keras unpacks models, damages none.

    Args:
        error: what was caught; what it was raised from, or while, counts.

    Raises:
        OSError: no room, no permission, no memory or too many files; the message
            says which folder is full.
    """
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        if is_full(cause):
            folder = "/tmp" if _NO_TEMPORARY in str(cause) else tempfile.gettempdir()
            where = getattr(cause, "filename", None) or folder
            raise OSError(
                f"Expected room for temporary files, received a full disk at {where} "
                f"({os.strerror(errno.ENOSPC)}). Free some, or set TMPDIR to another "
                "folder."
            ) from error
        if isinstance(cause, OSError) and cause.errno in _OF_THE_SYSTEM:
            raise cause
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
