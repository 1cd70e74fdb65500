"""What can be counted in one set of texts: sizes, diversity, how it reads."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer
from tfpriv.evaluation.text_quality import PublicPerplexity, shuffled
from tfpriv.text import Tokenizer
from tfpriv.text.metrics import distinct_n, duplicate_rate, self_bleu

_ORDERS = (1, 2, 3)
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclasses.dataclass(frozen=True)
class TextStatistics:
    """Counts of one set of texts; nothing in it is a text.

    Attributes:
        rows: number of texts.
        sample: texts that distinct-n and self-BLEU were counted on: both change with
            the number of texts, so that sets are compared at one size.
        distinct_n: n to the share of n-grams that are distinct.
        self_bleu: how much of a text is in the others, in [0, 1]; None for fewer than
            two texts with tokens.
        duplicate_rate: share of texts that repeat an earlier one, of all rows.
        perplexity: under a public model; None without one, or without a known token.
        shuffled_perplexity: the same with the words of each text in random order.
        coverage: share of tokens that the model knows, the only ones it judges.
        length_quantiles: quantile to tokens a text.
        lengths: how many texts have 0, 1, 2, ... tokens; the last counts all longer.
        word_shares: token to its share of all tokens. As private as the texts.
    """

    rows: int
    sample: int
    distinct_n: Mapping[int, float]
    self_bleu: float | None
    duplicate_rate: float
    perplexity: float | None
    shuffled_perplexity: float | None
    coverage: float | None
    length_quantiles: Mapping[float, float]
    lengths: tuple[int, ...]
    word_shares: Mapping[str, float] = dataclasses.field(repr=False)

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        *,
        sample: int | None = None,
        model: PublicPerplexity | None = None,
        longest: int = 60,
        seed: int = 0,
    ) -> TextStatistics:
        """Counts.

        Args:
            texts: at least one text.
            sample: texts for distinct-n and self-BLEU, drawn without replacement;
                None, or more than there are, takes all.
            model: of public texts, or None for no perplexity.
            longest: tokens; longer texts are counted together.
            seed: of the sample and the shuffling.

        Raises:
            InputError: no text.
        """
        integer(longest=longest)
        if not len(texts):
            raise InputError("Expected at least one text to count, received none.")
        tokens = Tokenizer().tokenize_all(texts)
        lengths = np.array([len(row) for row in tokens])
        sample = len(texts) if sample is None else min(sample, len(texts))
        chosen = np.random.default_rng(seed).permutation(len(texts))[:sample]
        some = [tokens[i] for i in chosen]
        counts = Counter(token for row in tokens for token in row)
        total = counts.total()
        judged = _judged(texts, model, seed)
        return cls(
            rows=len(texts),
            sample=sample,
            distinct_n={n: distinct_n(some, n) for n in _ORDERS},
            self_bleu=_self_bleu(some),
            duplicate_rate=duplicate_rate(texts),
            **judged,
            length_quantiles=dict(
                zip(_QUANTILES, np.quantile(lengths, _QUANTILES).tolist(), strict=True)
            ),
            lengths=tuple(
                np.bincount(lengths.clip(max=longest), minlength=longest + 1).tolist()
            ),
            word_shares={token: n / total for token, n in counts.most_common()},
        )

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON, without the words."""
        value = dataclasses.asdict(self)
        del value["word_shares"]
        for name in ("distinct_n", "length_quantiles"):
            value[name] = {str(key): part for key, part in value[name].items()}
        value["lengths"] = list(value["lengths"])
        return value


def word_distance(first: TextStatistics, second: TextStatistics) -> float:
    """Returns the total variation distance of two sets' words, in [0, 1].

    Half the sum over words of the difference of their shares: the probability that a
    word drawn from one set has to be changed to be drawn from the other.
    """
    words = {**first.word_shares, **second.word_shares}
    return 0.5 * sum(
        abs(first.word_shares.get(word, 0.0) - second.word_shares.get(word, 0.0))
        for word in words
    )


def _self_bleu(tokens: Sequence[Sequence[str]]) -> float | None:
    try:
        return self_bleu(tokens, sample=None)
    except InputError:
        return None


def _judged(
    texts: Sequence[str], model: PublicPerplexity | None, seed: int
) -> dict[str, float | None]:
    names = ("perplexity", "shuffled_perplexity", "coverage")
    if model is None:
        return dict.fromkeys(names)
    coverage = model.coverage(texts)
    if not coverage:
        return dict.fromkeys(names[:2]) | {"coverage": coverage}
    return {
        "perplexity": model.perplexity(texts),
        "shuffled_perplexity": model.perplexity(shuffled(texts, seed)),
        "coverage": coverage,
    }
