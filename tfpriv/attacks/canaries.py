"""Canaries: made-up records whose trace in a model or a release can be measured."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer
from tfpriv.datasets import TextDataset
from tfpriv.datasets.text_dataset import concatenate
from tfpriv.text import Vocabulary
from tfpriv.text.tokenizer import KINDS, MARKS, SMILEYS, Tokenizer

# Texts to log likelihoods, float (n,): the higher, the better the model knows them.
Score = Callable[[Sequence[str]], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Canary:
    """A prefix as records have it, and words that nobody would put behind it.

    Attributes:
        prefix: str, from a text of the population.
        suffix: words, drawn evenly and independently from public ones.
        alternatives: suffixes that might have been drawn instead.
        label: class of the record, or None.
    """

    prefix: str
    suffix: tuple[str, ...]
    alternatives: tuple[tuple[str, ...], ...]
    label: str | None = None

    @property
    def text(self) -> str:
        """The record that is put in."""
        return f"{self.prefix} {' '.join(self.suffix)}"

    @property
    def candidates(self) -> list[str]:
        """This text, then the same prefix with every alternative suffix."""
        return [
            f"{self.prefix} {' '.join(suffix)}"
            for suffix in (self.suffix, *self.alternatives)
        ]


@dataclasses.dataclass(frozen=True)
class CanaryExposure:
    """How far a model puts one canary before what it might have been.

    Attributes:
        rank: 1 where the canary scores highest of all candidates; ties count half.
        candidates: how many there were, the canary among them.
        equal: how many others score the same as the canary.
        exposure: log2(candidates) - log2(rank). A canary that left no trace has more
            than b bits with probability 2^-b.
        ceiling: log2(candidates), what a canary learnt by heart has.
    """

    rank: float
    candidates: int
    equal: int = 0

    @property
    def exposure(self) -> float:
        """In bits."""
        return math.log2(self.candidates) - math.log2(self.rank)

    @property
    def ceiling(self) -> float:
        """In bits."""
        return math.log2(self.candidates)

    def to_json(self) -> dict[str, Any]:
        """Returns rank, candidates, equal, exposure and ceiling."""
        return {
            **dataclasses.asdict(self),
            "exposure": self.exposure,
            "ceiling": self.ceiling,
        }


def make_canaries(
    texts: Sequence[str],
    count: int,
    *,
    label: str | None = None,
    prefix_tokens: int = 4,
    suffix_words: int = 3,
    alternatives: int = 1023,
    words: Sequence[str] | None = None,
    seed: int = 0,
) -> list[Canary]:
    """Makes canaries for a data set.

    Args:
        texts: texts of the population that prefixes are taken from, not of records
            that are to stay private: a canary repeats its prefix.
        count: int. How many canaries.
        label: str or None. Their class.
        prefix_tokens: int. Tokens of a text that are kept.
        suffix_words: int. Words behind them.
        alternatives: int. Other suffixes that a canary is ranked among; 2^b - 1 of
            them measure up to b bits.
        words: public words that suffixes are drawn from; None takes frequent English
            words, which the models of this package know.
        seed: int. Whoever knows it knows the canaries.

    Raises:
        InputError: no text is long enough for a prefix, fewer than two words, or a
            number out of range.
    """
    integer(count=count, prefix_tokens=prefix_tokens, suffix_words=suffix_words)
    integer(alternatives=alternatives)
    integer(0, seed=seed)
    words = public_words() if words is None else tuple(dict.fromkeys(words))
    if len(words) < 2:
        raise InputError(f"Expected at least two words, received {len(words)}.")
    tokenizer = Tokenizer()
    tokens = tokenizer.tokenize_all(list(texts))
    long = [line for line in tokens if len(line) > prefix_tokens]
    if not long:
        raise InputError(
            f"Expected a text of more than {prefix_tokens} tokens for a prefix, "
            f"received {len(tokens)} shorter ones. Take a smaller prefix_tokens."
        )
    draw = np.random.default_rng([seed, 11])
    canaries = []
    for number in range(count):
        line = long[int(draw.integers(len(long)))][:prefix_tokens]
        prefix = tokenizer.detokenize(line, seed=seed * 1_000_003 + number)
        drawn = draw.integers(len(words), size=(alternatives + 1, suffix_words))
        first, *others = (tuple(words[i] for i in row) for row in drawn)
        canaries.append(Canary(prefix, first, tuple(others), label))
    return canaries


def public_words(size: int = 2000) -> tuple[str, ...]:
    """Frequent English words, without kinds, marks and smileys."""
    fixed = {*KINDS, *SMILEYS, *MARKS}
    vocabulary = Vocabulary.public(size)
    return tuple(t for t in vocabulary.tokens[4:] if t not in fixed and t.isalpha())


def insert_canaries(
    dataset: TextDataset, canaries: Sequence[Canary], *, repeats: int = 1
) -> TextDataset:
    """A data set with canaries behind its records, for an audit: never for a release.

    A canary that is put in `repeats` times is a group of that size: an exposure then
    speaks of group privacy, at `repeats` times the epsilon.

    Args:
        dataset: TextDataset.
        canaries: those that are to be put in.
        repeats: int. How often each.

    Returns:
        A new data set; each canary is a group of its own where there are groups.

    Raises:
        InputError: the data set has labels and a canary has none.
    """
    integer(repeats=repeats)
    rows = [canary for canary in canaries for _ in range(repeats)]
    if not rows:
        return dataset
    labels = None
    if dataset.labels is not None:
        if any(canary.label is None for canary in rows):
            raise InputError(
                "Expected canaries with a label for a data set with labels, received "
                "one without. Give make_canaries a label."
            )
        labels = tuple(canary.label for canary in rows)
    groups = None
    if dataset.groups is not None:
        groups = tuple(f"canary {i // repeats}" for i in range(len(rows)))
    more = dataclasses.replace(
        dataset.select(()),
        texts=tuple(canary.text for canary in rows),
        labels=labels,
        groups=groups,
        private=None,
    )
    return concatenate([dataset, more])


def measure_exposure(canary: Canary, score: Score) -> CanaryExposure:
    """Ranks a canary among its candidates under a model.

    Args:
        canary: Canary.
        score: texts to log likelihoods: a generator's
            (`ClassDiscriminator.log_likelihoods`) or a released text's
            (`ReleasedTextModel.log_likelihoods`).

    References:
        Carlini et al. 2019, "The Secret Sharer", arXiv:1802.08232, definitions 3 and
        5: exposure among sampled candidates.
    """
    scores = np.asarray(score(canary.candidates), np.float64)
    own, others = scores[0], scores[1:]
    if np.isnan(scores).any():
        raise InputError("Expected a number for every candidate, received NaN.")
    equal = int((others == own).sum())
    rank = 1 + float((others > own).sum()) + equal / 2
    return CanaryExposure(rank=rank, candidates=len(scores), equal=equal)


def exposure_p_value(exposures: Sequence[CanaryExposure]) -> float:
    """How likely such exposures are if no canary left a trace.

    Without a trace a canary and its alternatives are alike, so that the share of
    candidates which score as high or higher is uniform or larger, and the product of
    them over canaries follows from it (Fisher's method): -2 sum log(share) is
    chi-squared with 2 n degrees. All that are equal count as higher: half of them, as
    in the rank, would make one in ten look like one in twenty.
    """
    from scipy.stats import chi2

    if not exposures:
        raise InputError("Expected at least one exposure, received none.")
    shares = [math.ceil(e.rank + e.equal / 2) / e.candidates for e in exposures]
    return float(chi2.sf(-2 * sum(map(math.log, shares)), 2 * len(shares)))
