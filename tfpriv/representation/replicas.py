"""Training on several devices: what a batch that lies on all of them has in common.

Each replica of a `tf.distribute.MirroredStrategy` computes a part of a batch. Keras'
optimizers add the gradients of all replicas up, so a replica's loss is its part of
the mean over the whole batch, however the batch was divided. Masks and noise are
drawn by every replica for itself, from its own words of the operating system's
generator.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv.dp_training.one_device import strategy_name

# Keras does these to the gradient of each replica before it adds them up.
_BEFORE_THE_SUM = (
    "clipnorm",
    "global_clipnorm",
    "clipvalue",
    "gradient_accumulation_steps",
)
_ONE_MACHINE = (tf.distribute.MirroredStrategy, tf.distribute.OneDeviceStrategy)


class BatchWeights:
    """How much each record of a batch counts, this replica's and all together.

    Args:
        ids: int32 (B, T), this replica's records; B may be 0.
        each: weights (B,), or None where all count alike.
    """

    def __init__(self, ids: tf.Tensor, each: tf.Tensor | None) -> None:
        self.each = None if each is None else tf.cast(each, tf.float32)
        mine = tf.cast(tf.shape(ids)[0], tf.float32)
        if self.each is not None:
            mine = tf.reduce_sum(self.each)
        self._total = over_replicas(mine)

    def mean(self, values: tf.Tensor) -> tf.Tensor:
        """This replica's part of the weighted mean of (B,) over the whole batch."""
        if self.each is not None:
            values = values * self.each
        return tf.math.divide_no_nan(tf.reduce_sum(values), self._total)


def over_replicas(part: tf.Tensor) -> tf.Tensor:
    """The sum of what the replicas hold; on one device what it holds."""
    replica = tf.distribute.get_replica_context()
    if replica is None or replica.num_replicas_in_sync == 1:
        return part
    return replica.all_reduce(tf.distribute.ReduceOp.SUM, part)


def number_of_replicas() -> int:
    """How many replicas compute the step that is being traced."""
    replica = tf.distribute.get_replica_context()
    return 1 if replica is None else replica.num_replicas_in_sync


def check_strategy(model: keras.Model) -> None:
    """Refuses a strategy that was not shown to train as one device does.

    Raises:
        InputError: another strategy than MirroredStrategy, Keras' own distribution,
            or a model, compiled or built, that belongs to another one.
    """
    if keras.distribution.distribution() is not None:
        raise InputError(
            "Expected no keras.distribution, received "
            f"{type(keras.distribution.distribution()).__name__}. Train on one device, "
            "or under tf.distribute.MirroredStrategy."
        )
    if not model.compiled:
        return
    strategy = model.distribute_strategy
    # The default one has no name in the public interface.
    others = tf.distribute.has_strategy() or model._distribute_strategy is not None
    if not others:
        return
    if type(strategy) not in _ONE_MACHINE:
        raise InputError(
            "Expected one machine, received the strategy "
            f"{strategy_name(strategy)}: training under it was not shown to equal one "
            "device's. Use tf.distribute.MirroredStrategy, or none."
        )
    if tf.distribute.has_strategy() and tf.distribute.get_strategy() is not strategy:
        raise InputError(
            "Expected fit under the strategy that the model was made under, received "
            "another. Make and compile the model inside `with strategy.scope():`."
        )
    for optimizer in (model.optimizer, model.adversary_optimizer):
        if _strategy_of(optimizer) is not strategy:
            raise InputError(
                "Expected optimizers that were made under the model's strategy, "
                "received one of another. Call compile inside `with "
                "strategy.scope():`, and make its optimizers there."
            )
        if strategy.num_replicas_in_sync > 1:
            check_optimizer(optimizer)
    if model.run_eagerly and strategy.num_replicas_in_sync > 1:
        # Keras' F1 takes no empty part of a batch then.
        raise InputError(
            "Expected a compiled graph on several replicas, received run_eagerly=True. "
            "Leave it out, or look at single steps on one device."
        )


def _strategy_of(optimizer: Any) -> Any:
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    return inner._distribution_strategy


def check_optimizer(optimizer: Any) -> None:
    """Refuses what would be done to each replica's part of a gradient.

    Raises:
        InputError: clipping, accumulation, or loss scaling.
    """
    received = [name for name in _BEFORE_THE_SUM if getattr(optimizer, name, None)]
    if hasattr(optimizer, "inner_optimizer"):
        received.append(type(optimizer).__name__)
    if received:
        raise InputError(
            "Expected optimizers that take the gradient of the whole batch, received "
            f"{received[0]}, which Keras applies on each replica to its part. Leave it "
            "out, or train on one device."
        )
