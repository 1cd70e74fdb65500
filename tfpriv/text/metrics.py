"""How diverse generated text is: plain counting, no model.

Each function takes texts or token lists; a text is split by the library's tokenizer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer
from tfpriv.text.cleaning import canonical
from tfpriv.text.tokenizer import Tokenizer

Tokens = Sequence[str]


def distinct_n(texts: Iterable[str | Tokens], n: int = 2) -> float:
    """Returns the share of n-grams that are distinct (Li et al. 2016, section 5.1).

    It falls as the texts grow in number: compare sets of one size.

    Args:
        texts: texts or token lists.
        n: the length of an n-gram.

    Returns:
        Distinct n-grams over all n-grams, in (0, 1]; 0 if there are none.

    >>> distinct_n(["a b a b", "a b"], n=2)
    0.5
    """
    integer(n=n)
    counts: Counter[tuple[str, ...]] = Counter()
    for tokens in _token_lists(texts):
        counts.update(_ngrams(tokens, n))
    total = counts.total()
    return len(counts) / total if total else 0.0


def duplicate_rate(texts: Iterable[str | Tokens]) -> float:
    """Returns the share of texts that repeat an earlier one, case and marks aside.

    >>> duplicate_rate(["Great song!", "great song", "other"])
    0.3333333333333333
    """
    keys = [canonical(t if isinstance(t, str) else " ".join(t)) for t in texts]
    return (len(keys) - len(set(keys))) / len(keys) if keys else 0.0


def self_bleu(
    texts: Iterable[str | Tokens],
    n: int = 4,
    *,
    sample: int | None = 500,
    seed: int = 0,
) -> float:
    """Returns self-BLEU: how well each text is predicted by the others.

    Zhu et al. 2018 (Texygen, section 3): the mean over texts of BLEU-n of a text
    against all others as its references. BLEU-n is exp(min(0, 1 - r / c)) times the
    geometric mean of the n-gram precisions p_1 .. p_n (Papineni et al. 2002, section
    2), where a hypothesis n-gram counts as often as it does in that reference which
    has most of it, and r is the length of the reference nearest to the length c, the
    shorter of two. A precision without a match is .1 over the number of n-grams
    (method 1 of Chen and Cherry 2014); a text shorter than n has precisions up to
    its own length only.

    Args:
        texts: at least two texts or token lists; empty ones are left out.
        n: the longest n-gram.
        sample: hypotheses and references are this many texts drawn without
            replacement, or all. It grows with the number of references: compare sets
            of one size.
        seed: of the draw.

    Returns:
        A number in [0, 1]. Higher is less diverse.

    Raises:
        InputError: fewer than two texts have a token.

    >>> self_bleu(["the same text again", "the same text again"])
    1.0
    """
    integer(n=n)
    token_lists = [tokens for tokens in _token_lists(texts) if tokens]
    if sample is not None:
        integer(2, sample=sample)
        if len(token_lists) > sample:
            draw = np.random.default_rng(seed)
            chosen = draw.choice(len(token_lists), sample, replace=False)
            token_lists = [token_lists[i] for i in chosen]
    if len(token_lists) < 2:
        raise InputError(
            f"Expected at least two texts with tokens, received {len(token_lists)}."
        )
    lengths = np.array([len(tokens) for tokens in token_lists])
    logs = np.zeros(len(token_lists))
    orders = np.minimum(lengths, n)
    for order in range(1, n + 1):
        counted = [Counter(_ngrams(tokens, order)) for tokens in token_lists]
        ceilings = _ceilings(counted)
        for number, counts in enumerate(counted):
            if counts:
                logs[number] += np.log(_precision(counts, number, ceilings))
    bleu = np.exp(logs / orders + np.minimum(0, 1 - _nearest(lengths) / lengths))
    return float(bleu.mean())


def _token_lists(texts: Iterable[str | Tokens]) -> list[Tokens]:
    if isinstance(texts, str):
        raise InputError("Expected a sequence of texts, received one str.")
    tokenizer = Tokenizer()
    return [tokenizer.tokenize(t) if isinstance(t, str) else t for t in texts]


def _ngrams(tokens: Tokens, n: int) -> Iterable[tuple[str, ...]]:
    return zip(*(tokens[i:] for i in range(n)), strict=False)


_Ceilings = dict[tuple[str, ...], tuple[int, int, int]]


def _ceilings(counted: Sequence[Counter[tuple[str, ...]]]) -> _Ceilings:
    """Returns for each n-gram its highest count, whose it is, and the second highest.

    Leaving one text out of the references takes only these three.
    """
    ceilings: _Ceilings = {}
    for number, counts in enumerate(counted):
        for ngram, count in counts.items():
            first, owner, second = ceilings.get(ngram, (0, -1, 0))
            if count > first:
                ceilings[ngram] = (count, number, first)
            elif count > second:
                ceilings[ngram] = (first, owner, count)
    return ceilings


def _precision(
    counts: Counter[tuple[str, ...]], number: int, ceilings: _Ceilings
) -> float:
    matched = 0
    for ngram, count in counts.items():
        first, owner, second = ceilings[ngram]
        matched += min(count, second if owner == number else first)
    return max(matched, 0.1) / counts.total()


def _nearest(lengths: np.ndarray) -> np.ndarray:
    """Returns for each text the other length that is nearest, the shorter of two."""
    ordered = np.sort(lengths)
    where = np.searchsorted(ordered, lengths)
    # Of each length one copy is the text itself: it may only stand for another copy.
    twins = np.searchsorted(ordered, lengths, side="right") - where > 1
    last = len(ordered) - 1
    below = ordered[np.maximum(where - 1, 0)]
    above = ordered[np.minimum(np.searchsorted(ordered, lengths, side="right"), last)]
    no_below, no_above = where == 0, above <= lengths
    use_below = ~no_below & (no_above | (lengths - below <= above - lengths))
    return np.where(twins, lengths, np.where(use_below, below, above))
