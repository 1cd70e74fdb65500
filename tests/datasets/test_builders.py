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


def build_gender(name, manual, data_dir):
    from tfpriv.datasets.builders.md_gender import MdGender

    builder = MdGender(config=name, data_dir=data_dir)
    config = tfds.download.DownloadConfig(manual_dir=manual)
    builder.download_and_prepare(download_config=config)
    return builder


@pytest.mark.parametrize("kind", ["folder", "archive"])
@pytest.mark.parametrize("name", ["funpedia", "wizard_as_published", "light"])
def test_md_gender_is_built_with_its_label_and_its_private_label(
    fake_gender, fake_tgz, tmp_path, kind, name
):
    from tfpriv.datasets.md_gender import configs, read_md_gender

    manual = fake_gender if kind == "folder" else fake_tgz.parent / "manual"
    if kind == "archive":
        manual.mkdir()
        fake_tgz.rename(manual / fake_tgz.name)
    builder = build_gender(name, manual, tmp_path / "tfds")
    features = builder.info.features
    assert features["label"].names == ["negative", "neutral", "positive"]
    assert features["private"].names == list(configs()[name].genders)
    splits = read_md_gender(name, fake_gender)
    for part in ("train", "validation", "test"):
        data = getattr(splits, part)
        assert builder.info.splits[part].num_examples == len(data)
        built = [
            (
                row["text"].decode(),
                features["label"].int2str(row["label"]),
                features["private"].int2str(row["private"]),
            )
            for row in tfds.as_numpy(builder.as_dataset(split=part))
        ]
        rows = zip(data.texts, data.labels, data.private, strict=True)
        assert sorted(built) == sorted(rows)
    pairs = examples(builder.as_dataset(split="test", as_supervised=True))
    assert len(pairs) == len(splits.test)


def test_the_builder_of_a_test_set_alone_has_one_split(fake_gender, tmp_path):
    builder = build_gender("new_data", fake_gender, tmp_path)
    assert set(builder.info.splits) == {"test"}


def test_every_corpus_of_md_gender_has_a_builder_configuration():
    from tfpriv.datasets.builders.md_gender import MdGender
    from tfpriv.datasets.md_gender import configs

    assert set(MdGender.builder_configs) == set(configs())
    assert MdGender.name == "md_gender"


@pytest.mark.parametrize(
    ("name", "count"), [("wizard_as_published", 144), ("new_data", 779)]
)
def test_the_builder_builds_the_real_md_gender(data_dir, tmp_path, name, count):
    builder = build_gender(name, data_dir, tmp_path)
    assert builder.info.splits["test"].num_examples == count
