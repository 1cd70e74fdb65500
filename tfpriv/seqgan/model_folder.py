"""A folder of several files that is there as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tfpriv._errors import InputError
from tfpriv._files import PRIVATE

_OURS = frozenset({"model.json", "counts.npz", "classes.json", "published.json"})
_GENERATOR = "generator-"


@contextlib.contextmanager
def model_folder(path: str | os.PathLike, *, private: bool) -> Iterator[Path]:
    """Gives an empty folder that takes the name `path` once the block ends.

    The folder lies beside `path`, flushed to disk before it is renamed. A block that
    raises, on a full disk for instance, or a process that ends leaves what was at
    `path`: nothing, or the model that was saved there before. Only between the two
    renames that put a new model in the place of an old one is neither there; the old
    one is then in the folder `.<name>.*` beside it.

    Args:
        path: where the model goes; the folder above it is made if missing.
        private: whether files get mode 0600 and the folder 0700; else what the umask
            says.

    Yields:
        The folder to write to.

    Raises:
        InputError: at `path` there is a file, or a folder that holds anything else
            than a saved model.
    """
    # Resolved: a link stays where it is, and "." has a name.
    path = Path(path).resolve()
    _check_replaceable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        new, old = beside / "new", beside / "old"
        new.mkdir()
        # What the umask leaves of a folder's mode.
        mode = 0o700 if private else new.stat().st_mode & 0o777
        yield new
        for file in new.iterdir():
            _to_disk(file, PRIVATE if private else mode & 0o666)
        _to_disk(new, mode)
        _check_replaceable(path)
        if path.exists():
            os.rename(path, old)
        try:
            os.rename(new, path)
        except BaseException:
            if old.exists():
                os.rename(old, path)
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _check_replaceable(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(
            f"Expected a folder for the model, received {path}, which is a file."
        )
    names = sorted(entry.name for entry in path.iterdir())
    others = [n for n in names if n not in _OURS and not n.startswith(_GENERATOR)]
    if others or (names and "model.json" not in names):
        raise InputError(
            f"Expected an empty folder or a saved model to replace, received {path}, "
            f"which holds {(others or names)[0]!r}. Name a new folder."
        )


def _to_disk(path: Path, mode: int) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)
