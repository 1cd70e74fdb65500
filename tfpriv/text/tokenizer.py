"""Text to tokens and back, with tokens for what is not a word."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

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
_PICTURE = (
    r"[\p{Extended_Pictographic}--[\#*0-9©®]]"
    r"[\uFE0E\uFE0F\U0001F3FB-\U0001F3FF]*+"
)
# Every repetition that is followed by something that may fail is possessive or has
# one way to match: a hostile text takes time proportional to its length.
_PATTERN = regex.compile(
    rf"""
      (?P<break><br\s*/?>)
    | (?P<smiley><3(?!\p{{N}})|:-?(?:\)+|\(+|/(?!/))|;-?\)+
        |:[dpo](?![\p{{L}}\p{{N}}])|\^_+\^)
    | (?P<tag></?[a-z][^<>]*>)
    | (?P<email>(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++)
    | (?P<url>(?:https?:?//|www\.)[^\s<>]*[^\s<>.,!?;:()\[\]"']
        |(?<![\w.-])(?:[\w-]+\.)+{_TLD}(?![\p{{L}}\p{{N}}])
            (?:/(?:[^\s<>]*[^\s<>.,!?;:()\[\]"'])?)?
        |/?watch\?v=[^\s<>]*[^\s<>.,!?;:()\[\]"'])
    | (?P<user>@[\w-]+)
    | (?P<number>\p{{N}}++(?:[.,:]\p{{N}}++)*(?:st|nd|rd|th|am|pm|k|m|%)?
        (?![\p{{L}}\p{{N}}]))
    | (?P<word>[\p{{L}}\p{{N}}][\p{{L}}\p{{M}}\p{{N}}]*(?:'\p{{L}}[\p{{L}}\p{{M}}]*)*)
    | (?P<emoji>\p{{Regional_Indicator}}{{1,2}}+
        |{_PICTURE}(?:\u200D{_PICTURE})*+)
    | (?P<nothing>[\p{{M}}\p{{Cf}}]+)
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
_NO_SPACE_AFTER = frozenset(["(", "[", "$", "#"])
SENTENCE_END = frozenset([".", "!", "?", "!!", "??", "?!", BREAK])
_CAPITALS = {":d": ":D", ":p": ":P", ":o": ":O", "xd": "xD"}
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
        return list(_split(text))

    def tokenize_all(self, texts: Iterable[str]) -> list[list[str]]:
        """Returns the tokens of each text."""
        return [self.tokenize(text) for text in texts]

    def detokenize(self, tokens: Sequence[str], *, seed: int = 0) -> str:
        """Returns tokens as text that reads like text and tokenises back to them.

        Args:
            tokens: the tokens of one text, as `tokenize` gives them.
            seed: chooses digits, links and emoji; it carries nothing private.

        Returns:
            One line of text: sentences and "I" capitalised, marks attached unless
            that would make one token of two.
        """
        choose = random.Random(seed)
        text: list[str] = []
        chunk: list[tuple[str, str]] = []  # what no blank parts, with its tokens
        start, attach, quoted = True, False, False
        for token in tokens:
            piece = _show(token, choose)
            if token == "i" or token.startswith("i'") or (start and piece == token):
                piece = _capitalised(piece)
            closing = token == '"' and quoted
            attach = attach or closing or token in _NO_SPACE_BEFORE
            chunk = [*chunk[-2:], (piece, token)] if attach else [(piece, token)]
            if attach and not _holds(chunk):
                attach, chunk = False, [(piece, token)]
            if text and not attach:
                text.append(" ")
            text.append(piece)
            attach = token in _NO_SPACE_AFTER or (token == '"' and not quoted)
            quoted ^= token == '"'
            start = token in SENTENCE_END or (start and not piece[-1:].isalnum())
        return "".join(text)


def _split(text: str) -> Iterator[str]:
    for match in _PATTERN.finditer(clean(text).lower()):
        kind, found = match.lastgroup, match.group()
        if kind == "run":
            yield found[:2]
        elif kind == "smiley":
            yield _smiley(found)
        elif kind != "nothing":
            yield _FIXED.get(kind, found)


def _smiley(found: str) -> str:
    if found[0] == "^":
        return "^_^"
    # ":)))" is ":)" said louder.
    return found.rstrip(")(") + found[-1] if found[-1] in "()" else found


def _holds(chunk: Sequence[tuple[str, str]]) -> bool:
    """Whether pieces without blanks between them are still the same tokens.

    A few pieces decide: no word is ever attached to another word, so that nothing
    longer than a mark on either side of one piece can become a new token.
    """
    joined = "".join(piece for piece, _ in chunk)
    return list(_split(joined)) == [token for _, token in chunk]


def _capitalised(piece: str) -> str:
    capital = piece[:1].upper() + piece[1:]
    # Some letters come back changed: the sharp s as two letters, for one.
    return capital if clean(capital).lower() == piece else piece


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
    return _CAPITALS.get(token, token)
