"""The bundled sample: artificial, varied, and of the difficulty it promises."""

from __future__ import annotations

import csv
import hashlib
import importlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

TOOLS = Path(__file__).parents[2] / "tools"
MAX_TEMPLATE_SHARE = 0.02

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def folder() -> Path:
    return Path(str(files("tfpriv"))) / "datasets" / "sample"


@pytest.fixture(scope="module")
def rows(folder: Path) -> Rows:
    with (folder / "comments.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def maker() -> Iterator[ModuleType]:
    if not (TOOLS / "make_sample.py").is_file():
        pytest.skip("tools/ is not beside the tests")
    sys.path.insert(0, str(TOOLS))
    yield importlib.import_module("make_sample")
    sys.path.remove(str(TOOLS))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _share_of_commonest_phrase(texts: list[str], length: int = 5) -> float:
    """The share of texts that hold the commonest run of `length` words."""
    counts: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        words = _words(re.sub(r"\S*example\.\S+", "URL", text))
        runs = zip(*(words[i:] for i in range(length)), strict=False)
        counts.update(set(runs))
    return max(counts.values()) / len(texts)


def _score(rows: Rows, column: str, positive: str, metric: str) -> float:
    """Mean score over splits in which no author is on both sides."""
    texts = [row["text"] for row in rows]
    truth = [row[column] == positive for row in rows]
    authors = [row["author"] for row in rows]
    scores = []
    splitter = GroupShuffleSplit(3, test_size=0.4, random_state=0)
    for train, test in splitter.split(texts, truth, authors):
        model = make_pipeline(TfidfVectorizer(), LogisticRegression())
        model.fit([texts[i] for i in train], [truth[i] for i in train])
        held_out = [texts[i] for i in test]
        answer = [truth[i] for i in test]
        if metric == "accuracy":
            scores.append(model.score(held_out, answer))
        else:
            guess = model.predict_proba(held_out)[:, 1]
            scores.append(roc_auc_score(answer, guess))
    return sum(scores) / len(scores)


def test_has_the_promised_columns_and_enough_rows(rows: Rows) -> None:
    assert list(rows[0]) == ["text", "label", "gender", "author", "sentiment"]
    assert len(rows) >= 1000
    assert all(value.strip() for row in rows for value in row.values())


@pytest.mark.parametrize(
    ("column", "names", "least"),
    [
        ("label", {"spam", "ham"}, 0.45),
        ("gender", {"female", "male"}, 0.45),
        ("sentiment", {"positive", "neutral", "negative"}, 0.15),
    ],
)
def test_every_class_has_its_share(
    rows: Rows, column: str, names: set[str], least: float
) -> None:
    counts = Counter(row[column] for row in rows)
    assert set(counts) == names
    assert min(counts.values()) >= least * len(rows)


def test_vader_agrees_with_every_sentiment(rows: Rows) -> None:
    vader = SentimentIntensityAnalyzer()
    for row in rows:
        compound = vader.polarity_scores(row["text"])["compound"]
        expected = "neutral"
        if abs(compound) >= 0.05:
            expected = "positive" if compound > 0 else "negative"
        assert row["sentiment"] == expected


def test_label_is_learnable_but_not_trivial(rows: Rows) -> None:
    assert 0.70 < _score(rows, "label", "spam", "accuracy") < 0.95


def test_gender_leaks_from_text_to_new_authors(rows: Rows) -> None:
    assert 0.70 < _score(rows, "gender", "male", "auc") < 0.95


def test_gender_does_not_give_the_label_or_the_sentiment_away(rows: Rows) -> None:
    for column, name in (("label", "spam"), ("sentiment", "positive")):
        by_gender = {
            gender: [row[column] == name for row in rows if row["gender"] == gender]
            for gender in ("female", "male")
        }
        shares = [sum(hits) / len(hits) for hits in by_gender.values()]
        assert abs(shares[0] - shares[1]) < 0.1


def test_no_phrase_is_in_more_than_a_fiftieth_of_the_rows(rows: Rows) -> None:
    texts = [row["text"] for row in rows]
    assert _share_of_commonest_phrase(texts) <= MAX_TEMPLATE_SHARE


def test_phrase_measure_notices_an_overused_template(rows: Rows) -> None:
    texts = [row["text"] for row in rows]
    for i in range(len(texts) // 40):
        texts[i * 30] = f"{texts[i * 30]} please have a look at my {i} songs"
    assert _share_of_commonest_phrase(texts) > MAX_TEMPLATE_SHARE


def test_repeats_are_a_handful(rows: Rows) -> None:
    counts = Counter(" ".join(_words(row["text"])) for row in rows)
    assert 0 < len(rows) - len(counts) <= 10
    assert max(counts.values()) <= 3


def test_lengths_vary_within_the_limits(rows: Rows) -> None:
    lengths = sorted(len(row["text"].split()) for row in rows)
    assert lengths[0] >= 3
    assert lengths[-1] <= 40
    assert lengths[len(rows) // 20] <= 7
    assert lengths[-len(rows) // 20] >= 20


def test_links_point_to_example_domains_only(rows: Rows) -> None:
    link = re.compile(r"https?://\S+|www\.\S+|[\w.-]+\.[a-z]{2,}/\S*", re.I)
    allowed = re.compile(r"(https?://)?(www\.)?example\.(com|net|org)/[\w/?=]+")
    links = [found for row in rows for found in link.findall(row["text"])]
    assert len(links) > 0.05 * len(rows)
    assert all(allowed.fullmatch(found) for found in links)


def test_no_cell_starts_a_formula_or_breaks_the_line(rows: Rows) -> None:
    for row in rows:
        for value in row.values():
            assert value[0] not in "=+-@\t\r"
            assert "\n" not in value


def test_letters_are_english_and_emoji_occur(rows: Rows) -> None:
    text = " ".join(row["text"] for row in rows)
    assert all(letter.isascii() for letter in text if letter.isalpha())
    assert sum(not letter.isascii() for letter in text) > 100
    assert "&amp;" in text
    assert "!!!" in text


def test_an_author_has_one_gender_and_some_have_many_rows(rows: Rows) -> None:
    genders: dict[str, set[str]] = {}
    for row in rows:
        genders.setdefault(row["author"], set()).add(row["gender"])
    assert all(len(found) == 1 for found in genders.values())
    counts = Counter(row["author"] for row in rows)
    assert len(counts) > 300
    assert sum(count >= 5 for count in counts.values()) > 50


def test_provenance_says_artificial_and_matches_the_file(
    folder: Path, rows: Rows
) -> None:
    provenance = json.loads((folder / "README.json").read_text(encoding="utf-8"))
    content = (folder / "comments.csv").read_bytes()
    assert provenance["artificial"] is True
    assert provenance["license"] == "Apache-2.0"
    assert provenance["rows"] == len(rows)
    assert provenance["sha256"] == hashlib.sha256(content).hexdigest()


def test_no_template_is_above_a_fiftieth_of_the_rows(
    maker: ModuleType, rows: Rows
) -> None:
    made = maker.SampleMaker().rows()
    assert [row.text for row in made] == [row["text"] for row in rows]
    uses = Counter(name for row in made for name in set(row.templates))
    assert max(uses.values()) <= MAX_TEMPLATE_SHARE * len(made)


@pytest.mark.parametrize("label", ["ham", "spam"])
def test_each_label_has_eighty_templates(maker: ModuleType, label: str) -> None:
    patterns = [template.pattern for template in maker.Grammar().templates(label)]
    assert len(set(patterns)) == len(patterns) >= 80


def test_check_accepts_the_bundled_files(maker: ModuleType, folder: Path) -> None:
    assert maker.main(["--check", "--output", str(folder)]) == 0


def test_check_rejects_an_edited_file(
    maker: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert maker.main(["--output", str(tmp_path)]) == 0
    table = tmp_path / "comments.csv"
    table.write_bytes(table.read_bytes().replace(b"spam", b"ham", 1))
    assert maker.main(["--check", "--output", str(tmp_path)]) == 1
    assert "Run the script without --check" in capsys.readouterr().err


def test_seed_decides_the_rows(maker: ModuleType) -> None:
    first, again, other = (
        maker.SampleMaker(seed, rows=40).rows() for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
