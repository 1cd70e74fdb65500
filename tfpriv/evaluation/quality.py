"""How good a synthetic text is, in one result; with real rows or without any."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer
from tfpriv.attacks.near_copies import nearest_texts, runs_at_tokens
from tfpriv.datasets import TextDataset
from tfpriv.evaluation.divergence import Divergence, mauve
from tfpriv.evaluation.text_quality import PublicPerplexity
from tfpriv.evaluation.text_statistics import TextStatistics, word_distance
from tfpriv.text import Tokenizer

Embed = Callable[[Sequence[str]], np.ndarray]

NEAR = 0.8
"""Jaccard similarity from which a text is called a near copy."""

_ORDERS = (2, 4, 6, 8)
_EMBEDDED = 1000


@dataclasses.dataclass(frozen=True)
class Overlap:
    """What one set of texts has word for word from the private rows.

    Attributes:
        rows: texts that were looked at.
        longest: tokens of the longest run of any text.
        mean: of the longest run of each text.
        shares: n to the share of n-grams that some private row has.
        whole: texts of at least two tokens that lie whole in a private row.
        nearest: the largest Jaccard similarity of a text and a private row, over
            their tokens and pairs of neighbouring tokens (`nearest_texts`).
        nearest_mean: of each text with its nearest row.
        near: texts with a private row at least `NEAR` alike.
    """

    rows: int
    longest: int
    mean: float
    shares: Mapping[int, float]
    whole: int
    nearest: float
    nearest_mean: float
    near: int

    @classmethod
    def of(cls, texts: Sequence[str], private: Sequence[str]) -> Overlap:
        """Looks for every text, and every run of its tokens, in every private row.

        Exact, in memory for the texts and a piece of the private rows.
        """
        tokenize = Tokenizer().tokenize
        tokens = [tokenize(text) for text in texts]
        similarity = nearest_texts(tokens, map(tokenize, private)).similarity
        runs = runs_at_tokens(tokens, map(tokenize, private))
        longest = np.array([own.max(initial=0) for own in runs], np.int64)
        sizes = np.array([len(own) for own in runs], np.int64)
        return cls(
            rows=len(texts),
            longest=int(longest.max(initial=0)),
            mean=float(longest.mean()) if len(longest) else 0.0,
            shares={n: share_of_ngrams(runs, n) for n in _ORDERS},
            whole=int(((longest == sizes) & (sizes >= 2)).sum()),
            nearest=float(similarity.max(initial=0.0)),
            nearest_mean=float(similarity.mean()) if len(similarity) else 0.0,
            near=int((similarity >= NEAR).sum()),
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON."""
        shares = {str(n): share for n, share in self.shares.items()}
        return {**dataclasses.asdict(self), "shares": shares}


def share_of_ngrams(runs: Sequence[np.ndarray], n: int) -> float:
    """Returns the share of some texts' n-grams that other texts have; 0 of none.

    Args:
        runs: of each text, from `runs_at_tokens`.
        n: tokens.
    """
    whole = [own[: len(own) - n + 1] for own in runs if len(own) >= n]
    return float((np.concatenate(whole) >= n).mean()) if whole else 0.0


@dataclasses.dataclass(frozen=True)
class TextQuality:
    """All that is measured of a synthetic text without a downstream task.

    Without real rows nothing in it has seen a private record, so that it may leave
    with the text. With them it is internal, and without an epsilon.

    Attributes:
        synthetic: counts of the synthetic rows.
        real: the same of the real rows, or None.
        word_distance: total variation distance of their words, in [0, 1].
        overlap: what synthetic rows share with the real ones word for word.
        held_out_overlap: what held-out rows share with them: how much of it is how
            such people speak.
        divergence: MAUVE of synthetic against real rows.
        real_divergence: the same of real rows against other real rows.
        without_divergence: why there is none, in words.
    """

    synthetic: TextStatistics
    real: TextStatistics | None = None
    word_distance: float | None = None
    overlap: Overlap | None = None
    held_out_overlap: Overlap | None = None
    divergence: Divergence | None = None
    real_divergence: Divergence | None = None
    without_divergence: str = ""

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON; None where nothing was measured."""
        value: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            part = getattr(self, field.name)
            value[field.name] = part.to_json() if hasattr(part, "to_json") else part
        return value


def measure_quality(
    synthetic: Sequence[str],
    real: TextDataset | None = None,
    held_out: Sequence[str] | None = None,
    *,
    model: PublicPerplexity | None = None,
    embed: Embed | None = None,
    sample: int = 500,
    seed: int = 0,
) -> TextQuality:
    """Measures a synthetic text, alone or beside the rows it was made of.

    Args:
        synthetic: at least one text.
        real: the private rows; None keeps to what is public.
        held_out: real texts of the same kind that had no part in it, or None: what
            they have in common with the real rows is no copy.
        model: of public texts, for perplexity; None measures none.
        embed: texts to vectors, `minilm_embeddings` for one; None leaves the
            divergence out. Its failure to be installed is said, not raised.
        sample: rows of either side for what grows with their number.
        seed: of samples, k-means and resampling.

    Raises:
        InputError: no synthetic or no real text.
    """
    integer(2, sample=sample)
    if real is not None:
        sample = min(sample, len(real), max(len(synthetic), 1))
    settings = {"sample": sample, "model": model, "seed": seed}
    statistics = TextStatistics.of(synthetic, **settings)
    if real is None:
        return TextQuality(statistics)
    real_statistics = TextStatistics.of(real.texts, **settings)
    beside = None
    if held_out is not None and len(held_out):
        beside = Overlap.of(held_out, real.texts)
    return TextQuality(
        synthetic=statistics,
        real=real_statistics,
        word_distance=word_distance(statistics, real_statistics),
        overlap=Overlap.of(synthetic, real.texts),
        held_out_overlap=beside,
        **_divergences(synthetic, real, embed, seed),
    )


def _divergences(
    synthetic: Sequence[str], real: TextDataset, embed: Embed | None, seed: int
) -> dict[str, Any]:
    """MAUVE against one half of the real rows: of the text, and of the other half."""
    if embed is None:
        return {"without_divergence": "it was not asked for"}
    draw = np.random.default_rng(seed)
    texts = list(real.deduplicate().texts)
    rows = min(len(texts) // 2, len(synthetic), _EMBEDDED)
    chosen = [texts[i] for i in draw.permutation(len(texts))[: 2 * rows]]
    some = [synthetic[i] for i in draw.permutation(len(synthetic))[:rows]]
    try:
        vectors = embed([*some, *chosen])
        parts = vectors[:rows], vectors[rows : 2 * rows], vectors[2 * rows :]
        return {
            "divergence": mauve(parts[0], parts[1], seed=seed),
            "real_divergence": mauve(parts[2], parts[1], seed=seed),
        }
    except InputError as error:
        return {"without_divergence": str(error)}
