"""The discriminator's update under differential privacy."""

from __future__ import annotations

import keras
import numpy as np
import tensorflow as tf

from tfpriv.dp_training import DPTrainer
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.discriminator_step import discriminator_losses


def discriminator_loss(
    model: keras.Model, ids: tf.Tensor, real: tf.Tensor
) -> tf.Tensor:
    """Cross entropy of each row of ids (batch, T); real is 1 or 0, (batch,)."""
    return discriminator_losses(model(ids, training=True), real > 0)


class PrivateDiscriminatorStep:
    """A DP-SGD step: real rows sampled, clipped and noised; generated rows clipped.

    Only the real rows are private. What comes out, and whatever a generator learns
    from the discriminator, is post-processing of the noisy sums.

    Args:
        trainer: DPTrainer of the discriminator with `discriminator_loss`; its plan
            and ledger say what a step costs.
        real_ids: int32 (n, T). ALL private rows of the class.
    """

    def __init__(self, trainer: DPTrainer, real_ids: np.ndarray) -> None:
        self.trainer = trainer
        self._real = (np.asarray(real_ids, np.int32), np.ones(len(real_ids), np.int32))

    @property
    def discriminator(self) -> Discriminator:
        """The model that is trained."""
        return self.trainer.model

    def __call__(self, fake_ids: tf.Tensor) -> dict[str, float]:
        """Updates once against int32 (m, T) generated rows.

        Returns:
            The norm of the noisy gradient: a loss on real rows would not be private.

        Raises:
            BudgetExceeded: before any record is read.
        """
        fakes = np.asarray(fake_ids, np.int32)
        metrics = self.trainer.step(self._real, (fakes, np.zeros(len(fakes), np.int32)))
        return {"noised_gradient_norm": metrics["noised_gradient_norm"]}

    def state_dict(self) -> dict[str, np.ndarray]:
        """The optimizer's slots, weights and step counter."""
        return self.trainer.state()

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Goes back to a state; steps taken since are charged again when replayed."""
        self.trainer.load_state(state)
