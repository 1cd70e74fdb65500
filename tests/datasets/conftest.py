"""A made-up spam collection in the official layout, and checksums that fit it."""

from __future__ import annotations

import hashlib
import pathlib
import zipfile

import pytest

from tfpriv.datasets import youtube_spam

NAMES = (
    "Youtube01-Psy.csv",
    "Youtube02-KatyPerry.csv",
    "Youtube03-LMFAO.csv",
    "Youtube04-Eminem.csv",
    "Youtube05-Shakira.csv",
)
AUTHOR = "Jane Q. Hunter2"


@pytest.fixture
def fake_spam(tmp_path, monkeypatch) -> pathlib.Path:
    """A folder with five small files that pass for the official ones."""
    folder = tmp_path / "official"
    folder.mkdir()
    sums = {}
    for number, name in enumerate(NAMES):
        content = (
            "COMMENT_ID,AUTHOR,DATE,CONTENT,CLASS\n"
            f'z{number},{AUTHOR},,"see my, \n channel {number}",1\n'
            f"y{number},{AUTHOR},2013-11-07,love it {number}\ufeff,0\n"
        ).encode()
        (folder / name).write_bytes(content)
        sums[name] = (len(content), hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(youtube_spam, "checksums", lambda: sums)
    return folder


@pytest.fixture
def fake_zip(fake_spam) -> pathlib.Path:
    """The same files as the archive holds them: beside a Mac's resource forks."""
    path = fake_spam.parent / "collection.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in NAMES:
            archive.write(fake_spam / name, name)
            archive.writestr(f"__MACOSX/{name}", b"resource fork")
            archive.writestr(f"__MACOSX/._{name}", b"resource fork")
        archive.writestr("../../escape.txt", b"no")
    return path
