"""What is measured of a generator against the oracle."""

from __future__ import annotations

import numpy as np

from tfpriv.seqgan import Generator
from tfpriv.text.metrics import distinct_n, self_bleu


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
    words = [[str(token) for token in row] for row in drawn[:2_000].tolist()]
    return {
        "nll_oracle": oracle.nll(drawn),
        "nll_test": generator.nll(test, temperature),
        "self_bleu_2": self_bleu(words, 2, sample=None),
        "distinct_2": distinct_n(words, 2),
    }
