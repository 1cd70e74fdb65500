"""The sizes of a run: the published ones, and where ours is shorter."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Schedule:
    """One run's sizes; the defaults are the full run.

    Network and data are SeqGAN's. The schedule is shorter: SeqGAN pre-trains for 120
    epochs and its discriminator for 46,800 steps, then plays 200 rounds of 4,680
    discriminator steps each, with 16 rollouts. The generator's rate is a tenth of
    SeqGAN's in the game: at .01 NLL_test rises.
    """

    vocabulary_size: int = 5000
    length: int = 20
    embedding_dim: int = 32
    units: int = 32
    sequences: int = 10_000
    batch_size: int = 64
    full_discriminator: bool = True

    mle_epochs: int = 8
    discriminator_pretraining_steps: int = 400
    discriminator_learning_rate: float = 1e-3
    rounds: int = 30
    d_steps: int = 5
    rollouts: int = 8
    learning_rate: float = 0.001
    evaluate_every: int = 10
    temperatures: tuple[float, ...] = (0.6, 0.7, 0.8, 0.9, 1.0, 1.05, 1.1, 1.2)
    evaluation_samples: int = 10_000

    def to_json(self) -> dict:
        """Plain values, as they come back from JSON."""
        values = dataclasses.asdict(self)
        return {**values, "temperatures": list(self.temperatures)}


FULL = Schedule()
QUICK = Schedule(
    vocabulary_size=60,
    length=6,
    embedding_dim=8,
    units=8,
    sequences=256,
    batch_size=32,
    full_discriminator=False,
    mle_epochs=2,
    discriminator_pretraining_steps=10,
    rounds=2,
    d_steps=2,
    rollouts=4,
    evaluate_every=1,
    temperatures=(0.8, 1.0),
    evaluation_samples=200,
)
