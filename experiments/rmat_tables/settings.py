"""What is run: data sets, arms and every number a model is trained with."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

from tfpriv._errors import InputError

DATASETS = {
    "funpedia": "Funpedia",
    "wizard_as_published": "Wizard as published (neutral, female)",
    "wizard": "Wizard (female, male)",
    "convai2": "ConvAI2",
    "light": "LIGHT",
    "opensubtitles": "OpenSub",
}
TABLE_ARMS = ("none", "dpnr", "ads", "cape", "rmat", "code", "second")
TINY = "tiny"

TITLES = {
    "none": "no protection",
    "dpnr": "DPNR",
    "ads": "ADS",
    "cape": "CAPE",
    "rmat": "RMAT",
    "code": "RMAT, code of the class",
    "second": "RMAT, code of sentiment and intensity",
    "l1": "RMAT, L1 ball",
    "rr": "predicted label, randomised response",
    "front": "RMAT",
}


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way to a representation.

    Attributes:
        method: "none", "dpnr", "ads", "cape", "rmat" (the papers' reading), "code" and
            "second" (RMAT's certified default, a code, trained once and released at
            each certified epsilon), "l1" with an epsilon (an L1 ball, trained through
            the noise of that certified epsilon), or "front".
        epsilon: certified with "l1", nominal with "front".
        mask_rate: mu, with "front".
        adversary_weight: lambda, with "front".
    """

    method: str
    epsilon: float | None = None
    mask_rate: float | None = None
    adversary_weight: float | None = None

    @classmethod
    def parse(cls, key: str) -> Arm:
        """Reads "rmat", "l1@4" or "front-e0.5-m0.1-l1"; the inverse of `key`."""
        try:
            if key.startswith("front-"):
                parts = key.split("-")[1:]
                if [part[0] for part in parts] == ["e", "m", "l"]:
                    arm = cls("front", *(float(part[1:]) for part in parts))
                    if arm.key == key:
                        return arm
            method, at, epsilon = key.partition("@")
            known = ("l1",) if at else TABLE_ARMS
            if method in known and (not at or 0 < float(epsilon) <= 500):
                return cls(method, float(epsilon) if at else None)
        except (ValueError, IndexError):
            pass
        raise InputError(
            f"Expected an arm such as {', '.join(TABLE_ARMS)}, l1@4, "
            f"front-e0.5-m0.1-l1 or front (all of the grid), received {key!r}."
        )

    @property
    def key(self) -> str:
        """Its name in files and on the command line."""
        if self.method == "front":
            return (
                f"front-e{self.epsilon:g}-m{self.mask_rate:g}"
                f"-l{self.adversary_weight:g}"
            )
        return f"{self.method}@{self.epsilon:g}" if self.epsilon else self.method


@dataclasses.dataclass(frozen=True)
class Settings:
    """Every number; two runs in one folder share all of them.

    Attributes:
        preset: what `load_bert` takes; None is MiniLM, "tiny" an untrained BERT of a
            few thousand weights.
        epochs: passes over the training part.
        epochs_of: data set to another number of them.
        batch_size, learning_rate: of AdamW, for every method but CAPE.
        cape_learning_rate: of CAPE, whose BERT is frozen.
        warmup: share of the steps in which the rate rises; then it falls as a cosine.
        nominal_epsilon: the papers' epsilon, of DPNR, CAPE and RMAT.
        mask_rate: mu of DPNR and RMAT.
        adversary_weights: method to lambda. No paper but ADS and CAPE prints one.
        certified_epsilons: at record level, per release.
        certified_mask_rate, certified_adversary_weight: mu and lambda of codes and of
            "l1@E". Masks buy nothing at record level.
        l1_dimension: of "l1@E"; None is the number of classes.
        attackers, attack_seeds, attack_resamples: of `AttributeInferenceAttack`.
        attack_rows: training releases that attackers and readers see, None for all.
        limit, test_limit: rows of the parts that are used, evenly spaced; None for
            all.
        front_dataset: that of the front.
        front_epsilons, front_mask_rates, front_weights: its grid.
        front_epochs, front_limit: of its cells, shorter than those of the tables.
    """

    preset: str | None = None
    epochs: int = 4
    epochs_of: dict[str, int] = dataclasses.field(
        default_factory=lambda: {
            "funpedia": 2,
            "convai2": 1,
            "light": 1,
            "opensubtitles": 1,
        }
    )
    batch_size: int = 32
    learning_rate: float = 2e-4
    cape_learning_rate: float = 1e-3
    warmup: float = 0.1
    nominal_epsilon: float = 1.0
    mask_rate: float = 0.1
    adversary_weights: dict[str, float] = dataclasses.field(
        default_factory=lambda: {"rmat": 1.0, "ads": 10.0, "cape": 1.0}
    )
    certified_epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)
    certified_mask_rate: float = 0.0
    certified_adversary_weight: float = 0.0
    l1_dimension: int | None = None
    attackers: tuple[str, ...] = (
        "logistic_regression",
        "balanced_logistic_regression",
        "mlp",
        "gradient_boosting",
    )
    attack_seeds: tuple[int, ...] = (0, 1, 2)
    attack_resamples: int = 1000
    attack_rows: int | None = None
    limit: int | None = None
    test_limit: int | None = None
    front_dataset: str = "wizard"
    front_epsilons: tuple[float, ...] = (0.1, 0.5, 2.0)
    front_mask_rates: tuple[float, ...] = (0.1, 0.4)
    front_weights: tuple[float, ...] = (0.0, 1.0)
    front_epochs: int = 2
    front_limit: int | None = 3500

    def quick(self) -> Settings:
        """The smallest sizes that still run every branch."""
        return dataclasses.replace(
            self,
            preset=TINY,
            epochs=1,
            epochs_of={},
            certified_epsilons=(1.0, 4.0),
            attackers=("logistic_regression",),
            attack_seeds=(0,),
            attack_resamples=100,
            limit=96,
            test_limit=64,
            front_epsilons=(0.5,),
            front_mask_rates=(0.1,),
            front_weights=(0.0, 1.0),
            front_epochs=1,
            front_limit=64,
        )

    def front(self) -> list[str]:
        """The arms of the front."""
        grid = itertools.product(
            self.front_epsilons, self.front_mask_rates, self.front_weights
        )
        return [Arm("front", *point).key for point in grid]

    def epochs_on(self, arm: Arm, dataset: str) -> int:
        """Passes over the training part of one arm."""
        if arm.method == "front":
            return self.front_epochs
        return self.epochs_of.get(dataset, self.epochs)

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as plain JSON."""
        return dataclasses.asdict(self)
