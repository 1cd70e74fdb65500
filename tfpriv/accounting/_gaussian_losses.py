"""Privacy loss distributions of Gaussian noise, all losses of a grid at once.

`dp_accounting` inverts the loss one grid point at a time in Python, which takes three
quarters of the time of a price. Everything else here is its own, public code.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np


def gaussian_losses(
    noise_multiplier: float,
    sampling_rate: float,
    interval: float,
    *,
    added: bool = False,
) -> Any:
    """Returns the distribution of one release on a Poisson sample of the records.

    Rounded up by connecting the dots (Doroshenko et al. 2022, arXiv:2207.04380,
    algorithm 1).

    Args:
        noise_multiplier: standard deviation over L2 sensitivity.
        sampling_rate: probability of a record to be in the sample; 1 for all.
        interval: between two losses of the grid; exp(interval) must be finite.
        added: whether a record comes to the data, or is taken out of them. Without
            sampling both are the same.

    Returns:
        A `PrivacyLossDistribution` of that one direction.
    """
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution
    from dp_accounting.pld.privacy_loss_mechanism import AdjacencyType

    loss = _loss_class()(
        noise_multiplier,
        sampling_prob=sampling_rate,
        adjacency_type=AdjacencyType.ADD if added else AdjacencyType.REMOVE,
    )
    bounds = loss.connect_dots_bounds()
    lower = math.floor(bounds.epsilon_lower / interval)
    upper = math.ceil(bounds.epsilon_upper / interval)
    losses = np.arange(lower, upper + 1) * interval
    return privacy_loss_distribution.PrivacyLossDistribution(
        pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(
            interval, lower, upper, loss.get_delta_for_epsilon(losses)
        )
    )


@functools.cache
def _loss_class() -> type:
    from dp_accounting.pld.privacy_loss_mechanism import (
        AdjacencyType,
        GaussianPrivacyLoss,
    )

    class GaussianLosses(GaussianPrivacyLoss):
        """The same, with the loss inverted for an array."""

        def get_delta_for_epsilon(self, epsilon: np.ndarray) -> np.ndarray:
            """Returns the hockey-stick divergence at every loss of an array.

            With the record sampled at rate q, a loss e is ln(1 + (e^p - 1) q) for a
            loss p without sampling if the record is taken out, and minus that of -p
            if it is put in. Losses beyond ln(1 - q) on one side do not occur.
            """
            rate = self.sampling_prob
            added = self.adjacency_type == AdjacencyType.ADD
            edge = -math.inf if rate == 1 else math.log1p(-rate)
            met = epsilon < -edge if added else epsilon > edge
            below = np.minimum(epsilon, 0.0)
            deltas = np.zeros_like(epsilon) if added else -np.expm1(below)
            loss = epsilon[met]
            if rate < 1:
                sign = -1.0 if added else 1.0
                # ln(1 + (e^x - 1) / q), by a formula that does not overflow.
                x = sign * loss
                small, large = np.minimum(x, 1.0), np.maximum(x, 1.0)
                loss = sign * np.where(
                    x < 1,
                    np.log1p(np.expm1(small) / rate),
                    large - math.log(rate) + np.log1p((rate - 1) * np.exp(-large)),
                )
            point = self.inverse_privacy_loss_without_subsampling(loss)
            lower = np.exp(epsilon[met] + self.mu_lower_log_cdf(point))
            deltas[met] = self.mu_upper_cdf(point) - lower
            return np.clip(deltas, 0, 1)

    return GaussianLosses
