"""Text to tokens and back, with tokens for what is not a word."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import regex

from tfpriv.text.cleaning import clean

URL = "<url>"
EMAIL = "<email>"
USER = "<user>"
NUMBER = "<number>"
BREAK = "<br>"
TAG = "<tag>"
EMOJI = "<emoji>"

KINDS: tuple[str, ...] = (URL, EMAIL, USER, NUMBER, BREAK, TAG, EMOJI)
"""Tokens that stand for a kind of thing, never for the thing itself."""

SMILEYS: tuple[str, ...] = (
    ":)", ":(", ":d", ":p", ";)", ":-)", ":-(", ";-)", ":/", ":o", "<3", "xd", "^_^",
)  # fmt: skip
"""Smileys of plain characters that are tokens of their own."""

MARKS: tuple[str, ...] = (
    ".", ",", "!", "?", "!!", "??", "?!", "...", ":", ";", "-", "--", "(", ")", '"',
    "'", "/", "&", "*", "+", "=", "$", "%", "#", "@", "_", "~", "|", "[", "]", "^",
)  # fmt: skip
"""Punctuation tokens; a run of one mark is two of it, whatever its length."""

_TLD = r"(?:com|net|org|info|ru|de|tv|me|ly|be|co|uk|us|ca|io|gl|gd|biz|edu|gov|fm)"
_PATTERN = regex.compile(
    rf"""
      (?P<break><br\s*/?>)
    | (?P<smiley><3|:-?[()/]|;-?\)|:[dpo](?!\p{{L}})|\^_+\^)
    | (?P<tag></?[a-z][^<>]*>)
    | (?P<email>(?<![\w.+-])[\w.+-]++@[\w-]+\.[\w.-]+)
    | (?P<url>(?:https?:?//|www\.)[^\s<>]*
        |(?<![\w.-])(?:[\w-]+\.)+{_TLD}(?![\p{{L}}])(?:/[^\s<>]*)?
        |/?watch\?v=[^\s<>]+)
    | (?P<user>@[\w-]+)
    | (?P<number>\p{{N}}+(?:[.,:]\p{{N}}+)*(?:st|nd|rd|th|k|m|%)?(?!\p{{L}}))
    | (?P<word>[\p{{L}}\p{{M}}\p{{N}}]+(?:'[\p{{L}}]+)*)
    | (?P<emoji>(?:[\p{{Extended_Pictographic}}--[\#*0-9©®]]|\p{{Regional_Indicator}})
        [\uFE0F\u200D\U0001F3FB-\U0001F3FF]*)
    | (?P<dots>\.\.+|…)
    | (?P<mixed>[?!]*(?:\?!|!\?)[?!]*)
    | (?P<run>(?P<one>[^\s\p{{L}}\p{{N}}])(?P=one)+)
    | (?P<mark>\S)
    """,
    regex.VERBOSE | regex.VERSION1,
)
_FIXED = {
    "break": BREAK,
    "tag": TAG,
    "email": EMAIL,
    "url": URL,
    "user": USER,
    "number": NUMBER,
    "emoji": EMOJI,
    "dots": "...",
    "mixed": "?!",
}
_NO_SPACE_BEFORE = frozenset(
    [".", ",", "!", "?", "!!", "??", "?!", "...", ":", ";", ")", "]", "%"]
)
_NO_SPACE_AFTER = frozenset(["(", "[", "$", "#", "@"])
_SENTENCE_END = frozenset([".", "!", "?", "!!", "??", "?!", BREAK])
_EMOJI_SHOWN = ("😀", "😂", "❤️", "👍", "😍", "🔥", "😊", "🎶")


class Tokenizer:
    """Splits a text into lower-case words, kinds, smileys and punctuation runs.

    Everything that could carry a name, an address or a number is replaced by the
    name of its kind (`<url>`, `<email>`, `<user>`, `<number>`, ...): the token says
    that a link was there and not which. `detokenize` writes something of that kind
    in its place (a link to example.com, digits drawn at random).

    The tokenizer has no state and fits nothing.

    >>> Tokenizer().tokenize("Check THIS out!!! http://a.b/c  I&#39;m 99 :)")
    ['check', 'this', 'out', '!!', '<url>', "i'm", '<number>', ':)']
    """

    def tokenize(self, text: str) -> list[str]:
        """Returns the tokens of one text, cleaned first."""
        tokens = []
        for match in _PATTERN.finditer(clean(text).lower()):
            kind = match.lastgroup
            fixed = _FIXED.get(kind)
            if fixed is not None:
                tokens.append(fixed)
            elif kind == "run":
                tokens.append(match.group()[:2])
            else:
                tokens.append(match.group())
        return tokens

    def tokenize_all(self, texts: Iterable[str]) -> list[list[str]]:
        """Returns the tokens of each text."""
        return [self.tokenize(text) for text in texts]

    def detokenize(self, tokens: Sequence[str], *, seed: int = 0) -> str:
        """Returns tokens as text that reads like text and tokenises back to them.

        Args:
            tokens: the tokens of one text.
            seed: chooses digits, links and emoji; it carries nothing private.

        Returns:
            One line of text: sentences and "I" capitalised, marks attached.
        """
        choose = random.Random(seed)
        pieces: list[str] = []
        start, attach, quoted = True, True, False
        for token in tokens:
            piece = _show(token, choose)
            if start and piece[:1].isalpha() and token not in KINDS:
                piece = piece[:1].upper() + piece[1:]
            elif token == "i" or token.startswith("i'"):
                piece = "I" + piece[1:]
            closing = token == '"' and quoted
            if pieces and not attach and token not in _NO_SPACE_BEFORE and not closing:
                pieces.append(" ")
            pieces.append(piece)
            attach = token in _NO_SPACE_AFTER or (token == '"' and not quoted)
            if token == '"':
                quoted = not quoted
            start = token in _SENTENCE_END or (start and not piece[-1:].isalnum())
        return "".join(pieces)


def _show(token: str, choose: random.Random) -> str:
    if token == URL:
        letters = "".join(choose.choices("abcdefghijkmnpqrstuvwxyz23456789", k=6))
        return f"http://example.com/{letters}"
    if token == NUMBER:
        return str(choose.randint(2, 10 ** choose.randint(1, 3)))
    if token == EMAIL:
        return f"user{choose.randint(1, 99)}@example.com"
    if token == USER:
        return f"@user{choose.randint(1, 99)}"
    if token == EMOJI:
        return choose.choice(_EMOJI_SHOWN)
    if token == BREAK:
        return "<br />"
    if token == TAG:
        return "<b>"
    if token == "!!":
        return "!" * choose.choice((2, 3, 3, 4))
    return token
