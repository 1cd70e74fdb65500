"""Where budgets lie on this machine, and what recognises a file without telling it."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path

from tfpriv._errors import InputError
from tfpriv._files import PRIVATE, atomic_write

ENVIRONMENT = "TFPRIV_STATE_DIR"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_KEY_BYTES = 32
_CHUNK = 1 << 20


def state_folder() -> Path:
    """Returns the folder of budgets: TFPRIV_STATE_DIR, else that of the user."""
    given = os.environ.get(ENVIRONMENT)
    if given:
        return Path(given).expanduser().resolve()
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return (Path(base).expanduser() / "tfpriv").resolve()


def budget_folder(data_set: str) -> Path:
    """Returns the folder of one budget, which may not be there."""
    return state_folder() / "budgets" / checked_id(data_set)


def budget_ids() -> list[str]:
    """Returns the ids of all budgets of this machine."""
    try:
        entries = sorted((state_folder() / "budgets").iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [entry.name for entry in entries if _ID.fullmatch(entry.name)]


def checked_id(data_set: str) -> str:
    """Returns an id that can be used; raises InputError for another."""
    if not isinstance(data_set, str) or not _ID.fullmatch(data_set):
        raise InputError(
            "Expected an id of a data set of up to 64 letters, digits, '.', '_' and "
            f"'-', received {data_set!r}."
        )
    return data_set


def proposed_id(path: Path) -> str:
    """Returns an id made of a file's name that no budget has yet."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:56] or "data"
    taken, name, number = set(budget_ids()), stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


def make_folder(folder: Path) -> None:
    """Makes a folder that only its owner can enter, and those above it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)


def local_key(*, new: bool = False) -> bytes:
    """Returns the secret of this machine, 0600 in the state folder.

    Args:
        new: make one if there is none and no budget was ever sealed with one.

    Raises:
        InputError: it is lost or damaged.
    """
    path = state_folder() / "key"
    mend = (
        "Restore it from a copy; without it no file is recognised any more. If it is "
        "gone for good, give each data set again with `tfpriv budget accept`."
    )
    if not path.exists():
        if budget_ids() and not new:
            raise InputError(
                f"Expected the key that recognises data sets at {path}, received no "
                f"file. {mend}"
            )
        import filelock

        make_folder(path.parent)
        # Of two processes that find none, one makes it.
        with filelock.FileLock(path.with_name("key.lock"), mode=PRIVATE):
            if not path.exists():
                with atomic_write(path, mode=PRIVATE, binary=True) as file:
                    file.write(secrets.token_hex(_KEY_BYTES).encode())
    key = path.read_bytes()
    if len(key) != 2 * _KEY_BYTES:
        raise InputError(
            f"Expected a key of {_KEY_BYTES} bytes in {path}, received a damaged "
            f"file. {mend}"
        )
    return key


def fingerprint(path: Path, key: bytes) -> str:
    """Returns an HMAC-SHA-256 of a file's bytes, in hexadecimal.

    A plain hash would let whoever has it try rows until one fits; this tells nothing
    to whoever has no key.
    """
    digest = hmac.new(key, b"tfpriv data set\n", hashlib.sha256)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
