from __future__ import annotations

import collections
import os
import stat

import pytest

from tfpriv._errors import InputError
from tfpriv.datasets import load, md_gender, names, prepare, read, registry
from tfpriv.datasets.md_gender import configs, read_md_gender

NAMES = (
    "funpedia",
    "wizard",
    "wizard_as_published",
    "convai2",
    "light",
    "opensubtitles",
    "new_data",
)
INFERRED = ("convai2", "light", "opensubtitles")


def files(folder) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def edit(folder, name, old, new) -> None:
    path = folder / "data_to_release" / name
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new, 1))


def test_every_configuration_is_registered_with_its_genders():
    assert tuple(configs()) == NAMES
    assert [name for name in names() if name.startswith("md_gender/")] == [
        f"md_gender/{name}" for name in NAMES
    ]
    for config in configs().values():
        assert set(config.genders) <= set(md_gender.GENDERS)


@pytest.mark.parametrize("name", NAMES)
def test_texts_have_a_sentiment_and_one_of_the_genders_kept(fake_gender, name):
    splits = read_md_gender(name, fake_gender)
    kept = configs()[name].genders
    for part in splits:
        assert set(part.private_names) <= set(kept)
        assert (part.label_column, part.private_column) == ("sentiment", "gender")
        assert set(part.label_names) <= set(md_gender.SENTIMENTS)
        assert len(part.labels) == len(part.private) == len(part)
        assert "Hunter2" not in str(vars(part))
    assert splits.test.private_names == kept


def test_which_rows_are_dropped_in_which_configuration(fake_gender):
    counts = {
        name: [len(part) for part in read_md_gender(name, fake_gender)]
        for name in NAMES
    }
    # The files hold male, female, neutral and then the first 2, 3 and 4 of those
    # and one more male.
    assert counts["funpedia"] == [5, 6, 7]
    assert counts["wizard"] == [4, 4, 5]
    assert counts["wizard_as_published"] == [3, 4, 4]
    assert all(counts[name] == counts["wizard"] for name in INFERRED)
    assert counts["new_data"] == [0, 0, 2]
    part = read_md_gender("wizard_as_published", fake_gender).train
    assert part.private == ("female", "gender-neutral", "female")
    assert part.provenance["other_rows"] == 2


def test_tabs_inside_an_inferred_text_stay_in_it(fake_gender):
    part = read_md_gender("light", fake_gender).train
    assert part.texts[0] == "i love\t it male ."
    assert part.labels[0] == "positive"


def test_sentiment_can_be_left_out(fake_gender):
    part = read_md_gender("wizard", fake_gender, sentiment=False).train
    assert part.labels is None
    assert part.private is not None


def test_load_gives_the_official_parts_whatever_the_seed(fake_gender, tmp_path):
    prepare("md_gender/wizard", fake_gender, tmp_path / "data")
    splits = load("md_gender/wizard", data_dir=tmp_path / "data", seed=3)
    assert splits == load("md_gender/wizard", data_dir=tmp_path / "data")
    assert [len(part) for part in splits] == [4, 4, 5]
    pooled = read("md_gender/wizard", data_dir=tmp_path / "data")
    assert pooled.private == sum((part.private for part in splits), ())
    with pytest.raises(InputError, match="seed"):
        load("md_gender/wizard", data_dir=tmp_path / "data", seed=-1)


@pytest.mark.parametrize("name", ["convai2", "new_data"])
def test_prepare_copies_the_files_of_one_corpus_from_a_folder(
    fake_gender, tmp_path, name
):
    assert not registry.is_prepared(f"md_gender/{name}", tmp_path / "data")
    folder = prepare(f"md_gender/{name}", fake_gender, tmp_path / "data")
    assert folder == tmp_path / "data" / "md_gender" / "data_to_release"
    assert set(files(folder)) == set(configs()[name].files.values())
    assert registry.is_prepared(f"md_gender/{name}", tmp_path / "data")
    assert not registry.is_prepared("md_gender/light", tmp_path / "data")
    for path in folder.rglob("*.*"):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    # What is in place is a source as well, and stays.
    before = files(folder)
    prepare(f"md_gender/{name}", folder, tmp_path / "data")
    prepare(f"md_gender/{name}", data_dir=tmp_path / "data")
    assert files(folder) == before


