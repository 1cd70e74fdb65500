"""A small vocabulary for the networks, cut out of a large one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tfpriv.text.vocabulary import END, PAD, UNK


class WordIds:
    """Ids 4, 5, ... for the tokens that occur in some texts, and back.

    Networks over the tokens of a corpus are several times smaller than over a whole
    language. The corpus must be one that may be read: public or released.

    Args:
        tokens: ids in the large vocabulary, the special ones left out.
    """

    def __init__(self, tokens: Iterable[int]) -> None:
        self.tokens = np.unique(np.fromiter(tokens, np.int64))
        self.tokens = self.tokens[self.tokens > UNK]
        self._index = {int(token): i + UNK + 1 for i, token in enumerate(self.tokens)}

    def __len__(self) -> int:
        return len(self.tokens) + UNK + 1

    def rows(self, texts: Sequence[Sequence[int]], max_length: int) -> np.ndarray:
        """Returns texts as int32 (n, max_length): known tokens, END, PAD."""
        rows = np.full((len(texts), max_length), PAD, np.int32)
        for row, text in zip(rows, texts, strict=True):
            ids = [self._index[i] for i in map(int, text) if i in self._index]
            ids = [*ids, END][:max_length]
            row[: len(ids)] = ids
        return rows

    def texts(self, rows: np.ndarray) -> list[list[int]]:
        """Returns rows as lists of large-vocabulary ids, up to END or PAD."""
        texts = []
        for row in np.asarray(rows):
            stop = np.flatnonzero((row == END) | (row == PAD))
            kept = row[: stop[0]] if len(stop) else row
            texts.append([int(self.tokens[i - UNK - 1]) for i in kept if i > UNK])
        return texts
