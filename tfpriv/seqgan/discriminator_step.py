"""One update of the discriminator: the seam where differential privacy is put in.

The trainer of `seqgan.py` hands over generated sequences and nothing else. Which real
sequences meet them, how gradients are clipped, what noise is added and who is
charged are the step's own business, so that a private step needs no other change.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import keras
import numpy as np
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv._validation import positive
from tfpriv.seqgan import sampling
from tfpriv.seqgan.batches import batch_indices
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.rewards import cut_at_random


@runtime_checkable
class DiscriminatorStep(Protocol):
    """What `SeqGAN` asks of an update of its discriminator."""

    def __call__(self, fake_ids: tf.Tensor) -> dict[str, float]:
        """Updates the discriminator once against int32 (batch, T) generated rows.

        Returns:
            Metrics to show; "loss" at least.
        """
        ...

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything but the discriminator's own weights."""
        ...

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Goes back to a state."""
        ...


def discriminator_losses(logits: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
    """Cross entropy of each row: logits (batch, 2), real bool (batch,)."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(
        tf.cast(real, tf.int32), logits
    )


class PlainDiscriminatorStep:
    """Adam on as many real rows as generated ones; not private.

    Args:
        discriminator: the model to update.
        real_ids: int (n, T). The real sequences.
        learning_rate: float. SeqGAN's is 1e-4.
        cut_pad_id: int or None. Cuts real and generated rows at random lengths and
            fills up with this id, for the per-step reward.
        seed: int. Of the order of real rows and of the cuts.
        jit_compile: bool. Compiles the update with XLA.

    Raises:
        InputError: real sequences of another shape than the discriminator reads.
    """

    def __init__(
        self,
        discriminator: Discriminator,
        real_ids: Any,
        *,
        learning_rate: float = 1e-4,
        cut_pad_id: int | None = None,
        seed: int = 0,
        jit_compile: bool = False,
    ) -> None:
        positive(learning_rate=learning_rate)
        real_ids = np.asarray(real_ids, np.int32)
        if (
            real_ids.ndim != 2
            or not len(real_ids)
            or real_ids.shape[1] != discriminator.max_length
        ):
            raise InputError(
                f"Expected real sequences of shape (n, {discriminator.max_length}), "
                f"received {real_ids.shape}."
            )
        self.discriminator = discriminator
        self.real_ids = real_ids
        self.cut_pad_id = cut_pad_id
        self.seed = seed
        self.steps = 0
        self.optimizer = keras.optimizers.Adam(learning_rate)
        self.optimizer.build(discriminator.trainable_variables)
        self._update_graph = tf.function(
            self._update, autograph=False, jit_compile=jit_compile or None
        )

    def __call__(self, fake_ids: tf.Tensor) -> dict[str, float]:
        """One update against int32 (batch, T) rows: "loss" and "accuracy"."""
        rows = batch_indices(
            len(self.real_ids), int(fake_ids.shape[0]), self.steps, self.seed
        )
        ids = tf.concat([self.real_ids[rows], tf.cast(fake_ids, tf.int32)], axis=0)
        if self.cut_pad_id is not None:
            seed = sampling.fresh_seed(self.seed, self.steps)
            ids = cut_at_random(ids, self.cut_pad_id, seed)
        self.steps += 1
        loss, accuracy = self._update_graph(ids)
        return {"loss": float(loss), "accuracy": float(accuracy)}

    def _update(self, ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        real = tf.range(ids.shape[0]) < ids.shape[0] // 2
        variables = self.discriminator.trainable_variables
        with tf.GradientTape() as tape:
            logits = self.discriminator(ids, training=True)
            loss = tf.reduce_mean(discriminator_losses(logits, real))
            objective = tf.add_n([loss, *self.discriminator.losses])
        gradients = tape.gradient(objective, variables)
        self.optimizer.apply([tf.convert_to_tensor(g) for g in gradients], variables)
        guessed_real = logits[:, 1] > logits[:, 0]
        return loss, tf.reduce_mean(tf.cast(guessed_real == real, tf.float32))

    def state_dict(self) -> dict[str, np.ndarray]:
        """Step count, seed and Adam's moments, as arrays."""
        return {
            "steps": np.array(self.steps),
            "seed": np.array(str(self.seed)),
            **variables_to_dict(self.optimizer),
        }

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        """Goes back to a state of `state_dict`."""
        self.steps = int(state["steps"])
        self.seed = int(str(state["seed"]))
        variables_from_dict(self.optimizer, state)


def variables_to_dict(owner: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """Variables of a model or optimizer under numbered names."""
    return {
        f"{prefix}variable_{i:03d}": np.asarray(variable)
        for i, variable in enumerate(owner.variables)
    }


def variables_from_dict(
    owner: Any, state: dict[str, np.ndarray], prefix: str = ""
) -> None:
    """Inverse of `variables_to_dict`.

    Raises:
        InputError: a variable is missing or has another shape.
    """
    for i, variable in enumerate(owner.variables):
        key = f"{prefix}variable_{i:03d}"
        shape = getattr(state.get(key), "shape", None)
        if shape != tuple(variable.shape):
            raise InputError(
                f"Expected {key} of shape {tuple(variable.shape)} in the state, "
                f"received {shape}. Was it saved with other settings?"
            )
        variable.assign(state[key])
