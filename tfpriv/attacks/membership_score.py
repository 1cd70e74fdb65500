"""How well an attack tells the records that were used from those that were not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import fraction, integer, probability
from tfpriv.attacks import _membership_rates as rates
from tfpriv.attacks.estimate import Estimate

FALSE_POSITIVE_RATES = (0.01, 0.001)
_CURVE_POINTS = 200


class RocCurve(NamedTuple):
    """False and true positive rates, both rising, from (0, 0) to (1, 1)."""

    fpr: np.ndarray
    tpr: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class MembershipScore:
    """One membership attack's result. Internal: it is computed from private records.

    Every interval and `epsilon_lower` pay for `attacks_tried` (Bonferroni): those of
    one kind hold for all the attacks together with probability `confidence`. Members
    and non-members count as independent draws of one population. The members of one
    release share that release, which `epsilon_lower` leaves out; the one-run audit is
    the test that does not.

    Attributes:
        name: the attack.
        members: how many records were used and scored.
        non_members: how many were scored that were not used.
        auc: area under the ROC curve, .5 where nothing is told. Reliably below .5 it
            is no use to an attacker, but says that the two groups differ.
        advantage: the largest TPR - FPR, 0 where nothing is told; the value is that of
            the best threshold on these records and so too high, the low end is not.
        tpr: for each false positive rate the true positive rate.
        epsilon_lower: what epsilon is at least at `delta`, 0 where nothing was found.
        delta: of `epsilon_lower`.
        attacks_tried: for how many attacks intervals and bound pay.
        confidence: their probability.
        curve: the ROC curve, at most 200 points.
        bounded: of how many members `epsilon_lower` is; None is all.
    """

    name: str
    members: int
    non_members: int
    auc: Estimate
    advantage: Estimate
    tpr: dict[float, Estimate]
    epsilon_lower: float
    delta: float
    attacks_tried: int
    confidence: float
    curve: RocCurve
    bounded: int | None = None

    @property
    def succeeds(self) -> bool:
        """Whether the attack does better than chance can explain."""
        return self.auc.low > 0.5 or self.epsilon_lower > 0

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON."""
        return {
            "name": self.name,
            "members": self.members,
            "non_members": self.non_members,
            "auc": self.auc.to_json(),
            "advantage": self.advantage.to_json(),
            "tpr": {f"{rate:g}": found.to_json() for rate, found in self.tpr.items()},
            "epsilon_lower": self.epsilon_lower,
            "delta": self.delta,
            "attacks_tried": self.attacks_tried,
            "confidence": self.confidence,
            "bounded": self.bounded,
            "curve": {
                axis: [round(float(value), 6) for value in values]
                for axis, values in self.curve._asdict().items()
            },
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> MembershipScore:
        """The score that `to_json` wrote.

        Raises:
            KeyError, TypeError, ValueError: it is not one.
        """
        return cls(
            **{
                **value,
                "auc": Estimate(**value["auc"]),
                "advantage": Estimate(**value["advantage"]),
                "tpr": {
                    float(rate): Estimate(**found)
                    for rate, found in value["tpr"].items()
                },
                "curve": RocCurve(
                    **{axis: np.array(found) for axis, found in value["curve"].items()}
                ),
            }
        )


def score_membership(
    name: str,
    member_scores: np.ndarray,
    non_member_scores: np.ndarray,
    *,
    confidence: float = 0.95,
    delta: float = 1e-5,
    attacks_tried: int = 1,
    bounded: np.ndarray | None = None,
) -> MembershipScore:
    """Scores a membership attack.

    Args:
        name: the attack.
        member_scores: float of shape (m,), m >= 2; the higher, the more the attack
            takes the record for a member.
        non_member_scores: float of shape (n,), n >= 2.
        confidence: probability of intervals and bound, in (0, 1).
        delta: of the bound on epsilon, in [0, 1).
        attacks_tried: how many attacks were tried on these records, this one counted:
            the best of several looks better than it is.
        bounded: bool of shape (m,): members that are one record each, as a claimed
            epsilon takes them to be; the bound is of these. None is all.

    Returns:
        The score.

    Raises:
        InputError: a score is NaN, there are fewer than two, or an argument is out of
            range or of another shape.
    """
    probability(confidence=confidence)
    fraction(delta=delta)
    integer(1, attacks_tried=attacks_tried)
    members = _checked("member_scores", member_scores)
    non_members = _checked("non_member_scores", non_member_scores)
    error = (1 - confidence) / attacks_tried
    single = members
    if bounded is not None:
        bounded = np.asarray(bounded, bool)
        if bounded.shape != members.shape:
            raise InputError(
                f"Expected {len(members)} of True or False for bounded, received an "
                f"array of shape {bounded.shape}."
            )
        single = members[bounded]
    return MembershipScore(
        name=name,
        members=len(members),
        non_members=len(non_members),
        auc=Estimate(*rates.area(members, non_members, error=error)),
        advantage=Estimate(*rates.advantage(members, non_members, error=error)),
        tpr={
            rate: Estimate(
                *rates.true_positive_rate(members, non_members, rate, error=error)
            )
            for rate in FALSE_POSITIVE_RATES
        },
        epsilon_lower=rates.epsilon_from_below(
            single, non_members, error=error, delta=delta
        )
        if len(single) > 1
        else 0.0,
        delta=delta,
        attacks_tried=attacks_tried,
        confidence=confidence,
        curve=RocCurve(
            *rates.thin_curve(*rates.roc_points(members, non_members), _CURVE_POINTS)
        ),
        bounded=None if len(single) == len(members) else len(single),
    )


def epsilon_ceiling(
    members: int,
    non_members: int,
    *,
    confidence: float = 0.95,
    delta: float = 1e-5,
    attacks_tried: int = 1,
) -> float:
    """The largest epsilon that `score_membership` can refute with so many records.

    That of an attack which is never wrong. A claim above it is out of the audit's
    reach: no result speaks against it, and none for it.
    """
    score = score_membership(
        "never wrong",
        np.ones(members),
        np.zeros(non_members),
        confidence=confidence,
        delta=delta,
        attacks_tried=attacks_tried,
    )
    return score.epsilon_lower


def _checked(name: str, scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or len(scores) < 2:
        raise InputError(
            f"Expected at least 2 scores in one row for {name}, received an array of "
            f"shape {scores.shape}."
        )
    if np.isnan(scores).any():
        raise InputError(
            f"Expected numbers in {name}, received NaN at position "
            f"{int(np.isnan(scores).argmax())}."
        )
    return scores
