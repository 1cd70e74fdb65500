"""What is measured of a generator against the oracle."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tfpriv.seqgan import Generator


def ngrams(row: np.ndarray, n: int) -> Counter:
    """The n-grams of one sequence and how often each occurs."""
    return Counter(tuple(row[i : i + n]) for i in range(len(row) - n + 1))


def distinct(ids: np.ndarray, n: int) -> float:
    """Distinct n-grams as a share of all (Li et al. 2016, arXiv:1510.03055)."""
    total = Counter()
    for row in ids.tolist():
        total.update(ngrams(row, n))
    return len(total) / sum(total.values())


def self_bleu(ids: np.ndarray, n: int = 2) -> float:
    """BLEU of the first fifth of the sequences against the others, to order n.

    Uniform weights, no smoothing, equal lengths, so no brevity penalty (Zhu et al.
    2018, arXiv:1802.01886).
    """
    rows = ids.tolist()
    cut = max(1, len(rows) // 5)
    precisions = []
    for order in range(1, n + 1):
        most: Counter = Counter()
        for row in rows[cut:]:
            most |= ngrams(row, order)
        matched = total = 0
        for row in rows[:cut]:
            own = ngrams(row, order)
            matched += sum((own & most).values())
            total += sum(own.values())
        precisions.append(matched / total)
    if min(precisions) == 0:
        return 0.0
    return float(np.exp(np.mean(np.log(precisions))))


def measure(
    generator: Generator,
    oracle: Generator,
    test: np.ndarray,
    *,
    samples: int,
    seed: int,
    temperature: float = 1.0,
) -> dict[str, float]:
    """NLL_oracle and diversity of fresh samples, and NLL_test, at one temperature.

    Returns:
        "nll_oracle": mean nats a token of the samples under the oracle.
        "nll_test": mean nats a token of `test` under the generator.
        "self_bleu_2", "distinct_2": of the samples.
    """
    drawn = generator.sample(samples, temperature=temperature, seed=seed)
    return {
        "nll_oracle": oracle.nll(drawn),
        "nll_test": generator.nll(test, temperature),
        "self_bleu_2": self_bleu(drawn[:2_000]),
        "distinct_2": distinct(drawn[:2_000], 2),
    }
