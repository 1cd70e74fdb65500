"""DP training is for one device; anything else is refused before a record is read.

Under a strategy each replica would sample, clip and add noise for itself: noise of
another size than the plan's, and a sum divided by another number. Nothing here was
shown to be right there, so nothing runs there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from tfpriv._errors import InputError

_MEND = (
    "Elsewhere it was not shown to be right. Build and train outside "
    "`strategy.scope()`; RMAT trains under MirroredStrategy."
)


def require_one_device(
    variables: Iterable[Any] = (), what: str = "DP training"
) -> None:
    """Refuses DP training under a `tf.distribute` strategy or Keras' distribution.

    To be asked by all that trains under DP, before it charges or reads anything.

    Args:
        variables: what is to be trained, Keras' or TensorFlow's.
        what: what the message calls it.

    Raises:
        InputError: a strategy's scope, whichever it is and however many replicas it
            has; `keras.distribution.set_distribution`; or variables that were made
            under one of them.
    """
    if tf.distribute.has_strategy():
        _refuse(what, strategy_name(tf.distribute.get_strategy()))
    if keras.distribution.distribution() is not None:
        _refuse(what, type(keras.distribution.distribution()).__name__)
    for variable in variables:
        value = variable.value if isinstance(variable, keras.Variable) else variable
        if isinstance(value, tf.distribute.DistributedValues):
            _refuse(what, f"variables on {len(value.values)} replicas")


def strategy_name(strategy: tf.distribute.Strategy) -> str:
    """The name that a user knows a strategy by."""
    if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return "MultiWorkerMirroredStrategy"
    return type(strategy).__name__


def _refuse(what: str, received: str) -> None:
    raise InputError(f"Expected {what} on one device, received {received}. {_MEND}")
