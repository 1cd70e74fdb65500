"""What an audit's attacks found, beside what was claimed and what could be found."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from tfpriv._errors import InputError
from tfpriv._figures import rounded_up
from tfpriv.attacks.membership_score import MembershipScore, epsilon_ceiling


@dataclasses.dataclass(frozen=True, eq=False)
class AuditResult:
    """Scores of all attacks that were tried on one release.

    It is computed from private records: internal, and without an epsilon. It shows no
    record. An audit can refute a claim; it never proves one.

    Attributes:
        scores: one an attack, all with the same confidence, delta and number of
            attacks tried.
        claimed_epsilon: what the release is said to guarantee at the scores' delta;
            None, and infinity, where nothing is.
        control: members told from non-members without the release, None where nobody
            tried. Where that succeeds the two differ in themselves.

    Raises:
        InputError: no scores, or scores that do not belong together.
    """

    scores: tuple[MembershipScore, ...]
    claimed_epsilon: float | None = None
    control: MembershipScore | None = None

    def __post_init__(self) -> None:
        if not self.scores:
            raise InputError("Expected at least one score, received none.")
        for name in ("confidence", "delta", "attacks_tried"):
            values = {getattr(score, name) for score in self.scores}
            if len(values) > 1:
                raise InputError(
                    f"Expected scores of one {name}, received {sorted(values)}."
                )
        if self.attacks_tried < len(self.scores):
            raise InputError(
                f"Expected scores that pay for {len(self.scores)} attacks, received "
                f"attacks_tried={self.attacks_tried}."
            )

    @property
    def attacks_tried(self) -> int:
        """For how many attacks intervals and bounds pay."""
        return self.scores[0].attacks_tried

    @property
    def confidence(self) -> float:
        """Probability of intervals and bounds."""
        return self.scores[0].confidence

    @property
    def delta(self) -> float:
        """Delta of the bounds on epsilon."""
        return self.scores[0].delta

    @property
    def worst(self) -> MembershipScore:
        """The attack with the highest lower bound on epsilon, then the highest AUC."""
        return max(self.scores, key=lambda s: (s.epsilon_lower, s.auc.value))

    @property
    def ceiling(self) -> float:
        """The largest epsilon that attacks on so many records could have refuted."""
        return max(
            epsilon_ceiling(
                members,
                non_members,
                confidence=self.confidence,
                delta=self.delta,
                attacks_tried=self.attacks_tried,
            )
            if members > 1
            else 0.0
            for members, non_members in {
                (_bounded(score), score.non_members) for score in self.scores
            }
        )

    @property
    def succeeds(self) -> bool:
        """Whether any attack does better than chance can explain."""
        return any(score.succeeds for score in self.scores)

    @property
    def groups_differ(self) -> bool:
        """Whether members and non-members are told apart without the release."""
        if self.control is None:
            return False
        return not self.control.auc.low <= 0.5 <= self.control.auc.high

    @property
    def claim(self) -> float | None:
        """The claimed epsilon, None where that is infinite."""
        claimed = self.claimed_epsilon
        return None if claimed is None or math.isinf(claimed) else claimed

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, as surely as `confidence` says."""
        return self.claim is not None and self.worst.epsilon_lower > self.claim

    def to_json(self) -> dict[str, Any]:
        """Returns attacks, claim, ceiling and verdict as plain JSON."""
        claimed = None
        if self.claimed_epsilon is not None:
            claimed = {"epsilon": self.claimed_epsilon, "delta": self.delta}
        return {
            "attacks": [score.to_json() for score in self.scores],
            "worst": self.worst.name,
            "succeeds": self.succeeds,
            "refuted": self.refuted,
            "groups_differ": self.groups_differ,
            "control": None if self.control is None else self.control.to_json(),
            "epsilon_lower": self.worst.epsilon_lower,
            "claimed": claimed,
            "ceiling": self.ceiling,
            "attacks_tried": self.attacks_tried,
            "confidence": self.confidence,
            "delta": self.delta,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> AuditResult:
        """The result that `to_json` gave, read back or not.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        claimed = value["claimed"]
        epsilon = None
        if claimed is not None:
            # JSON has no infinity.
            epsilon = math.inf if claimed["epsilon"] is None else claimed["epsilon"]
        control = value.get("control")
        return cls(
            tuple(map(MembershipScore.from_json, value["attacks"])),
            epsilon,
            None if control is None else MembershipScore.from_json(control),
        )

    def to_markdown(self) -> str:
        """Returns a table and what it says, in Markdown."""
        rates = list(self.scores[0].tpr)
        columns = ["attack", "AUC", "advantage"]
        columns += [f"TPR at {100 * rate:g} % FPR" for rate in rates]
        columns += ["epsilon at least"]
        rows = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        for score in self.scores:
            name = f"**{score.name}**" if score is self.worst else score.name
            cells = [name, str(score.auc), str(score.advantage)]
            cells += [str(score.tpr[rate]) for rate in rates]
            cells += [f"{score.epsilon_lower:.2f}"]
            rows.append(f"| {' | '.join(cells)} |")
        return "\n".join([*rows, "", self.verdict(), "", self.setting()])

    def __str__(self) -> str:
        return self.to_markdown()

    def verdict(self) -> str:
        """What it means, in sentences."""
        if self.succeeds:
            named = ", ".join(score.name for score in self.scores if score.succeeds)
            text = f"Members ARE told from non-members, beyond chance: {named}. "
        else:
            text = (
                f"No evidence of leaking was found by {_attacks(self.attacks_tried)}. "
                "That is no proof that nothing leaks: another attack may find what "
                "these did not. "
            )
        if self.groups_differ:
            text = (
                "Members and non-members DIFFER before the release is looked at (AUC "
                f"{self.control.auc} by texts apart from both): take records of one "
                f"population, or what follows may be that difference. {text}"
            )
        return text + self._about_epsilon()

    def _about_epsilon(self) -> str:
        found, claimed, ceiling = self.worst.epsilon_lower, self.claim, self.ceiling
        if found:
            text = (
                f"Epsilon is at least {found:.2f} at delta {self.delta:g} "
                f"({self.worst.name})"
            )
        else:
            text = f"No epsilon is refuted at delta {self.delta:g}"
        reach = (
            f"an attack that is never wrong would show {ceiling:.2f} with so many "
            "records"
        )
        if claimed is None:
            return f"{text}. No epsilon is claimed at that delta; {reach}."
        claim = f"the claimed epsilon of {rounded_up(claimed)}"
        if self.refuted:
            unless = ", unless that difference explains it" * self.groups_differ
            return f"{text}, which REFUTES {claim}{unless}."
        if ceiling <= claimed:
            return f"{text}. This audit could not have refuted {claim}: {reach}."
        return f"{text}. That does not refute {claim}; {reach}."

    def setting(self) -> str:
        """How it was measured, in sentences."""
        sizes = sorted({(score.members, score.non_members) for score in self.scores})
        records = "; ".join(
            f"{members} members and {others} non-members" for members, others in sizes
        )
        several = max(score.members - _bounded(score) for score in self.scores)
        copied = ""
        if several:
            copied = (
                f" {several} of the members stand for several equal records each, of "
                "which a claim about one record says less: bounds on epsilon are of "
                "the others."
            )
        return (
            f"{records}.{copied} Intervals of one kind, and bounds on epsilon, hold "
            f"with probability {100 * self.confidence:g} % for "
            f"{_together(self.attacks_tried)}. The release is one: what another would "
            "show is not in them."
        )


def _bounded(score: MembershipScore) -> int:
    return score.members if score.bounded is None else score.bounded


def _together(count: int) -> str:
    return f"all of {count} attacks together" if count > 1 else "the one attack"


def _attacks(count: int) -> str:
    return f"{count} attacks" if count > 1 else "1 attack"
