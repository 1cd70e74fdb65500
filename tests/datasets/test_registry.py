from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

from tfpriv._errors import InputError
from tfpriv.datasets import load, names, prepare, registry


def test_an_unknown_name_is_answered_with_those_there_are():
    with pytest.raises(InputError, match=r"sample, youtube_spam.*received 'spam'"):
        load("spam")


@pytest.mark.parametrize("name", registry.names())
def test_every_entry_tells_its_licence_and_what_it_is(name):
    entry = registry.entry(name)
    assert entry.name == name
    assert entry.licence
    assert "\n" not in entry.summary


def test_the_data_folder_is_argument_then_environment_then_cache(monkeypatch):
    monkeypatch.setenv("TFPRIV_DATA_DIR", "/somewhere")
    assert registry.data_folder("here") == pathlib.Path("here")
    assert registry.data_folder() == pathlib.Path("/somewhere")
    monkeypatch.delenv("TFPRIV_DATA_DIR")
    assert registry.data_folder() == pathlib.Path.home() / ".cache" / "tfpriv"


def test_the_sample_comes_with_the_package_and_cannot_be_prepared(tmp_path):
    assert names()[0] == "sample"
    splits = load("sample", data_dir=tmp_path)
    assert sum(map(len, splits)) >= 1000
    assert splits.train.label_names == ("ham", "spam")
    with pytest.raises(InputError, match="comes with the package"):
        prepare("sample")


def test_seeds_split_differently(tmp_path):
    first, second = (load("sample", seed=seed).test.texts for seed in (0, 1))
    assert set(first) != set(second)


@pytest.mark.parametrize("name", ["wizard_sentiment", "funpedia_sentiment"])
def test_a_data_set_on_files_of_another_is_prepared_from_them(
    name, fake_gender, tmp_path
):
    with pytest.raises(InputError, match="train"):
        prepare(name, tmp_path, tmp_path / "data")
    assert not registry.is_prepared(name, tmp_path / "data")
    folder = prepare(name, fake_gender, tmp_path / "data")
    assert folder == tmp_path / "data/md_gender/data_to_release" / name.split("_")[0]
    assert registry.is_prepared(name, tmp_path / "data")
    # With the files in place nothing is downloaded.
    assert prepare(name, data_dir=tmp_path / "data") == folder


def test_importing_and_loading_bring_no_tensorflow():
    code = (
        "import sys, tfpriv.datasets; tfpriv.datasets.load('sample'); "
        "print([m for m in ('tensorflow', 'keras', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_package_tells_where_the_files_lie(tmp_path):
    from tfpriv import datasets

    assert datasets.data_folder(tmp_path) == tmp_path
    assert "data_folder" in datasets.__all__
