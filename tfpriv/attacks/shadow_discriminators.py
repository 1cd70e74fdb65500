"""Discriminators trained as the attacked one was, on rows of the attacker's choice."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv._validation import integer, positive
from tfpriv.accounting import DPSGDPlan
from tfpriv.attacks.class_discriminators import real_logits
from tfpriv.dp_training import DPTrainer
from tfpriv.seqgan.batches import batch_indices
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.discriminator_step import DiscriminatorStep, PlainDiscriminatorStep
from tfpriv.seqgan.private_step import PrivateDiscriminatorStep, discriminator_loss


class TrainShadow(Protocol):
    """What an attack needs of shadow models."""

    def __call__(
        self, real_ids: np.ndarray, scored_ids: np.ndarray, *, seed: int
    ) -> np.ndarray:
        """Trains one shadow on real_ids (n, T) and scores scored_ids (m, T).

        Returns:
            float64 (m,): the higher, the more the shadow takes a row for real.
        """
        ...


class ShadowDiscriminators:
    """Trains discriminators of one architecture, each on real rows of its own.

    The update is the attacked discriminator's own: plain Adam, or, with a plan,
    DP-SGD with fresh noise and no ledger. What shadows may read, the attacker has.
    One network is trained again and again, so that its graphs are compiled once.

    Args:
        like: Discriminator. Architecture and which layers are trained; its weights
            are not read.
        fake_ids: int (m, T). Generated rows, which shadows learn to tell from the
            real ones.
        steps: int. Updates of a shadow; a plan has its own.
        batch_size: int. Real rows and as many generated ones, an update.
        learning_rate: float. Adam's.
        start: weights that every shadow starts from, or None for fresh ones.
        plan: DPSGDPlan of a private discriminator, or None.

    Raises:
        InputError: no generated rows, or rows of another length.
    """

    def __init__(
        self,
        like: Discriminator,
        fake_ids: np.ndarray,
        *,
        steps: int = 727,
        batch_size: int = 64,
        learning_rate: float = 1e-4,
        start: list[np.ndarray] | None = None,
        plan: DPSGDPlan | None = None,
    ) -> None:
        integer(steps=steps, batch_size=batch_size)
        positive(learning_rate=learning_rate)
        self.fake_ids = np.asarray(fake_ids, np.int32)
        if self.fake_ids.ndim != 2 or not len(self.fake_ids):
            raise InputError(
                f"Expected generated rows of shape (m, {like.max_length}) for "
                f"fake_ids, received {self.fake_ids.shape}."
            )
        self.discriminator = Discriminator.from_config(like.get_config())
        self.discriminator.embedding.trainable = like.embedding.trainable
        self.steps = steps if plan is None else plan.steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.start = start
        self.plan = plan
        self._updates: dict[int, tuple[Any, dict[str, np.ndarray]]] = {}

    def __call__(
        self, real_ids: np.ndarray, scored_ids: np.ndarray, *, seed: int
    ) -> np.ndarray:
        """Trains one shadow and returns its log odds; see `TrainShadow`."""
        integer(0, seed=seed)
        step = self._begin(np.asarray(real_ids, np.int32), seed)
        for number in range(self.steps):
            rows = batch_indices(len(self.fake_ids), self.batch_size, number, seed + 1)
            step(tf.constant(self.fake_ids[rows]))
        return real_logits(self.discriminator, scored_ids)

    def _begin(self, real_ids: np.ndarray, seed: int) -> DiscriminatorStep:
        """An update whose optimizer has forgotten the last shadow."""
        # A private trainer belongs to a number of records.
        size = 0 if self.plan is None else len(real_ids)
        if size not in self._updates:
            made = self._make_update(real_ids)
            self._updates[size] = made, made.state_dict()
        step, fresh = self._updates[size]
        step.load_state_dict(fresh)
        if isinstance(step, PrivateDiscriminatorStep):
            step = PrivateDiscriminatorStep(step.trainer, real_ids)
        else:
            step.real_ids, step.seed = real_ids, seed
        self.discriminator.set_weights(self._weights(seed))
        return step

    def _make_update(
        self, real_ids: np.ndarray
    ) -> PlainDiscriminatorStep | PrivateDiscriminatorStep:
        if self.plan is None:
            return PlainDiscriminatorStep(
                self.discriminator, real_ids, learning_rate=self.learning_rate
            )
        trainer = DPTrainer(
            self.discriminator, discriminator_loss, self.plan, self.learning_rate
        )
        return PrivateDiscriminatorStep(trainer, real_ids)

    def _weights(self, seed: int) -> list[np.ndarray]:
        if self.start is not None:
            return self.start
        config = self.discriminator.get_config() | {"seed": seed}
        return Discriminator.from_config(config).get_weights()
