from __future__ import annotations

import os
import stat
import zipfile

import pytest

from tfpriv._errors import InputError
from tfpriv.datasets import load, prepare, read, registry, youtube_spam

LAST = "Youtube05-Shakira.csv"


def folder_state(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_checksums_are_those_of_five_files():
    sums = youtube_spam.checksums()
    assert len(sums) == 5
    assert list(sums) == sorted(sums)
    assert all(len(digest) == 64 for _, digest in sums.values())


def test_comments_are_raw_labels_are_names_and_authors_are_not_kept(fake_spam):
    videos = youtube_spam.read_youtube_spam(fake_spam)
    table = videos[LAST]
    assert table.texts == ("see my, \n channel 4", "love it 4\ufeff")
    assert table.labels == ("spam", "ham")
    assert (table.text_column, table.label_column) == ("text", "label")
    assert "Hunter2" not in str([vars(video) for video in videos.values()])


@pytest.mark.parametrize("kind", ["folder", "zip", "download"])
def test_prepare_puts_the_verified_files_in_place(
    fake_spam, fake_zip, tmp_path, monkeypatch, kind
):
    monkeypatch.setattr(youtube_spam, "URL", fake_zip.as_uri())
    source = {"folder": fake_spam, "zip": fake_zip, "download": None}[kind]
    folder = prepare("youtube_spam", source, tmp_path / "data")
    assert folder == tmp_path / "data" / "youtube_spam"
    assert folder_state(folder) == folder_state(fake_spam)
    for path in folder.iterdir():
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert len(read("youtube_spam", data_dir=tmp_path / "data")) == 10
    assert not (tmp_path.parent / "escape.txt").exists()


def test_prepare_leaves_files_in_place_and_needs_no_network(fake_spam, monkeypatch):
    monkeypatch.setattr(youtube_spam, "URL", "http://127.0.0.1:9/none.zip")
    os.rename(fake_spam, fake_spam.parent / "youtube_spam")
    prepare("youtube_spam", data_dir=fake_spam.parent)


def test_prepare_without_network_says_how_to_go_on(fake_spam, tmp_path, monkeypatch):
    monkeypatch.setattr(youtube_spam, "URL", "http://127.0.0.1:9/none.zip")
    with pytest.raises(ConnectionError, match="--source ZIP") as caught:
        prepare("youtube_spam", data_dir=tmp_path / "data")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists()


def test_a_download_that_is_a_web_page_is_refused(fake_spam, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("<html>sign in</html>")
    monkeypatch.setattr(youtube_spam, "URL", page.as_uri())
    with pytest.raises(ConnectionError, match="no zip archive"):
        prepare("youtube_spam", data_dir=tmp_path / "data")


@pytest.mark.parametrize("kind", ["folder", "zip"])
@pytest.mark.parametrize("damage", ["changed", "longer", "missing"])
def test_a_source_that_is_not_the_official_one_changes_nothing(
    fake_spam, fake_zip, tmp_path, kind, damage
):
    prepared = prepare("youtube_spam", fake_spam, tmp_path / "data")
    before = folder_state(prepared)
    path = fake_spam / LAST
    content = path.read_bytes()
    path.unlink()
    if damage == "changed":
        path.write_bytes(content.replace(b"love", b"hate"))
    elif damage == "longer":
        path.write_bytes(content + b" " * 10_000)
    source = fake_spam
    if kind == "zip":
        source = tmp_path / "other.zip"
        with zipfile.ZipFile(source, "w") as archive:
            for file in fake_spam.iterdir():
                archive.write(file, f"deep/{file.name}")
    with pytest.raises(InputError, match=LAST) as caught:
        prepare("youtube_spam", source, tmp_path / "data")
    assert "Hunter2" not in str(caught.value)
    assert folder_state(prepared) == before


def test_a_damaged_archive_is_called_so(fake_spam, fake_zip, tmp_path):
    content = bytearray(fake_zip.read_bytes())
    start = content.index(b"Youtube01-Psy.csv") + 40
    content[start : start + 20] = bytes(20)
    fake_zip.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        prepare("youtube_spam", fake_zip, tmp_path / "data")


def test_a_source_that_is_nothing_is_refused(fake_spam, tmp_path):
    with pytest.raises(InputError, match="no such folder or archive"):
        prepare("youtube_spam", tmp_path / "no.zip", tmp_path)
    with pytest.raises(InputError, match="neither"):
        prepare("youtube_spam", fake_spam / LAST, tmp_path)


def test_load_without_files_says_how_to_get_them(tmp_path):
    with pytest.raises(InputError, match="tfpriv datasets prepare youtube_spam"):
        load("youtube_spam", data_dir=tmp_path)
    (tmp_path / "youtube_spam").mkdir()
    with pytest.raises(InputError, match="no Youtube01-Psy"):
        load("youtube_spam", data_dir=tmp_path)


def test_load_refuses_an_edited_file(fake_spam, tmp_path):
    folder = prepare("youtube_spam", fake_spam, tmp_path)
    with open(folder / LAST, "a") as file:
        file.write("a,b,c,d,1\n")
    with pytest.raises(InputError, match="differs"):
        load("youtube_spam", data_dir=tmp_path)


def test_the_real_collection(data_dir):
    whole = read("youtube_spam", data_dir=data_dir)
    assert len(whole) == 1956
    assert {name: len(part) for name, part in whole.by_label().items()} == {
        "ham": 951,
        "spam": 1005,
    }
    # Raw: the mark that leaks the label is still there, for cleaning to take out.
    assert sum(text.endswith("\ufeff") for text in whole.texts) > 1000
    splits = load("youtube_spam", data_dir=data_dir, seed=1)
    assert sum(map(len, splits)) == 1956
    unique = whole.deduplicate()
    assert len(unique) <= 1956 - 194


def test_the_real_files_are_the_official_ones(data_dir):
    assert registry.is_prepared("youtube_spam", data_dir)
    assert prepare("youtube_spam", data_dir=data_dir) == data_dir / "youtube_spam"
