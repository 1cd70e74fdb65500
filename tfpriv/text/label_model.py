"""Which class a text looks like, by given token frequencies and lengths alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Tokens of a text are not independent; half their log-odds is nearer the truth.
TEMPERATURE = 0.5
_SMOOTHING = 0.05


class LabelModel:
    """Naive Bayes over distinct tokens, tempered, with the class's length.

    Made of released counts it is post-processing, and may filter and re-label
    generated text at no cost.

    Args:
        tokens: (K, V) non-negative counts of each token in each class.
        lengths: (K, B) non-negative counts of records by length bucket.

    References:
        Metsis, Androutsopoulos & Paliouras 2006, multinomial naive Bayes with Boolean
        attributes.
    """

    def __init__(self, tokens: np.ndarray, lengths: np.ndarray) -> None:
        smooth = tokens + _SMOOTHING
        self.log_tokens = np.log(smooth / smooth.sum(1, keepdims=True))
        kernel = np.array([0.2, 0.6, 0.2])
        spread = np.stack([np.convolve(row, kernel, "same") for row in lengths]) + 1
        share = np.maximum(lengths.sum(1), 1.0)
        share = share / share.sum()
        self.log_lengths = np.log(
            share[:, None] * spread / spread.sum(1, keepdims=True)
        )

    def scores(
        self, rows: Sequence[Sequence[int]], buckets: Sequence[int]
    ) -> np.ndarray:
        """Returns log-scores, float64 (n, K), up to a constant a row.

        Args:
            rows: n token-id lists.
            buckets: the length bucket of each.
        """
        scores = np.empty((len(rows), len(self.log_tokens)))
        for i, (row, bucket) in enumerate(zip(rows, buckets, strict=True)):
            ids = np.unique(np.asarray(row, np.int64))
            evidence = self.log_tokens[:, ids].sum(1)
            scores[i] = TEMPERATURE * evidence + self.log_lengths[:, bucket]
        return scores

    def predict(
        self, rows: Sequence[Sequence[int]], buckets: Sequence[int]
    ) -> np.ndarray:
        """Returns the likeliest class of each row, int64 (n,)."""
        return self.scores(rows, buckets).argmax(1)