@pytest.mark.parametrize("kind", ["archive", "download"])
def test_prepare_takes_all_corpora_and_nothing_else_out_of_the_archive(
    fake_gender, fake_tgz, tmp_path, monkeypatch, kind
):
    monkeypatch.setattr(md_gender, "URL", fake_tgz.as_uri())
    source = fake_tgz if kind == "archive" else None
    folder = prepare("md_gender/light", source, tmp_path / "new" / "data")
    assert files(folder) == files(fake_gender / "data_to_release")
    assert set(files(tmp_path / "new")) == {
        f"data/md_gender/data_to_release/{name}" for name in files(folder)
    }
    assert not list(tmp_path.rglob("escape.txt"))
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    for name in NAMES:
        assert registry.is_prepared(f"md_gender/{name}", tmp_path / "new" / "data")


def test_the_archive_itself_can_be_read(fake_gender, fake_tgz):
    assert read_md_gender("light", fake_tgz) == read_md_gender("light", fake_gender)


def test_an_archive_that_is_not_the_official_one_is_refused(
    fake_gender, fake_tgz, tmp_path
):
    content = bytearray(fake_tgz.read_bytes())
    content[-1] ^= 1
    fake_tgz.write_bytes(content)
    with pytest.raises(InputError, match="differs"):
        prepare("md_gender/light", fake_tgz, tmp_path / "data")
    fake_tgz.write_bytes(content + b"more")
    with pytest.raises(InputError, match="differs"):
        prepare("md_gender/light", fake_tgz, tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_without_network_the_user_is_told_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(md_gender, "URL", "http://127.0.0.1:9/none.tgz")
    with pytest.raises(ConnectionError, match="--source TGZ") as caught:
        prepare("md_gender/light", data_dir=tmp_path / "data")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists()


def test_a_download_that_is_too_long_or_no_archive_is_refused(
    fake_gender, fake_tgz, tmp_path, monkeypatch
):
    page = tmp_path / "page.html"
    page.write_text("<html>sign in</html>")
    monkeypatch.setattr(md_gender, "URL", page.as_uri())
    with pytest.raises(ConnectionError, match="no tgz archive"):
        prepare("md_gender/light", data_dir=tmp_path / "data")
    page.write_bytes(fake_tgz.read_bytes() + b"more")
    with pytest.raises(ConnectionError, match="more bytes"):
        prepare("md_gender/light", data_dir=tmp_path / "data")


@pytest.mark.parametrize(
    "name", ["wizard/train.jsonl", "inferred_about/light_test.txt"]
)
def test_a_missing_file_is_named(fake_gender, name):
    (fake_gender / "data_to_release" / name).unlink()
    config = "wizard" if "wizard" in name else "light"
    with pytest.raises(InputError, match=rf"no {name}\. Run: tfpriv datasets prepare"):
        read_md_gender(config, fake_gender)


def test_what_is_not_there_or_not_known_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no funpedia/train\.jsonl"):
        read_md_gender("funpedia", tmp_path / "no")
    with pytest.raises(InputError, match="received 'yelp'"):
        read_md_gender("yelp", tmp_path)
    with pytest.raises(
        InputError, match="Run: tfpriv datasets prepare md_gender/light"
    ):
        prepare("md_gender/light", tmp_path, tmp_path / "data")


@pytest.mark.parametrize(
    ("config", "name", "old", "new", "words"),
    [
        (
            "wizard",
            "wizard/valid.jsonl",
            '"gender": "male"',
            '"gender": "hunter2"',
            "1",
        ),
        ("wizard", "wizard/valid.jsonl", '"gender": "female"', '"sex": "hunter2"', "2"),
        ("wizard", "wizard/valid.jsonl", '"gender": "male"', '"gender": ""', "1"),
        ("wizard", "wizard/test.jsonl", '{"text": "A', '"hunter2', "1"),
        ("light", "inferred_about/light_test.txt", "ABOUT:male", "hunter2", "1"),
        ("light", "inferred_about/light_test.txt", "\t0.5", "hunter2", "1"),
        ("light", "inferred_about/light_test.txt", "ABOUT:male", "ABOUT:hunter2", "1"),
        ("light", "inferred_about/light_test.txt", "ABOUT:male", "ABOUT:", "1"),
        ("new_data", "new_data/data.jsonl", '["ABOUT:male"]', '"hunter2"', "3"),
        ("new_data", "new_data/data.jsonl", '["ABOUT:male"]', '["hunter2"]', "3"),
        ("new_data", "new_data/data.jsonl", '["ABOUT:male"]', "[]", "3"),
        ("new_data", "new_data/data.jsonl", '{"text"', '{"hunter2"', "1"),
        ("new_data", "new_data/data.jsonl", '{"text"', "hunter2", "1"),
    ],
)
def test_a_bad_line_is_named_and_not_shown(fake_gender, config, name, old, new, words):
    edit(fake_gender, name, old, new)
    with pytest.raises(InputError, match=rf"line {words}\b") as caught:
        read_md_gender(config, fake_gender)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "A line" not in str(caught.value)


def test_a_file_without_a_row_of_the_kept_genders_is_refused(fake_gender):
    path = fake_gender / "data_to_release" / "wizard" / "test.jsonl"
    path.write_text('{"text": "A line.", "gender": "male"}\n')
    with pytest.raises(InputError, match="a row about female or gender-neutral"):
        read_md_gender("wizard_as_published", fake_gender)


# Real data. The sizes are those of the data folder's README, the counts of a gender
# those measured there; FACTS.md has 109 + 35 for Wizard's test part.


@pytest.mark.parametrize(
    ("name", "sizes", "test"),
    [
        (
            "funpedia",
            [23864, 2980, 2933],
            {"male": 2378, "female": 426, "gender-neutral": 129},
        ),
        ("wizard", [8524, 428, 353], {"male": 318, "female": 35}),
        (
            "wizard_as_published",
            [3498, 163, 144],
            {"gender-neutral": 109, "female": 35},
        ),
        ("new_data", [0, 0, 779], {"female": 398, "male": 381}),
    ],
)
def test_the_real_corpora_have_their_sizes(data_dir, name, sizes, test):
    splits = read_md_gender(name, data_dir, sentiment=False)
    assert [len(part) for part in splits] == sizes
    assert collections.Counter(splits.test.private) == test


def test_wizard_as_published_is_balanced_in_train_only(data_dir):
    splits = load("md_gender/wizard_as_published", data_dir=data_dir)
    assert collections.Counter(splits.train.private) == {
        "female": 1755,
        "gender-neutral": 1743,
    }
    assert splits.train.label_names == md_gender.SENTIMENTS
    assert len(splits.validation) + len(splits.test) == 307
    assert splits.train.texts[0] not in repr(splits)


@pytest.mark.parametrize("name", [*INFERRED, "new_data"])
def test_the_official_format_examples_are_read(data_dir, name):
    splits = read_md_gender(name, data_dir / "md_gender_format_examples")
    lines = {"convai2": [1, 4, 4], "light": [2, 4, 1], "opensubtitles": [4, 2, 3]}
    expected = lines.get(name, [0, 0, 4])
    if name != "new_data":
        assert [len(part) for part in splits] == expected
    assert splits.test.private_names
    assert set(splits.test.private_names) <= {"female", "male"}
    assert all("ABOUT" not in text for part in splits for text in part.texts)
