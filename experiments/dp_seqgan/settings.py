"""What a run of this experiment is made of: arms, seeds, sizes."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from experiments._synthesis.study import Arm, Study
from experiments.youtube_spam.__main__ import STUDY

ORIGINAL = "original"
FULL = {
    "mle_epochs": 120,
    "discriminator_widths": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20),
    "discriminator_filters": 100,
    # Of about 550 rows a class, 9 batches: 50 x 3 epochs, then 200 x 5 x 3.
    "discriminator_steps": 28_350,
    "rounds": 200,
    "d_steps": 135,
    "rollouts": 16,
    "policy_learning_rate": 0.01,
}


class ArmInfo(NamedTuple):
    """One way to a training set, and how tables call it."""

    title: str
    arm: Arm
    published: dict[str, Any]


ARMS: dict[str, ArmInfo] = {
    ORIGINAL: ArmInfo("original data", Arm(ORIGINAL), {}),
    "seqgan": ArmInfo("SeqGAN", Arm("seqgan"), {}),
    "paper": ArmInfo("DP-SeqGAN, paper mode", Arm("paper"), {}),
    "default@8": ArmInfo("DP-SeqGAN, epsilon 8", Arm("default", 8.0), {}),
    "default@4": ArmInfo("DP-SeqGAN, epsilon 4", Arm("default", 4.0), {}),
    "default@2": ArmInfo("DP-SeqGAN, epsilon 2", Arm("default", 2.0), {}),
    "default@1": ArmInfo("DP-SeqGAN, epsilon 1", Arm("default", 1.0), {}),
    "seqgan_full": ArmInfo("SeqGAN, full schedule", Arm("seqgan"), FULL),
}
# Before an arm's name: the same arm, fitted with canaries among its records.
CANARIES = "canaries/"
CANARY_ARMS = tuple(CANARIES + name for name in ("seqgan", "paper", "default@8"))
# The full schedule is asked for by name: it takes hours.
DEFAULT_ARMS = tuple(name for name in ARMS if name != "seqgan_full")
# Mixtures of real and synthetic rows: shares of S1, and what is trained on them.
REAL_SHARES = (0.1, 1.0)
SYNTHETIC_SHARES = (0.0, 0.5, 1.0, 2.0, 5.0)
MIXED_FOR = ("LR", "RNN")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Sizes; two runs must share them to lie in one folder.

    Attributes:
        study: the data set, networks and classifiers, those of `youtube_spam`.
        seeds: of the full run.
        rows: synthetic rows an arm, for classifiers.
        attack_rows: how many of them the attacks on text and the shadows get.
        published_shadows, published_epochs, published_steps: of the paper's attack.
        lira_shadows: shadow discriminators a class.
        lira_seeds: seeds whose cells have LiRA.
        outliers: share of a class's records that count as outliers.
        curve_steps: gradient steps of the RNN whose convergence is watched.
        canaries: made for a run with canaries, of which a coin each takes half.
        alternatives: suffixes that a canary is ranked among.
    """

    study: Study = STUDY
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    rows: int = 10_000
    attack_rows: int = 4_000
    published_shadows: int = 5
    published_epochs: int = 40
    published_steps: int = 727
    lira_shadows: int = 16
    lira_seeds: tuple[int, ...] = (0,)
    outliers: float = 0.1
    curve_steps: int = 400
    canaries: int = 400
    alternatives: int = 255

    def quick(self) -> Settings:
        """The smallest sizes that still run every branch."""
        study = self.study.quick()
        return dataclasses.replace(
            self,
            # An audit of fewer than 50 non-members is refused.
            study=dataclasses.replace(study, limit=500),
            seeds=self.seeds[:1],
            rows=300,
            attack_rows=200,
            published_shadows=2,
            published_epochs=1,
            published_steps=3,
            lira_seeds=self.seeds[:1],
            outliers=0.2,
            curve_steps=16,
            canaries=20,
            alternatives=7,
        )

    def to_json(self) -> dict[str, Any]:
        """What two runs must share to lie in one folder."""
        return {
            **dataclasses.asdict(self),
            "study": self.study.to_json(),
            # More seeds may be added later, of attacks as well as of cells.
            "seeds": None,
        }
