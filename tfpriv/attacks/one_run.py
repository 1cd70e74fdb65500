"""One training run, many coins: a bound on epsilon from how well they are guessed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import fraction, integer, probability

_LARGEST_EPSILON = 100.0
_PRECISION = 1e-6


@dataclasses.dataclass(frozen=True)
class OneRunAudit:
    """What one run of a mechanism says against a claimed epsilon.

    Attributes:
        records: how many records were put in or left out by a fair coin each.
        guesses: of how many the auditor guessed the coin.
        correct: how many guesses were right.
        epsilon_lower: epsilon is at least this at `delta`, with probability
            `confidence`; 0 says nothing was found, not that nothing is there.
        ceiling: what the bound would be were every guess right.
        records_ceiling: what it would be were every coin guessed, and rightly: no
            audit of so many records can speak against a claim above it.
        delta: of the bound.
        confidence: its probability.
        audits_tried: for how many audits it pays.
    """

    records: int
    guesses: int
    correct: int
    epsilon_lower: float
    ceiling: float
    records_ceiling: float
    delta: float
    confidence: float
    audits_tried: int

    def refutes(self, epsilon: float) -> bool:
        """Whether a claim of (`epsilon`, `delta`)-privacy cannot be true."""
        return self.epsilon_lower > epsilon

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        found = (
            f"epsilon is at least {self.epsilon_lower:.2f}"
            if self.epsilon_lower > 0
            else "no evidence against any epsilon"
        )
        return (
            f"{self.correct} of {self.guesses} guesses right over {self.records} "
            f"records: {found} at delta {self.delta:g} ({self.confidence:.0%}). "
            f"{self.guesses} guesses cannot refute a claim above "
            f"{self.ceiling:.2f}, {self.records} records none above "
            f"{self.records_ceiling:.2f}."
        )


def audit_one_run(
    included: Sequence[bool],
    scores: Sequence[float],
    *,
    guesses: int | None = None,
    delta: float = 1e-5,
    confidence: float = 0.95,
    audits_tried: int = 1,
) -> OneRunAudit:
    """Audits a run from its records' coins and an attack's scores.

    The k / 2 records with the highest scores are guessed to be in, the k / 2 with the
    lowest to be out, the others are left alone. k must be chosen before the scores
    are seen; each further k that is tried counts in `audits_tried`.

    The claim rests on the coins: each record must have been put in with probability
    1/2, independently of the others and of everything else. A split of another size
    is no such thing.

    Args:
        included: m coins.
        scores: float (m,); the higher, the more the attack takes the record for in.
        guesses: k, even, at most m; None for all records (one less if m is odd).
        delta: of the bound, in [0, 1).
        confidence: of the bound.
        audits_tried: how many audits this one was chosen from, or stands beside.

    Returns:
        The audit. Internal: it is computed from private records.

    Raises:
        InputError: lengths that differ, a score that is NaN, or a number out of range.

    Example:
        >>> import numpy as np
        >>> coins = np.random.default_rng(0).integers(0, 2, 1000) == 1
        >>> audit = audit_one_run(coins, coins.astype(float), guesses=800)
        >>> audit.correct, round(audit.records_ceiling, 1)
        (800, 5.8)
    """
    coins = np.asarray(included)
    scores = np.asarray(scores, np.float64)
    if coins.dtype != bool:
        raise InputError(
            f"Expected True or False a record in included, received {coins.dtype}."
        )
    if coins.ndim != 1 or coins.shape != scores.shape:
        raise InputError(
            f"Expected one score a coin, received arrays of shape {coins.shape} and "
            f"{scores.shape}."
        )
    if np.isnan(scores).any():
        raise InputError(
            "Expected numbers in scores, received NaN at position "
            f"{int(np.isnan(scores).argmax())}."
        )
    m = len(coins)
    if guesses is None:
        guesses = m - m % 2
    integer(2, guesses=guesses)
    if guesses % 2 or guesses > m:
        raise InputError(
            f"Expected an even number of guesses, at most {m}, received "
            f"guesses={guesses}."
        )
    order = np.argsort(scores, kind="stable")
    lowest, highest = order[: guesses // 2], order[m - guesses // 2 :]
    correct = int(coins[highest].sum() + (~coins[lowest]).sum())
    kept = {"delta": delta, "confidence": confidence, "audits_tried": audits_tried}
    return OneRunAudit(
        records=m,
        guesses=guesses,
        correct=correct,
        epsilon_lower=epsilon_from_guesses(m, guesses, correct, **kept),
        ceiling=epsilon_from_guesses(m, guesses, guesses, **kept),
        records_ceiling=epsilon_from_guesses(m, m, m, **kept),
        **kept,
    )


def epsilon_from_guesses(
    records: int,
    guesses: int,
    correct: int,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
    audits_tried: int = 1,
) -> float:
    """The largest epsilon that so many right guesses refute, 0 where they refute none.

    Under (epsilon, delta)-differential privacy the number of right guesses is below
    W ~ Binomial(guesses, e^epsilon / (e^epsilon + 1)) in distribution, up to delta:

        P[correct >= v] <= P[W >= v]
            + 2 records delta max_{i = 1..v} P[v > W >= v - i] / i

    Args:
        records: m.
        guesses: r.
        correct: v.
        delta: in [0, 1).
        confidence: of the bound, in (0, 1).
        audits_tried: the error is divided by it (Bonferroni).

    References:
        Steinke, Nasr and Jagielski 2023, "Privacy Auditing with One (1) Training Run",
        arXiv:2305.08846, theorem 5.2 (delta = 0) and its approximate form.
    """
    integer(0, correct=correct)
    integer(records=records, guesses=guesses, audits_tried=audits_tried)
    fraction(delta=delta)
    probability(confidence=confidence)
    if not correct <= guesses <= records:
        raise InputError(
            f"Expected correct <= guesses <= records, received {correct}, {guesses} "
            f"and {records}."
        )
    error = (1 - confidence) / audits_tried

    def refuted(epsilon: float) -> bool:
        return _p_value(records, guesses, correct, epsilon, delta) < error

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, _LARGEST_EPSILON
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def _p_value(
    records: int, guesses: int, correct: int, epsilon: float, delta: float
) -> float:
    rate = 1 / (1 + np.exp(-epsilon))
    tail = float(_at_least(correct, guesses, rate))
    if delta == 0 or correct == 0:
        return tail
    steps = np.arange(1, correct + 1)
    between = (_at_least(correct - steps, guesses, rate) - tail) / steps
    return min(1.0, tail + 2 * records * delta * float(between.max()))


def _at_least(count: np.ndarray | int, trials: int, rate: float) -> np.ndarray:
    """P[Binomial(trials, rate) >= count], by the incomplete beta function."""
    from scipy.special import betainc

    count = np.asarray(count)
    found = betainc(np.maximum(count, 1), trials - count + 1, rate)
    return np.where(count > 0, found, 1.0)
