"""The YouTube Spam Collection (Alberto, Lochter and Almeida 2015; UCI data set 380).

1,956 comments under five videos, 951 ham and 1,005 spam, CC BY 4.0. The files name
each comment's author; that column is never kept.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import tempfile
import zipfile
from pathlib import Path

from tfpriv._errors import InputError
from tfpriv._files import atomic_write
from tfpriv.datasets import _archives
from tfpriv.datasets.readers import read_bytes
from tfpriv.datasets.text_dataset import TextDataset

URL = "https://archive.ics.uci.edu/static/public/380/youtube+spam+collection.zip"
LABELS = {"0": "ham", "1": "spam"}
_MOST_BYTES = 10_000_000


def checksums() -> dict[str, tuple[int, str]]:
    """Size in bytes and SHA-256 of each of the five CSV files, in official order."""
    return _archives.checksums("youtube_spam")


def official_files(source: str | os.PathLike) -> dict[str, bytes]:
    """The content of the five official files, verified.

    Args:
        source: a folder that holds them, or the official zip archive.

    Returns:
        File name to content, in official order.

    Raises:
        InputError: a file is missing or differs from the official one, or `source`
            is neither a folder nor a zip archive.
    """
    source = Path(source)
    if source.is_dir():
        found = _from_folder(source)
    elif source.is_file() and zipfile.is_zipfile(source):
        found = _from_zip(source)
    elif source.exists():
        raise InputError(
            f"Expected a folder or a zip archive, received {source}, which is neither."
        )
    else:
        raise InputError(_missing("no such folder or archive", source))
    for name, (_, digest) in checksums().items():
        if hashlib.sha256(found[name]).hexdigest() != digest:
            raise InputError(
                f"Expected the official {name} (sha256 {digest[:12]}...) in {source}, "
                "received a file that differs. Take it from the official archive."
            )
    return found


def read_youtube_spam(source: str | os.PathLike) -> dict[str, TextDataset]:
    """Reads the comments of each file, raw, labelled `"ham"` or `"spam"`.

    Args:
        source: as in `official_files`.

    Returns:
        File name to TextDataset, in official order.

    Raises:
        InputError: as `official_files`.
    """
    videos = {}
    for name, content in official_files(source).items():
        table = read_bytes(content, name, format="csv", text="CONTENT", label="CLASS")
        if not set(table.label_names) <= set(LABELS):
            raise InputError(f"Expected CLASS 0 or 1 in {name}, received another one.")
        videos[name] = dataclasses.replace(
            table,
            labels=tuple(LABELS[label] for label in table.labels),
            text_column="text",
            label_column="label",
        )
    return videos


def prepare_youtube_spam(
    folder: str | os.PathLike, source: str | os.PathLike | None = None
) -> None:
    """Puts the five verified files into `folder`.

    Args:
        folder: made where it does not exist. Files that are there, whole, stay.
        source: a folder or the official zip archive; None downloads the archive.

    Raises:
        InputError: as `official_files`.
        ConnectionError: the archive cannot be downloaded.
    """
    folder = Path(folder)
    if source is None:
        try:
            official_files(folder)
            return
        except InputError:
            pass
        with tempfile.TemporaryDirectory() as temporary:
            archive = Path(temporary, "youtube_spam.zip")
            _archives.download(URL, archive, most_bytes=_MOST_BYTES, kind="zip")
            found = official_files(archive)
    else:
        found = official_files(source)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in found.items():
        with atomic_write(folder / name, binary=True) as file:
            file.write(content)


def _from_folder(folder: Path) -> dict[str, bytes]:
    missing = [name for name in checksums() if not (folder / name).is_file()]
    if missing:
        raise InputError(_missing(f"no {', '.join(missing)}", folder))
    return {name: (folder / name).read_bytes() for name in checksums()}


def _from_zip(archive: Path) -> dict[str, bytes]:
    found = {}
    broken = False
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            # Names are compared, never used as paths; __MACOSX/._x.csv is no x.csv.
            name = entry.filename.rsplit("/", 1)[-1]
            size, _ = checksums().get(name, (None, None))
            if size is None or entry.filename.startswith("__MACOSX"):
                continue
            try:
                # One byte more shows that a file is too large without reading it all.
                with opened.open(entry) as file:
                    found[name] = file.read(size + 1)
            except (zipfile.BadZipFile, OSError, RuntimeError, ValueError):
                broken = True
    if broken:
        raise InputError(f"Expected a whole zip archive, received {archive}, damaged.")
    missing = [name for name in checksums() if name not in found]
    if missing:
        raise InputError(_missing(f"no {', '.join(missing)}", archive))
    return {name: found[name] for name in checksums()}


def _missing(what: str, source: Path) -> str:
    return (
        f"Expected the five official files in {source}, received {what}. "
        "Run: tfpriv datasets prepare youtube_spam [--source FOLDER|ZIP], or set "
        "TFPRIV_DATA_DIR."
    )
