"""What a study runs: a data set, arms, sizes. Nothing here is fitted."""

from __future__ import annotations

import dataclasses
from typing import Any

ORIGINAL = "original"
PART_NAMES = {"test": "S3", "validation": "S2"}


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way to a training set.

    Attributes:
        method: "original", "default", "counts", "paper" or "seqgan".
        epsilon: of "default" and "counts", else None.
    """

    method: str
    epsilon: float | None = None

    @classmethod
    def parse(cls, key: str) -> Arm:
        """Reads "default@8" and the like; the inverse of `key`."""
        method, _, epsilon = key.partition("@")
        needs_epsilon = method in ("default", "counts")
        if method not in TITLES or needs_epsilon != bool(epsilon):
            raise ValueError(
                f"Expected an arm such as original, default@8, counts@8, paper or "
                f"seqgan, received {key!r}."
            )
        return cls(method, float(epsilon) if epsilon else None)

    @property
    def key(self) -> str:
        """Its name in files and on the command line."""
        return f"{self.method}@{self.epsilon:g}" if self.epsilon else self.method

    @property
    def title(self) -> str:
        """Its name in tables."""
        title = TITLES[self.method]
        return f"{title}, epsilon {self.epsilon:g}" if self.epsilon else title


TITLES = {
    ORIGINAL: "original data",
    "default": "DPSeqGAN",
    "counts": "DPSeqGAN without the adversarial part",
    "paper": "paper mode (noise on the discriminator alone)",
    "seqgan": "SeqGAN (no noise)",
}


@dataclasses.dataclass(frozen=True)
class Study:
    """Sizes and arms of one experiment.

    Attributes:
        name: of the module under `experiments`.
        title: of the report.
        dataset: what `tfpriv.datasets.read` takes.
        arms: keys of `Arm`; the order is that in which a seed is run.
        seeds: of the full run.
        labels: label names declared public, or None: then they are selected
            privately.
        compared: the arm whose seed corpus and adversarial texts are compared.
        rows: synthetic rows an arm.
        text_rows: rows of diversity measures, the same for every arm.
        classifiers: names of `tfpriv.evaluation`.
        classifier_options: settings of the networks.
        largest_gaps: classifier -> how far below the original data it may be at
            epsilon 8, the target.
        least: classifier -> accuracy that the original data should reach.
        aims: classifier -> accuracy to aim past at epsilon 8.
        remarks: lines under the tables.
        limit: records of the data set that are used, or None for all.
        discriminator_steps: of the default arms.
        gan, published: settings that differ from the defaults.
    """

    name: str
    title: str
    dataset: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    labels: tuple[str, ...] | None = None
    compared: str = "default@8"
    rows: int = 10_000
    text_rows: int = 300
    classifiers: tuple[str, ...] = ("LR", "CNN", "RNN")
    classifier_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    largest_gaps: dict[str, float] = dataclasses.field(default_factory=dict)
    least: dict[str, float] = dataclasses.field(default_factory=dict)
    aims: dict[str, float] = dataclasses.field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    limit: int | None = None
    discriminator_steps: int | None = None
    gan: dict[str, Any] = dataclasses.field(default_factory=dict)
    published: dict[str, Any] = dataclasses.field(default_factory=dict)

    def quick(self) -> Study:
        """The smallest sizes that still run every branch."""
        arms = [ORIGINAL, "default@8", "counts@8", "seqgan", "paper"]
        return dataclasses.replace(
            self,
            arms=tuple(arm for arm in arms if arm in self.arms),
            seeds=self.seeds[:1],
            rows=60,
            text_rows=30,
            classifiers=self.classifiers[:2],
            classifier_options={"steps": 8},
            limit=300,
            discriminator_steps=2,
            gan={
                "max_length": 6,
                "embedding_dim": 8,
                "units": 8,
                "mle_epochs": 1,
                "discriminator_widths": (1, 2),
                "discriminator_filters": 4,
                "warm_up_steps": 2,
                "rounds": 1,
                "g_steps": 1,
                "rollouts": 1,
            },
            published={
                "max_length": 6,
                "mle_epochs": 1,
                "discriminator_widths": (1, 2),
                "discriminator_filters": 4,
                "discriminator_steps": 3,
                "rounds": 1,
                "d_steps": 2,
                "rollouts": 1,
            },
        )

    def to_json(self) -> dict[str, Any]:
        """What two runs must share to lie in one folder."""
        kept = dataclasses.asdict(self)
        for name in ("arms", "seeds", "title", "remarks", "largest_gaps", "least"):
            del kept[name]
        del kept["aims"]
        return kept
