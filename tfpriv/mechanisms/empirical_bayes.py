"""Noisy counts to their most likely true values, with public frequencies as a guide.

Post-processing: nothing here reads a record. A prior over "how much more frequent
than in public text" is fitted to the noisy counts themselves (nonparametric maximum
likelihood on a grid by EM; Kiefer & Wolfowitz 1956, Efron 2010) and the posterior
means are returned. Where the noise drowns a count, its public frequency remains.
"""

from __future__ import annotations

import numpy as np

# Log-ratios to the public expectation that all classes share, and their deviations.
_SHARED = np.linspace(-5.0, 11.0, 32, dtype=np.float32)
_OWN = np.array(
    [-4, -3, -2.2, -1.5, -1, -0.6, -0.3, 0, 0.3, 0.6, 1, 1.5, 2.2, 3, 4], np.float32
)
_PAIRS = np.concatenate([[-6.0], np.linspace(-3.0, 8.0, 34)])
# Mass that every point of a grid keeps, so that EM can always come back to it.
_FLOOR = 0.02


def shrink_tokens(
    noisy: np.ndarray, noise: float, expected: np.ndarray, *, iterations: int = 25
) -> np.ndarray:
    """Returns posterior means of counts theta[k, w] seen as noisy[k, w].

    Model: theta[k, w] = expected[k, w] * exp(u[w] + d[k, w]) with u shared by all
    classes, d of each class its own, and Gaussian noise. That most tokens lie about
    equally in all classes is then learnt from the counts, and a class takes sides
    only where they say so.

    Args:
        noisy: (K, V) noisy counts.
        noise: standard deviation of the noise on each.
        expected: (K, V) positive; what public text makes one expect.
        iterations: EM steps.

    Returns:
        float64 (K, V), all positive.
    """
    classes = range(len(noisy))
    shared = np.exp(-0.5 * ((_SHARED + 1) / 3) ** 2)
    own = np.exp(-np.abs(_OWN))
    shared, own = shared / shared.sum(), own / own.sum()
    ratios = np.exp(_SHARED[:, None] + _OWN[None, :])
    likelihoods = [
        _likelihood(noisy[k], expected[k, :, None, None] * ratios, noise)
        for k in classes
    ]
    for iteration in range(iterations):
        marginals = [likelihood @ own + 1e-30 for likelihood in likelihoods]
        posterior = sum(np.log(m) for m in marginals) + np.log(shared)
        posterior = np.exp(posterior - posterior.max(1, keepdims=True))
        posterior /= posterior.sum(1, keepdims=True)
        if iteration == iterations - 1:
            break
        moved = sum(
            np.einsum("wu,wud->d", posterior / m, likelihood)
            for m, likelihood in zip(marginals, likelihoods, strict=True)
        )
        shared = _with_floor(posterior.mean(0))
        own = _with_floor(own * moved)
    weighted = ratios * own
    return np.stack(
        [
            expected[k]
            * np.einsum("wu,wud,ud->w", posterior / marginals[k], likelihoods[k],
                        weighted, optimize=True)
            for k in classes
        ]
    ).astype(np.float64)  # fmt: skip


def shrink_pairs(
    noisy: np.ndarray, noise: float, expected: np.ndarray, *, iterations: int = 20
) -> np.ndarray:
    """Returns posterior means of one class's counts of pairs.

    Args:
        noisy: noisy counts, any shape.
        noise: standard deviation of the noise on each.
        expected: same shape, positive.
        iterations: EM steps.

    Returns:
        float64 of the same shape.
    """
    values = expected.reshape(-1, 1) * np.exp(_PAIRS)
    likelihood = _likelihood(noisy.reshape(-1), values, noise)
    prior = np.exp(-0.5 * (_PAIRS / 2.5) ** 2)
    prior /= prior.sum()
    for _ in range(iterations):
        posterior = likelihood * prior
        posterior /= posterior.sum(1, keepdims=True) + 1e-30
        prior = _with_floor(posterior.mean(0))
    return (posterior * values).sum(1).reshape(noisy.shape)


def _likelihood(noisy: np.ndarray, values: np.ndarray, noise: float) -> np.ndarray:
    noisy = noisy.reshape(-1, *[1] * (values.ndim - 1))
    exponent = -0.5 * ((noisy - values) / noise) ** 2
    # Relative to the best point of the grid: float32 does not reach far tails.
    axes = tuple(range(1, values.ndim))
    exponent -= exponent.max(axes, keepdims=True)
    return np.exp(np.maximum(exponent, -60.0)).astype(np.float32)


def _with_floor(weights: np.ndarray) -> np.ndarray:
    return (1 - _FLOOR) * weights / weights.sum() + _FLOOR / len(weights)
