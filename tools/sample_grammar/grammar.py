"""Reads the templates and word lists and fills templates at random."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

SOURCES = ("ham", "spam", "shared")

# How often a word is taken from the list of the author's own sex: with the
# skews in topics.toml it sets how well gender can be told from text.
OWN_LIST_RATE = 0.9

_SLOT = re.compile(r"\{(\w+)\}")
_CHOICE = re.compile(r"(?<!\\)\(([^()]*)(?<!\\)\)")
_BEFORE_VOWEL = re.compile(r"\b([Aa]) (?=[aeio]|u(?!s[eu]))")
_NAMED_IN_PLURAL = ("cats", "birds")

_PATTERNED: dict[str, Callable[[random.Random], str]] = {
    "time": lambda draw: f"{draw.randint(0, 12)}:{draw.randint(0, 59):02d}",
    "year": lambda draw: str(draw.randint(2015, 2026)),
    "code": lambda draw: (
        draw.choice(["SAVE", "GIFT", "WIN", "VIP"]) + str(draw.randint(5, 90))
    ),
}


class Template(NamedTuple):
    """A sentence template with the name under which its use is counted."""

    name: str
    pattern: str


class Grammar:
    """Templates, topics and word lists of the sample.

    Args:
        folder: Where the TOML files lie; by default beside this module.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(__file__).parent
        self.topics: dict[str, dict[str, Any]] = self._read("topics")
        lists = self._read("slots")
        self._slots: dict[str, list[str]] = lists["slots"]
        self._gendered: dict[str, dict[str, list[str]]] = lists["gendered"]
        self._own: dict[str, dict[str, list[str]]] = lists["own"]
        self._emoji: dict[str, list[str]] = lists["emoji"]
        self._handles: dict[str, list[str]] = lists["handles"]
        self._paths: dict[str, list[str]] = lists["links"]
        self._groups = {source: self._named(source) for source in SOURCES}

    def templates(
        self, source: str, kind: str | None = None, tone: str | None = None
    ) -> list[Template]:
        """The templates of one source that fit a kind of topic and a sentiment.

        Args:
            source: "ham", "spam" or "shared".
            kind: "video" or "product"; None for all.
            tone: "positive", "neutral" or "negative"; None for all.
        """
        return [
            template
            for (its_kind, its_tone), group in self._groups[source].items()
            if kind in (None, its_kind) or its_kind == "any"
            if tone in (None, its_tone)
            for template in group
        ]

    def handles(self, count: int, draw: random.Random) -> list[str]:
        """Invented author names, all different."""
        pairs = list(product(*self._handles.values()))
        return [
            f"{a}{draw.choice(['', '_', '.'])}{b}"
            f"{draw.choice(['', str(draw.randint(2, 99))])}"
            for a, b in draw.sample(pairs, count)
        ]

    def fill(self, pattern: str, topic: str, gender: str, draw: random.Random) -> str:
        """Fills a template: every choice and slot, inside out, at random.

        Args:
            pattern: The template, e.g. `"{part} is {very} (good|bad)"`.
            topic: A name of `topics`.
            gender: "female" or "male", the author's.
            draw: The source of randomness.
        """
        while True:
            if found := _CHOICE.search(pattern):
                filler = draw.choice(found[1].split("|"))
            elif found := _SLOT.search(pattern):
                filler = self._filler(found[1], topic, gender, draw)
            else:
                break
            pattern = pattern[: found.start()] + filler + pattern[found.end() :]
        text = re.sub(r"\s+", " ", re.sub(r"\\([()])", r"\1", pattern)).strip()
        return _BEFORE_VOWEL.sub(r"\1n ", re.sub(r" +(?=[,.?!])", "", text))

    def emoji(self, tone: str, gender: str, draw: random.Random) -> str:
        """A run of one emoji that fits the sentiment, sometimes the author's sex."""
        palette = self._emoji[tone]
        if tone == "positive" and draw.random() < 0.6:
            palette = self._emoji[f"{self._side(gender, draw)}_positive"]
        run = draw.choice(palette) * draw.choice([1, 1, 1, 2, 3])
        return re.sub(r"\\([()])", r"\1", run)

    def _filler(self, slot: str, topic: str, gender: str, draw: random.Random) -> str:
        about = self.topics[topic]
        stem = slot.rstrip("2")
        if slot == "name_words":
            plural = about["kind"] == "product" or topic in _NAMED_IN_PLURAL
            return topic.replace("_", " ").rstrip("s") + "s" * plural
        if slot == "handle":
            return "@" + "_".join(draw.choice(part) for part in self._handles.values())
        if slot in ("url", "info_url"):
            return self._url("spam" if slot == "url" else "ham", draw)
        if slot in self._own:
            return draw.choice(self._own[slot][gender])
        if slot in self._gendered:
            return draw.choice(self._gendered[slot][self._side(gender, draw)])
        if stem in about:
            return draw.choice(about[stem])
        if stem in _PATTERNED:
            return _PATTERNED[stem](draw)
        return draw.choice(self._slots.get(slot) or self._slots[stem])

    def _url(self, source: str, draw: random.Random) -> str:
        start = draw.choice(["http://", "https://", "www.", "http://www.", ""])
        # The domains that RFC 2606 sets aside for examples.
        host = "example." + draw.choice(["com", "net", "org"])
        tail = draw.choice(
            ["", "", f"/{draw.randint(2, 99)}", f"?id={draw.randint(100, 9999)}"]
        )
        return f"{start}{host}/{draw.choice(self._paths[source])}{tail}"

    def _side(self, gender: str, draw: random.Random) -> str:
        own = draw.random() < OWN_LIST_RATE
        return "female" if (gender == "female") == own else "male"

    def _named(self, source: str) -> dict[tuple[str, str], list[Template]]:
        return {
            (kind, tone): [
                Template(f"{source}.{kind}.{tone}.{i}", pattern)
                for i, pattern in enumerate(patterns)
            ]
            for kind, tones in self._read(source).items()
            for tone, patterns in tones.items()
        }

    def _read(self, name: str) -> dict[str, Any]:
        path = self._folder / f"{name}.toml"
        return tomllib.loads(path.read_text(encoding="utf-8"))
