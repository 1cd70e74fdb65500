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
_NOT_ALPHANUMERIC = regex.compile(r"[^\p{L}\p{N}]+")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "`": "'"})


def clean(text: str) -> str:
    """Returns `text` with entities, controls and invisible characters resolved.

    In order: HTML entities become characters, Unicode is brought to NFKC, curly
    quotes become straight ones, invisible characters go, controls and runs of white
    space become one blank, the ends are stripped. Case, punctuation, tags, links and
    emoji stay.

    >>> clean("  I&#39;ll  be\\r\\nback\\ufeff ")
    "I'll be back"
    """
    text = html.unescape(text)
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    text = _INVISIBLE.sub("", text)
    text = _CONTROL.sub(" ", text)
    return _SPACES.sub(" ", text).strip()


def canonical(text: str) -> str:
    """Returns the key under which two texts count as the same record.

    Letters and digits of the cleaned text, case-folded, everything between them one
    blank; a text without any (only emoji, say) is its own cleaned form.

    >>> canonical("Check OUT my channel!!") == canonical("check out, my channel")
    True
    """
    cleaned = clean(text)
    key = _NOT_ALPHANUMERIC.sub(" ", cleaned.casefold()).strip()
    return key or cleaned
