"""Files that are either whole or not there, and private where they must be."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

PRIVATE = 0o600
PUBLIC = 0o644


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
    """
    path = Path(path)
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
