from __future__ import annotations

import pytest

tfds = pytest.importorskip("tensorflow_datasets")


def build(manual, data_dir):
    from tfpriv.datasets.builders.youtube_spam import YoutubeSpam

    builder = YoutubeSpam(data_dir=data_dir)
    config = tfds.download.DownloadConfig(manual_dir=manual)
    builder.download_and_prepare(download_config=config)
    return builder


def examples(dataset) -> list:
    return sorted((text.decode(), int(label)) for text, label in tfds.as_numpy(dataset))


@pytest.mark.parametrize("kind", ["folder", "nested", "zip"])
def test_the_builder_reads_the_manual_folder_as_supervised_pairs(
    fake_spam, fake_zip, tmp_path, kind
):
    manual = fake_spam
    if kind != "folder":
        manual = tmp_path / "manual"
        manual.mkdir()
        source = fake_spam if kind == "nested" else fake_zip
        name = "youtube_spam" if kind == "nested" else "youtube+spam+collection.zip"
        source.rename(manual / name)
    builder = build(manual, tmp_path / "tfds")
    assert builder.info.features["label"].names == ["ham", "spam"]
    assert builder.info.splits["train"].num_examples == 10
    pairs = examples(builder.as_dataset(split="train", as_supervised=True))
    assert pairs[0] == ("love it 0\ufeff", 0)
    assert pairs[-1] == ("see my, \n channel 4", 1)
    whole = next(iter(tfds.as_numpy(builder.as_dataset(split="train"))))
    assert set(whole) == {"text", "label", "video"}


def test_the_builder_refuses_files_that_are_not_the_official_ones(fake_spam, tmp_path):
    with open(fake_spam / "Youtube03-LMFAO.csv", "a") as file:
        file.write("x,y,z,w,1\n")
    with pytest.raises(Exception, match="differs"):
        build(fake_spam, tmp_path / "tfds")


def test_the_builder_builds_the_real_collection(data_dir, tmp_path):
    builder = build(data_dir, tmp_path)
    assert builder.info.splits["train"].num_examples == 1956
    pairs = examples(builder.as_dataset(split="train", as_supervised=True))
    assert sum(label for _, label in pairs) == 1005
