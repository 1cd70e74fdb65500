"""The one cleaning step: what every part of the library does to a text first.

It works on one record at a time and looks at no other, so it can neither leak nor
shift a record because of its neighbours.
"""

from __future__ import annotations

import html
import unicodedata

import regex

# Byte-order marks, zero-width spaces, direction marks, soft hyphens: invisible, and
# in real files more frequent in one class than in the other. U+200D joins emoji and
# stays.
_INVISIBLE = regex.compile(r"[\u00AD\u200B\u200C\u200E\u200F\u202A-\u202E\u2060\uFEFF]")
_CONTROL = regex.compile(r"[\p{Cc}\p{Cs}\p{Co}]+")
_SPACES = regex.compile(r"\s+")
_WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*")
# Python turns no more than 4300 digits into a number, and no such character exists.
_ENDLESS_ENTITY = regex.compile(r"&#[0-9]{8,}+;?")
# Normalisation sorts the marks on one letter, in time that grows with their square.
_MARKS = regex.compile(r"(\p{M}{16})\p{M}+")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "`": "'"})


def clean(text: str) -> str:
    r"""Returns `text` with entities, controls and invisible characters resolved.

    In order: HTML entities become characters, invisible characters go, Unicode is
    brought to NFKC, curly quotes become straight ones, controls and runs of white
    space become one blank, the ends are stripped. Case, punctuation, tags, links and
    emoji stay.

    >>> clean("  I&#39;ll  be\r\nback\ufeff ")
    "I'll be back"
    """
    text = html.unescape(_ENDLESS_ENTITY.sub("\ufffd", text))
    text = _MARKS.sub(r"\1", _INVISIBLE.sub("", text))
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    text = _CONTROL.sub(" ", text)
    return _SPACES.sub(" ", text).strip()


def canonical(text: str) -> str:
    """Returns the key under which two texts count as the same record.

    Letters, with their marks, and digits of the cleaned text, case-folded,
    everything between them one blank; a text without any (only emoji, say) is its own
    cleaned form.

    >>> canonical("Check OUT my channel!!") == canonical("check out, my channel")
    True
    """
    cleaned = clean(text)
    return " ".join(_WORD.findall(cleaned.casefold())) or cleaned
