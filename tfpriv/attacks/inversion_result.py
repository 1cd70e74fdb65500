"""How many words of a text its representation gave away."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from tfpriv.attacks.estimate import Estimate


class WordGuesses(NamedTuple):
    """Scores of the words that were guessed for each test text.

    Attributes:
        f1: float (m,), of the words that were named.
        precision: float (m,), of the first k.
    """

    f1: np.ndarray
    precision: np.ndarray


@dataclasses.dataclass(frozen=True)
class InversionScore:
    """One attacker's scores.

    Attributes:
        name: the attacker.
        f1: mean over test texts.
        precision: mean over test texts.
        f1_gain: how much the F1 lies above the blind guess's on the same texts, an
            interval over test texts that pays for the attackers tried. Not a share:
            it may be below 0.
        precision_gain: the same for the precision.
    """

    name: str
    f1: Estimate
    precision: Estimate
    f1_gain: Estimate
    precision_gain: Estimate

    @classmethod
    def compare(
        cls,
        name: str,
        guesses: WordGuesses,
        blind: WordGuesses,
        weights: np.ndarray,
        *,
        confidence: float,
        attackers_tried: int = 1,
    ) -> InversionScore:
        """Scores an attacker beside the blind guess.

        Args:
            name: the attacker.
            guesses: of the attacker.
            blind: of the blind guess.
            weights: float (resamples, m), rows that sum to 1: resampled test texts.
            confidence: of the intervals.
            attackers_tried: the gains' intervals pay for it (Bonferroni, over both
                measures as well).
        """
        adjusted = 1 - (1 - confidence) / (2 * attackers_tried)
        return cls(
            name=name,
            f1=_mean(guesses.f1, weights, confidence),
            precision=_mean(guesses.precision, weights, confidence),
            f1_gain=_mean(guesses.f1 - blind.f1, weights, adjusted),
            precision_gain=_mean(
                guesses.precision - blind.precision, weights, adjusted
            ),
        )

    @property
    def succeeds(self) -> bool:
        """Whether it recovers more words than the blind guess, beyond chance."""
        return self.f1_gain.low > 0 or self.precision_gain.low > 0

    def to_json(self) -> dict[str, Any]:
        """Returns the fields and the verdict as plain JSON."""
        return {**dataclasses.asdict(self), "succeeds": self.succeeds}


@dataclasses.dataclass(frozen=True)
class InversionResult:
    """What an inversion attack found. Internal: it comes from private text.

    Attributes:
        attackers: one score an attacker.
        blind: the guess that does not look at the representation.
        words: how many words were guessed among.
        named: how many were named for each text.
        k: of the precision.
        reference_rows: texts that attackers learnt from.
        test_rows: texts that they were tested on.
        dimension: features of a representation.
        confidence: probability of the intervals.
    """

    attackers: tuple[InversionScore, ...]
    blind: InversionScore
    words: int
    named: int
    k: int
    reference_rows: int
    test_rows: int
    dimension: int
    confidence: float

    @property
    def worst(self) -> InversionScore:
        """The attacker with the highest F1."""
        return max(self.attackers, key=lambda score: score.f1.value)

    @property
    def leaks(self) -> bool:
        """Whether any attacker recovers words beyond what a blind guess has."""
        return any(score.succeeds for score in self.attackers)

    def to_json(self) -> dict[str, Any]:
        """Returns fields, the worst attacker's name and the verdict as plain JSON."""
        value = {
            field.name: getattr(self, field.name) for field in dataclasses.fields(self)
        }
        return {
            "worst": self.worst.name,
            "leaks": self.leaks,
            **value,
            "attackers": [score.to_json() for score in self.attackers],
            "blind": self.blind.to_json(),
        }

    def to_markdown(self) -> str:
        """Returns a table and what it says, in Markdown."""
        percent = f"{100 * self.confidence:g} %"
        lines = [
            f"| attacker | word F1 [{percent}] | precision at {self.k} "
            "| F1 above the blind guess |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {score.name} | {score.f1} | {score.precision} | {score.f1_gain} |"
            for score in self.attackers
        ]
        lines.append(
            f"| a guess without the representation | {self.blind.f1} "
            f"| {self.blind.precision} | |"
        )
        return "\n".join([*lines, "", self._verdict()])

    def __str__(self) -> str:
        return self.to_markdown()

    def _verdict(self) -> str:
        text = (
            f"{self.named} of {self.words} words were named for each of "
            f"{self.test_rows} texts, learnt from {self.reference_rows} others. "
        )
        if self.leaks:
            return text + "Representations GIVE WORDS AWAY."
        return text + (
            "No attacker did better than a blind guess, which is no proof that none "
            "can."
        )


def _mean(values: np.ndarray, weights: np.ndarray, confidence: float) -> Estimate:
    tail = (1 - confidence) / 2
    low, high = np.quantile(weights @ values, [tail, 1 - tail])
    return Estimate(float(values.mean()), float(low), float(high))
