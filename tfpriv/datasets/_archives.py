"""Official archives: got, checked, and taken apart by the names of known files only."""

from __future__ import annotations

import hashlib
import importlib.resources
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from tfpriv._files import atomic_write

_SECONDS = 60
_BLOCK = 1 << 20
_KINDS: dict[str, Callable[[Path], bool]] = {
    "zip": zipfile.is_zipfile,
    "tgz": tarfile.is_tarfile,
}


def checksums(name: str) -> dict[str, tuple[int, str]]:
    """Size in bytes and SHA-256 of the official files of one data set, in order."""
    package = importlib.resources.files("tfpriv.datasets")
    table = package.joinpath("builders", "checksums", f"{name}.tsv")
    rows = (line.split("\t") for line in table.read_text("utf-8").splitlines())
    return {file: (int(size), digest) for file, size, digest in rows}


def sha256(path: str | os.PathLike) -> str:
    """The SHA-256 of a file of any size, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(url: str, path: Path, *, most_bytes: int, kind: str) -> None:
    """Writes what an address sends to `path`, of which no half is ever seen.

    Args:
        url: the address.
        path: the file to write, in a folder that exists.
        most_bytes: where more comes, the rest is not read.
        kind: "zip" or "tgz".

    Raises:
        ConnectionError: the address does not answer, or with something else.
    """
    import urllib.request

    reason = ""
    try:
        with (
            urllib.request.urlopen(url, timeout=_SECONDS) as response,
            atomic_write(path, binary=True) as file,
        ):
            left = most_bytes
            while left >= 0 and (block := response.read(min(_BLOCK, left + 1))):
                file.write(block)
                left -= len(block)
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "reason", error))
    else:
        if left < 0:
            reason = "more bytes than it can have"
        elif not _KINDS[kind](path):
            reason = f"no {kind} archive"
    if reason:
        path.unlink(missing_ok=True)
        raise ConnectionError(
            f"Expected the archive from {url}, received {reason}. "
            f"Download it elsewhere and give it: --source {kind.upper()}."
        )


def extract_tar(archive: Path, folder: Path, names: Mapping[str, str]) -> set[str]:
    """Takes the named files, and nothing else, out of a tar archive that was verified.

    An entry's name is compared with `names` and never used as a path, and links and
    devices are passed over: no archive can write outside `folder` or anything but
    those files. Each is written under a temporary name and renamed.

    Args:
        archive: the file, compressed or not.
        folder: made where it does not exist.
        names: name of an entry, with slashes, to the path under `folder` it gets.

    Returns:
        The names of the entries that were found.
    """
    found: set[str] = set()
    with tarfile.open(archive) as opened:
        for entry in opened:
            name = entry.name.removeprefix("./")
            content = opened.extractfile(entry) if entry.isreg() else None
            if name in names and content is not None:
                with content:
                    copy(content, folder / names[name])
                found.add(name)
    return found


def copy(content: IO[bytes], path: Path) -> None:
    """Copies an open binary file to `path`, atomically; makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, binary=True) as file:
        shutil.copyfileobj(content, file, _BLOCK)
