"""The likelihood-ratio attack: how would the model answer had it seen the record?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import integer
from tfpriv.attacks.shadow_discriminators import TrainShadow

FEWEST_SHADOWS = 16
# A deviation below this would be that of a model that does not react to its input.
_SMALLEST_DEVIATION = 1e-6


class LiRA:
    """Trains shadows on random halves of a population and compares likelihoods.

    Every record is in exactly half of the shadows' training sets (shadows come in
    pairs whose halves are each other's complement). A record's confidence is the log
    odds phi = log(p / (1 - p)) of being real, which is nearly Gaussian over models.
    With means mu_in, mu_out of the shadows that had it and that had not, and one
    deviation each for all records (which the paper advises for few shadows), the
    score of an attacked model's phi is

        online:   log N(phi; mu_in, s_in^2) - log N(phi; mu_out, s_out^2)
        offline:  (phi - mu_out) / s_out

    The offline one needs only shadows that never saw the record, as an attacker has
    who cannot train on it.

    Args:
        train: TrainShadow.
        shadows: int, even, at least 16.
        seed: int. Of the halves and of each shadow.

    Raises:
        InputError: fewer than 16 shadows, or an odd number.

    References:
        Carlini et al. 2022, "Membership Inference Attacks From First Principles",
        arXiv:2112.03570, algorithm 1, section V.B (logit scaling) and VI (variance).
    """

    def __init__(
        self, train: TrainShadow, *, shadows: int = FEWEST_SHADOWS, seed: int = 0
    ) -> None:
        integer(FEWEST_SHADOWS, shadows=shadows)
        integer(0, seed=seed)
        if shadows % 2:
            raise InputError(
                f"Expected an even number of shadows, received shadows={shadows}: "
                "they come in pairs that halve the population."
            )
        self.train = train
        self.shadows = shadows
        self.seed = seed
        self.confidences: np.ndarray | None = None
        self.included: np.ndarray | None = None

    def fit(self, population_ids: np.ndarray) -> LiRA:
        """Trains all shadows.

        Args:
            population_ids: int (n, T): the records whose membership is asked,
                members and others, in any order.

        Returns:
            This attack.
        """
        population_ids = np.asarray(population_ids, np.int32)
        n = len(population_ids)
        if n < 4:
            raise InputError(f"Expected at least 4 records to halve, received {n}.")
        draw = np.random.default_rng([self.seed, n])
        self.included = np.zeros((self.shadows, n), bool)
        self.confidences = np.zeros((self.shadows, n))
        for pair in range(self.shadows // 2):
            order = draw.permutation(n)
            for side, rows in enumerate((order[: n // 2], order[n // 2 :])):
                number = 2 * pair + side
                self.included[number, rows] = True
                self.confidences[number] = self.train(
                    population_ids[np.sort(rows)],
                    population_ids,
                    seed=self.seed * 10_000 + number,
                )
        return self

    def scores(
        self, confidences: Sequence[float], *, offline: bool = False
    ) -> np.ndarray:
        """Membership scores under an attacked model.

        Args:
            confidences: float (n,), the attacked model's log odds of each record of
                the population, in its order.
            offline: whether the shadows that saw a record are left out.

        Returns:
            float64 (n,): the higher, the more likely a member.
        """
        if self.confidences is None:
            raise InputError("Expected a fitted attack, received none. Call fit first.")
        phi = np.asarray(confidences, np.float64)
        if phi.shape != self.confidences.shape[1:]:
            raise InputError(
                f"Expected one confidence a record of the population, "
                f"{self.confidences.shape[1]}, received an array of shape {phi.shape}."
            )
        mean_out, deviation_out = _gaussian(self.confidences, ~self.included)
        if offline:
            return (phi - mean_out) / deviation_out
        mean_in, deviation_in = _gaussian(self.confidences, self.included)
        return _log_density(phi, mean_in, deviation_in) - _log_density(
            phi, mean_out, deviation_out
        )


def _gaussian(values: np.ndarray, kept: np.ndarray) -> tuple[np.ndarray, float]:
    """Mean of each record over the models that are kept, one deviation for all."""
    counts = kept.sum(axis=0)
    means = (values * kept).sum(axis=0) / counts
    residuals = (values - means) * kept
    variance = (residuals**2).sum() / (counts - 1).sum()
    return means, max(float(np.sqrt(variance)), _SMALLEST_DEVIATION)


def _log_density(x: np.ndarray, mean: np.ndarray, deviation: float) -> np.ndarray:
    return -0.5 * ((x - mean) / deviation) ** 2 - np.log(deviation)
