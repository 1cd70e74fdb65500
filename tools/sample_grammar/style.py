"""How an invented author types: case, endings, slips, emoji, set phrases."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

_SLANG = {
    "you": "u", "your": "ur", "are": "r", "please": "pls", "because": "cuz",
    "people": "ppl", "before": "b4", "for": "4", "to": "2", "cannot": "cant",
    "can't": "cant", "i'm": "im", "thanks": "thx", "with": "w/", "videos": "vids",
}  # fmt: skip
_SHOUT_RATE = 0.03
_ESCAPE_RATE = 0.06
_BREAK_RATE = 0.01


@dataclass(frozen=True)
class Style:
    """An author's habits, the same in all their comments.

    Attributes:
        lower: Whether they never use capitals.
        emoji_rate: Chance that a comment ends in emoji.
        exclaim_rate: Chance that a sentence ends in exclamation marks.
        typo_rate: Chance of a slip, per word.
        phrase_rate: Chance of an opening phrase, and of a closing one.
    """

    lower: bool
    emoji_rate: float
    exclaim_rate: float
    typo_rate: float
    phrase_rate: float

    @classmethod
    def draw(cls, draw: random.Random) -> Style:
        """Draws the habits of a new author."""
        return cls(
            lower=draw.random() < 0.45,
            emoji_rate=draw.choice([0.0, 0.1, 0.45]),
            exclaim_rate=draw.choice([0.05, 0.2, 0.5]),
            typo_rate=draw.choice([0.0, 0.0, 0.01, 0.03]),
            phrase_rate=draw.choice([0.2, 0.45, 0.65]),
        )

    def typed(self, sentences: list[str], draw: random.Random) -> str:
        """Joins sentences into one comment, typed in this style."""
        shout = draw.random() < _SHOUT_RATE
        text = " ".join(self._sentence(s, shout, draw) for s in sentences)
        if draw.random() < _ESCAPE_RATE:
            # As exports of comments do, when they do it at all.
            text = text.replace(" and ", " &amp; ", 1).replace("'", "&#39;")
        if draw.random() < _BREAK_RATE:
            text = text.replace(". ", ".<br /> ", 1)
        return text

    def _sentence(self, sentence: str, shout: bool, draw: random.Random) -> str:
        if "example." in sentence or "@" in sentence:
            return sentence
        if not self.lower:
            sentence = re.sub(r"\bi\b", "I", sentence[0].upper() + sentence[1:])
        words = [self._word(word, draw) for word in sentence.split(" ")]
        sentence = " ".join(words) + self._ending(sentence[-1], draw)
        return sentence.upper() if shout else sentence

    def _word(self, word: str, draw: random.Random) -> str:
        if word in _SLANG:
            return _SLANG[word] if draw.random() < 4 * self.typo_rate else word
        if word == "so" and draw.random() < 2 * self.typo_rate:
            return "s" + "o" * draw.randint(2, 5)
        if len(word) > 4 and word.isalpha() and draw.random() < self.typo_rate:
            at = draw.randrange(1, len(word) - 2)
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        return word

    def _ending(self, last: str, draw: random.Random) -> str:
        if last == "?":
            return draw.choice(["", "", "", "?", "??", "!"])
        if last in "!:":
            return ""
        if draw.random() < self.exclaim_rate:
            return "!" * draw.choice([1, 1, 1, 2, 3, 3, 5])
        return draw.choice([".", ".", "", "", "..."])
