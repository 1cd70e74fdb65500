"""What released text tells of other texts: an n-gram model of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tfpriv._errors import InputError
from tfpriv.attacks._ngram_model import NGramModel
from tfpriv.text.tokenizer import Tokenizer


class ReleasedTextModel:
    """Interpolated n-grams of released texts, which score any other text.

    Args:
        texts: the released texts.
        more: texts whose words are counted as possible too, such as candidates: a
            word that was not released is improbable, not impossible.

    Raises:
        InputError: no released text has a token.
    """

    def __init__(self, texts: Iterable[str], more: Iterable[str] = ()) -> None:
        self._tokenizer = Tokenizer()
        released, others = (
            self._tokenizer.tokenize_all(list(part)) for part in (texts, more)
        )
        if not any(released):
            raise InputError("Expected released texts with tokens, received none.")
        words = {token for line in (*released, *others) for token in line}
        # The end of a text, and a word that none of them has.
        self._model = NGramModel(released, size=len(words) + 2)

    def log_likelihoods(self, texts: Sequence[str]) -> np.ndarray:
        """Mean log probability of a text's tokens and its end, float64 (n,)."""
        return self._model.mean_log_probabilities(
            self._tokenizer.tokenize_all(list(texts))
        )
