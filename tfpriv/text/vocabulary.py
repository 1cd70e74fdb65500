"""Tokens to ids: public by default, and never fitted to private text in secret."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from tfpriv._validation import integer
from tfpriv.text.tokenizer import KINDS, MARKS, SMILEYS, Tokenizer

PAD, START, END, UNK = 0, 1, 2, 3
SPECIAL: tuple[str, ...] = ("<pad>", "<start>", "<end>", "<unk>")


class Vocabulary:
    """An ordered set of tokens with ids, and the tokenizer that makes them.

    Ids 0 to 3 are padding, start, end and unknown. Where the tokens come from is
    kept in `source`, which a privacy statement reads:

    - `"public"`: a frequency list of the language (`wordfreq`), no record read;
    - `"selected"`: chosen by a private mechanism, which charged for it;
    - `"private"`: read off the texts, with no guarantee (paper mode, or texts that
      are public).

    Args:
        tokens: the tokens, without the special ones, each once.
        source: str. "public", "selected" or "private".
    """

    def __init__(self, tokens: Iterable[str], *, source: str = "public") -> None:
        self.tokens: tuple[str, ...] = tuple(dict.fromkeys([*SPECIAL, *tokens]))
        self.source = source
        self.tokenizer = Tokenizer()

    @classmethod
    def public(cls, size: int = 8000, *, language: str = "en") -> Vocabulary:
        """Returns the `size` most frequent words of a language, kinds and marks.

        The word list is that of the `wordfreq` package (Speer 2022).
        """
        integer(size=size)
        from wordfreq import top_n_list

        # Some entries of the list are several tokens of ours ("u.s", "1st").
        tokenizer = Tokenizer()
        words = [
            word
            for word in top_n_list(language, size)
            if tokenizer.tokenize(word) == [word]
        ]
        fixed = (*KINDS, *SMILEYS, *MARKS)
        return cls([*fixed, *words][: max(size, len(fixed))], source="public")

    @classmethod
    def from_texts(
        cls, texts: Iterable[str], *, size: int | None = None, min_count: int = 1
    ) -> Vocabulary:
        """Returns the most frequent tokens of `texts`: for texts that are public.

        Args:
            texts: the texts, in any order (ties are broken alphabetically).
            size: at most this many tokens, or all.
            min_count: tokens in fewer places are left out.
        """
        tokenizer = Tokenizer()
        counts = Counter(t for text in texts for t in tokenizer.tokenize(text))
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        kept = [token for token, count in ranked if count >= min_count]
        return cls(kept[:size], source="private")

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def index(self) -> dict[str, int]:
        """Token to id."""
        return {token: i for i, token in enumerate(self.tokens)}

    def ids(self, tokens: Iterable[str], *, keep_unknown: bool = True) -> list[int]:
        """Returns the ids of tokens; unknown ones as UNK, or left out."""
        found = (self.index.get(token, UNK) for token in tokens)
        return [i for i in found if keep_unknown or i != UNK]

    def encode(
        self, texts: Sequence[str], max_length: int, *, keep_unknown: bool = True
    ) -> np.ndarray:
        """Returns texts as ids.

        Args:
            texts: n texts.
            max_length: longer ones are cut.
            keep_unknown: whether tokens outside the vocabulary stay as UNK.

        Returns:
            int32 of shape (n, max_length): the tokens, then END where there is room,
            then PAD.
        """
        integer(max_length=max_length)
        rows = np.full((len(texts), max_length), PAD, np.int32)
        for row, text in zip(rows, texts, strict=True):
            ids = self.ids(self.tokenizer.tokenize(text), keep_unknown=keep_unknown)
            ids = [*ids, END][:max_length]
            row[: len(ids)] = ids
        return rows

    def decode(self, rows: np.ndarray, *, seed: int = 0) -> list[str]:
        """Returns ids of shape (n, max_length) as n texts that read like text."""
        texts = []
        for number, row in enumerate(np.asarray(rows)):
            tokens = []
            for i in row:
                if i in (END, PAD):
                    break
                if i > UNK:
                    tokens.append(self.tokens[i])
            line_seed = seed * 1_000_003 + number
            texts.append(self.tokenizer.detokenize(tokens, seed=line_seed))
        return texts

    def to_json(self) -> dict:
        """Returns what `from_json` needs."""
        return {"tokens": list(self.tokens[len(SPECIAL) :]), "source": self.source}

    @classmethod
    def from_json(cls, value: dict) -> Vocabulary:
        """Returns the vocabulary that `to_json` wrote."""
        return cls(value["tokens"], source=value["source"])
