from __future__ import annotations

import json

import pytest

from tfpriv._errors import InputError
from tfpriv.datasets import TextDataset, load, read
from tfpriv.datasets.sentiment import vader_sentiment, with_vader_labels


def corpus(folder, texts) -> None:
    folder.mkdir(parents=True)
    for part, text in zip(("train", "valid", "test"), texts, strict=True):
        line = json.dumps({"text": text, "gender": "ABOUT:female"})
        (folder / f"{part}.jsonl").write_text(line + "\n")


def test_all_official_parts_are_pooled_and_labelled_by_the_text_alone(tmp_path):
    folder = tmp_path / "md_gender" / "data_to_release" / "wizard"
    corpus(folder, ["I love it", "It is a door", "What a horrible disaster"])
    data = read("wizard_sentiment", data_dir=tmp_path)
    assert data.texts == ("I love it", "It is a door", "What a horrible disaster")
    assert data.labels == ("positive", "neutral", "negative")
    assert data.label_column == "sentiment"
    assert "female" not in str(vars(data))


@pytest.mark.parametrize(
    ("score", "label"),
    [
        (0.05, "positive"),
        (0.0499, "neutral"),
        (-0.0499, "neutral"),
        (-0.05, "negative"),
    ],
)
def test_the_thresholds_belong_to_the_outer_classes(monkeypatch, score, label):
    from vaderSentiment import vaderSentiment

    class Fixed:
        def polarity_scores(self, text):
            return {"compound": score}

    monkeypatch.setattr(vaderSentiment, "SentimentIntensityAnalyzer", Fixed)
    assert vader_sentiment(("any",)) == (label,)


def test_a_missing_part_is_named(tmp_path):
    folder = tmp_path / "md_gender" / "data_to_release" / "funpedia"
    corpus(folder, ["a", "b", "c"])
    (folder / "valid.jsonl").unlink()
    with pytest.raises(InputError, match=r"received no valid\.jsonl"):
        load("funpedia_sentiment", data_dir=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"), [("wizard_sentiment", 11256), ("funpedia_sentiment", 29777)]
)
def test_the_real_corpora(data_dir, name, count):
    data = read(name, data_dir=data_dir)
    assert len(data) == count
    assert data.label_names == ("negative", "neutral", "positive")
    shares = {label: len(part) / count for label, part in data.by_label().items()}
    assert min(shares.values()) > 0.05


def test_labelling_keeps_groups_and_private_labels_and_looks_at_texts_alone():
    data = TextDataset(
        ["I love it", "What a horrible disaster"],
        ["old", "old"],
        ["ann", "bob"],
        private=["x", "y"],
        private_column="who",
        provenance={"source": "mine.csv"},
    )
    labelled = with_vader_labels(data)
    assert labelled.labels == ("positive", "negative")
    assert (labelled.groups, labelled.private) == (data.groups, data.private)
    assert (labelled.label_column, labelled.private_column) == ("sentiment", "who")
    assert labelled.provenance["source"] == "mine.csv"
    assert with_vader_labels(data.select([1])).labels == labelled.labels[1:]


def test_labelling_refuses_the_name_of_another_column():
    data = TextDataset(["a"], private=["x"], private_column="sentiment")
    with pytest.raises(InputError, match="name of its own"):
        with_vader_labels(data)
    assert with_vader_labels(data, column="mood").label_column == "mood"
