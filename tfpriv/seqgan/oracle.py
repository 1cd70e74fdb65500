"""The oracle of SeqGAN's synthetic-data experiment: an LSTM with random weights.

Its samples are the data, its likelihood the judge: NLL_oracle of a generator is
`oracle.nll(generator.sample(n))`, NLL_test is `generator.nll(oracle.sample(n))`,
and no generator's NLL_oracle at full diversity can be below the oracle's own
entropy. Sharpening alone lowers NLL_oracle, so it is never read without NLL_test.
"""

from __future__ import annotations

from tfpriv.seqgan.generator import Generator


def make_oracle(
    vocabulary_size: int = 5000,
    max_length: int = 20,
    embedding_dim: int = 32,
    units: int = 32,
    *,
    start_id: int = 0,
    initializer_stddev: float = 1.0,
    seed: int | None = 0,
) -> Generator:
    """An LSTM whose weights, biases included, are standard normal.

    Args:
        vocabulary_size: int V; every id is a word.
        max_length: int T, the length of every sequence.
        embedding_dim: int.
        units: int.
        start_id: int. Input of the first step.
        initializer_stddev: float. Of the weights.
        seed: int or None. Another seed is another oracle, with another entropy:
            compare shares of a gap across oracles, never NLLs.

    References:
        Yu et al. 2017, arXiv:1609.05473, section 4.1.
    """
    return Generator(
        vocabulary_size,
        max_length,
        embedding_dim,
        units,
        start_id=start_id,
        end_id=None,
        initializer_stddev=initializer_stddev,
        seed=seed,
        name="oracle",
    )


def entropy(
    generator: Generator, samples: int = 10_000, seed: int | None = None
) -> float:
    """Entropy of a token given those before it, in nats, from fresh samples.

    Args:
        generator: the oracle, or any generator.
        samples: int. Sequences to draw.
        seed: int, or None for entropy of the operating system.

    Returns:
        float.
    """
    return generator.nll(generator.sample(samples, seed=seed))


def share_of_gap_closed(nll: float, *, mle: float, oracle_entropy: float) -> float:
    """How much of the way from MLE to the oracle's entropy NLL_oracle has gone.

    Args:
        nll: NLL_oracle of the generator that is judged, at temperature 1.
        mle: NLL_oracle of the generator that only maximum likelihood trained.
        oracle_entropy: the oracle's own.

    Returns:
        float: 0 at MLE, 1 at the oracle, negative when worse than MLE.
    """
    return (mle - nll) / (mle - oracle_entropy)
