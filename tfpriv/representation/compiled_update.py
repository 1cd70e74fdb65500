"""An optimizer's update of large models, compiled to one pass over the weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

# Compiling takes seconds; updates of fewer weights are short anyway.
_LEAST_WEIGHTS = 2_000_000


class CompiledUpdate:
    """`optimizer.apply` on whole gradients, under XLA where it wins.

    As single operations, Adam goes over the weights and their two moments once an
    operation; compiled, once in all. Small models are not compiled, nor a loss scale
    (its update is a branch), nor steps under a strategy, whose replicas must add their
    gradients up first.

    The gradient of an embedding comes as rows, one a token of the batch. Keras' Adam on
    TensorFlow (3.15) squares each of these before it adds those of one word up, so that
    frequent words take steps that are too long; here they are added up first.

    Args:
        optimizer: a built Keras optimizer.
        variables: what it updates.
    """

    def __init__(
        self, optimizer: keras.Optimizer, variables: Sequence[keras.Variable]
    ) -> None:
        self._optimizer = optimizer
        self._variables = list(variables)
        weights = sum(math.prod(variable.shape) for variable in self._variables)
        self._wins = weights >= _LEAST_WEIGHTS
        self._compiled = tf.function(self._update, jit_compile=True)

    def __call__(self, gradients: Sequence[Any]) -> None:
        """Updates the variables; a gradient that is None counts as zero."""
        gradients = [
            tf.zeros_like(variable)
            if gradient is None
            else tf.convert_to_tensor(gradient)
            for gradient, variable in zip(gradients, self._variables, strict=True)
        ]
        scaled = hasattr(self._optimizer, "inner_optimizer")
        if scaled or not self._wins or tf.distribute.has_strategy():
            self._update(gradients)
        else:
            self._compiled(gradients)

    def _update(self, gradients: list[tf.Tensor]) -> None:
        self._optimizer.apply(gradients, self._variables)
