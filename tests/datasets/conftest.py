"""Made-up data sets in the official layouts, and checksums that fit them."""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import tarfile
import zipfile

import pytest

from tfpriv.datasets import md_gender, youtube_spam

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


def _page(*genders: str) -> str:
    rows = [
        {
            "text": f"A line about {gender} {i}.",
            "gender": gender,
            "title": "Jane Hunter2",
        }
        for i, gender in enumerate(genders)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def _inferred(*genders: str) -> str:
    return "".join(f"i love\t it {g} .\tABOUT:{g}\t0.5\n" for g in genders)


@pytest.fixture
def fake_gender(tmp_path) -> pathlib.Path:
    """A folder that holds data_to_release with one small file for each official one."""
    root = tmp_path / "unpacked" / "data_to_release"
    three = ("male", "female", "gender-neutral", "male")
    for name in (
        "funpedia/{}.jsonl",
        "wizard/{}.jsonl",
        "inferred_about/convai2_{}.txt",
        "inferred_about/light_{}.txt",
        "inferred_about/opensubtitles_{}.txt",
    ):
        for number, part in enumerate(("train", "valid", "test"), start=2):
            path = root / name.format(part)
            path.parent.mkdir(parents=True, exist_ok=True)
            make = _page if name.endswith("jsonl") else _inferred
            path.write_text(make(*three[:3], *three[:number]))
    rows = [
        {"text": "She paints.", "labels": ["ABOUT:female"], "class_type": "about"},
        {"text": "I paint.", "labels": ["SELF:female"], "class_type": "self"},
        {"text": "He hates it.", "labels": ["ABOUT:male"], "class_type": "about"},
    ]
    (root / "new_data").mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (root / "new_data" / "data.jsonl").write_text(lines)
    return root.parent


@pytest.fixture
def fake_tgz(fake_gender, monkeypatch) -> pathlib.Path:
    """The same files as an archive with entries that no one should write anywhere."""
    path = fake_gender.parent / "gend_multiclass_10072020.tgz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(fake_gender / "data_to_release", "data_to_release")
        for name in (
            "../escape.txt",
            "/escape.txt",
            "data_to_release/../escape.txt",
            "data_to_release/word_list/male_word_file.txt",
        ):
            entry = tarfile.TarInfo(name)
            entry.size = 2
            archive.addfile(entry, io.BytesIO(b"no"))
        link = tarfile.TarInfo("data_to_release/wizard/train.jsonl")
        link.type, link.linkname = tarfile.SYMTYPE, "../../../escape.txt"
        archive.addfile(link)
    content = path.read_bytes()
    sums = {path.name: (len(content), hashlib.sha256(content).hexdigest())}
    monkeypatch.setattr(md_gender, "checksums", lambda: sums)
    return path
