"""Makes the bundled sample: artificial comments, every one drawn from a grammar.

An invented author has a sex, a bent for honest or unwanted comments, one to three
topics and a way of typing. A row is one or two sentence templates on one of the
topics, filled, typed, and kept only if VADER's compound score agrees with the
sentiment that was meant. Nothing is taken from any data set; the skews between
the sexes are arbitrary and there so that an attacker finds something.

    python tools/make_sample.py                        # writes the sample
    python tools/make_sample.py --check                # is it what this makes?
    python tools/make_sample.py --with-templates FILE  # with a templates column
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sample_grammar import Grammar, Style, Template
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

TARGET = Path(__file__).parents[1] / "tfpriv" / "datasets" / "sample"
COLUMNS = ("text", "label", "gender", "author", "sentiment")

SEED = 7
ROWS = 1500
AUTHORS = 520
REPEATED_ROWS = 6
MAX_TEMPLATE_SHARE = 0.015
MIN_WORDS, MAX_TOKENS = 3, 40
VADER_THRESHOLD = 0.05

# Small talk that both kinds of author write, and honest sentences in front of
# unwanted ones: what keeps a classifier of the label short of perfect.
SHARED_RATE = 0.11
DISGUISED_SPAM_RATE = 0.2
OUT_OF_CHARACTER_RATE = 0.04
SECOND_SENTENCE_RATE = 0.22
PLAIN_TONE_RATE = 0.2
CALL_RATE = 0.6
SENTIMENT_WEIGHTS = {
    "ham": {"positive": 0.42, "neutral": 0.25, "negative": 0.33},
    "spam": {"positive": 0.42, "neutral": 0.32, "negative": 0.26},
}

_TOKEN = re.compile(
    r"(?:https?://|www\.|example\.)\S+|<br />|&#?\w+;|\w+(?:['.:]\w+)*|[^\w\s]+"
)


class Row(NamedTuple):
    """One comment, in the order of `COLUMNS`, and the templates it came from."""

    text: str
    label: str
    gender: str
    author: str
    sentiment: str
    templates: tuple[str, ...]


@dataclass(frozen=True)
class Author:
    """An invented commenter; `diligence` is how many comments fall to them."""

    handle: str
    gender: str
    label: str
    topics: tuple[str, ...]
    style: Style
    diligence: int


def tokens(text: str) -> list[str]:
    """Splits a comment as the length limit counts it: a URL is one token."""
    return _TOKEN.findall(text)


class SampleMaker:
    """Draws the rows of the sample.

    Args:
        seed: The same seed gives the same rows.
        rows: How many rows to draw.
    """

    def __init__(self, seed: int = SEED, rows: int = ROWS) -> None:
        self._draw = random.Random(seed)
        self._rows = rows
        self._grammar = Grammar()
        self._vader = SentimentIntensityAnalyzer()
        self._uses: Counter[str] = Counter()

    def rows(self) -> list[Row]:
        """Draws all rows. A few are pasted twice, as unwanted comments are."""
        authors = self._authors()
        weights = [author.diligence for author in authors]
        rows: list[Row] = []
        seen: set[str] = set()
        while len(rows) < self._rows - REPEATED_ROWS:
            row = self._row(self._draw.choices(authors, weights)[0])
            key = " ".join(re.findall(r"\w+", row.text.lower()))
            if key not in seen:
                seen.add(key)
                self._uses.update(row.templates)
                rows.append(row)
        spam = [row for row in rows if row.label == "spam"]
        for row in self._draw.sample(spam, REPEATED_ROWS):
            rows.insert(self._draw.randrange(len(rows)), row)
        return rows

    def sentiment(self, text: str) -> str:
        """VADER's verdict, at the customary threshold on the compound score."""
        compound = self._vader.polarity_scores(text)["compound"]
        if abs(compound) < VADER_THRESHOLD:
            return "neutral"
        return "positive" if compound > 0 else "negative"

    def _authors(self) -> list[Author]:
        draw = self._draw
        diligence = 1
        authors = []
        for i, handle in enumerate(self._grammar.handles(AUTHORS, draw)):
            gender = ("female", "male")[i % 2]
            if i % 4 == 0:
                # Shared by four, so that busy authors tie no gender to a label.
                diligence = draw.choice([1, 1, 1, 2, 6])
            weights = [
                topic["female"] if gender == "female" else 1 - topic["female"]
                for topic in self._grammar.topics.values()
            ]
            topics = draw.choices(
                list(self._grammar.topics), weights, k=draw.randint(1, 3)
            )
            authors.append(
                Author(
                    handle=handle,
                    gender=gender,
                    label=("ham", "spam")[i // 2 % 2],
                    topics=tuple(topics),
                    style=Style.draw(draw),
                    diligence=diligence,
                )
            )
        return authors

    def _row(self, author: Author) -> Row:
        label = author.label
        if self._draw.random() < OUT_OF_CHARACTER_RATE:
            label = "spam" if label == "ham" else "ham"
        weights = SENTIMENT_WEIGHTS[label]
        tone = self._draw.choices(list(weights), list(weights.values()))[0]
        while True:
            text, used = self._comment(author, label, tone)
            if self._is_acceptable(text, tone):
                return Row(text, label, author.gender, author.handle, tone, used)

    def _is_acceptable(self, text: str, tone: str) -> bool:
        return (
            self.sentiment(text) == tone
            and len(text.split()) >= MIN_WORDS
            and len(tokens(text)) <= MAX_TOKENS
            # No cell that a spreadsheet would run as a formula.
            and text[0] not in "=+-@"
        )

    def _comment(
        self, author: Author, label: str, tone: str
    ) -> tuple[str, tuple[str, ...]]:
        draw = self._draw
        topic = draw.choice(author.topics)

        def filled(pattern: str) -> str:
            return self._grammar.fill(pattern, topic, author.gender, draw)

        sources = self._sources(label)
        used: list[Template] = []
        for source in sources:
            used.append(self._template(source, topic, tone, used))
        sentences = [filled(template.pattern) for template in used]
        if "spam" in sources and draw.random() < CALL_RATE:
            sentences.append(filled("{cta}"))
        if draw.random() < author.style.phrase_rate:
            opener = draw.choice(["{opener}", "{opener}", "{self} ,"])
            if "{self}" in used[0].pattern:
                opener = "{opener}"
            sentences[0] = f"{filled(opener)} {sentences[0]}"
        if draw.random() < author.style.phrase_rate:
            sentences.append(filled("{closer}"))
        text = author.style.typed(sentences, draw)
        if draw.random() < author.style.emoji_rate:
            text += " " + self._grammar.emoji(tone, author.gender, draw)
        return text, tuple(template.name for template in used)

    def _sources(self, label: str) -> list[str]:
        """Where the sentences of one comment come from, in order."""
        draw = self._draw
        sources = [label]
        if draw.random() < SHARED_RATE:
            sources = ["shared"]
        elif label == "spam" and draw.random() < DISGUISED_SPAM_RATE:
            sources = ["ham", "spam"]
        if draw.random() < SECOND_SENTENCE_RATE:
            sources.append("shared" if draw.random() < 0.3 else sources[-1])
        return sources

    def _template(
        self, source: str, topic: str, tone: str, used: list[Template]
    ) -> Template:
        if self._draw.random() < PLAIN_TONE_RATE:
            tone = "neutral"
        kind = self._grammar.topics[topic]["kind"]
        limit = MAX_TEMPLATE_SHARE * self._rows
        free = [
            template
            for template in self._grammar.templates(source, kind, tone)
            if self._uses[template.name] < limit and template not in used
        ]
        # The less used of two, so that no template runs far ahead.
        pair = self._draw.sample(free, 2)
        return min(pair, key=lambda template: self._uses[template.name])


def as_csv(rows: Sequence[Row], *, with_templates: bool = False) -> str:
    """The rows as CSV with a header, optionally with the templates' names."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow((*COLUMNS, "templates") if with_templates else COLUMNS)
    for *cells, used in rows:
        writer.writerow((*cells, " ".join(used)) if with_templates else cells)
    return out.getvalue()


def provenance(rows: Sequence[Row], seed: int) -> str:
    """The text of README.json: what the sample is and where it comes from."""
    content = {
        "name": "tfpriv sample",
        "artificial": True,
        "description": (
            "Artificial comments on videos and products, written for the tfpriv "
            "project by a grammar. No text, author or handle is real, nothing is "
            "taken from another data set, and the differences between the genders "
            "are arbitrary: results on it say nothing about people."
        ),
        "license": "Apache-2.0",
        "generator": "tools/make_sample.py",
        "seed": seed,
        "rows": len(rows),
        "authors": len({row.author for row in rows}),
        "columns": {
            "text": "the comment, with a few HTML entities as exports have them",
            "label": "spam or ham",
            "gender": "female or male, of the invented author",
            "author": "an invented handle; one author may have several rows",
            "sentiment": (
                "positive, neutral or negative: VADER's compound score against "
                f"-{VADER_THRESHOLD} and {VADER_THRESHOLD}"
            ),
        },
        "sha256": hashlib.sha256(as_csv(rows).encode()).hexdigest(),
    }
    return json.dumps(content, indent=2) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or checks the sample; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--output", type=Path, default=TARGET, metavar="FOLDER")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--with-templates", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)

    rows = SampleMaker(options.seed).rows()
    if options.with_templates:
        text = as_csv(rows, with_templates=True)
        options.with_templates.write_bytes(text.encode())
        return 0
    files = {
        options.output / "comments.csv": as_csv(rows).encode(),
        options.output / "README.json": provenance(rows, options.seed).encode(),
    }
    for path, content in files.items():
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        elif not path.is_file() or path.read_bytes() != content:
            print(
                f"Expected {path} to be what tools/make_sample.py makes, received "
                "something else. Run the script without --check.",
                file=sys.stderr,
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
