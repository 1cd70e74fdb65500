"""TF-Privacy's DP-Adam on Keras 3 models: the one module that binds TF-Privacy.

`import tensorflow_privacy` fails on current TensorFlow, since its top module
pulls in estimators. The package has a switch that leaves those imports out; with
it the optimizer modules load, on the optimizers that `tf_keras` still carries.
Everything that knows this stands here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf
import tf_keras

from tfpriv import _validation
from tfpriv._errors import InputError
from tfpriv.dp_training.clipping import PerExampleLoss
from tfpriv.dp_training.noise import noised_mean
from tfpriv.dp_training.one_device import require_one_device

_SWITCH = "skip_tf_privacy_import"


def _bind_tf_privacy() -> Any:
    was_set = hasattr(sys, _SWITCH)
    setattr(sys, _SWITCH, True)
    try:
        from tensorflow_privacy.privacy.dp_query import gaussian_query
        from tensorflow_privacy.privacy.optimizers import dp_optimizer_keras
    finally:
        if not was_set:
            delattr(sys, _SWITCH)
    return dp_optimizer_keras, gaussian_query


_dp_optimizer_keras, _gaussian_query = _bind_tf_privacy()
_GenericDPAdam = _dp_optimizer_keras.make_keras_generic_optimizer_class(
    tf_keras.optimizers.legacy.Adam
)
_StockDPAdam = _dp_optimizer_keras.make_gaussian_query_optimizer_class(_GenericDPAdam)


class DPKerasAdamOptimizer(_GenericDPAdam):
    """TF-Privacy's DPKerasAdamOptimizer with a gradient step that can be claimed.

    Its Adam (slots, bias correction, schedules) is TF-Privacy's. The step before
    it is replaced, because the original draws noise under TensorFlow's global
    seed and divides by the size of the batch that happened to come. Here

        gradient = (sum of clipped gradients + N(0, (S * sigma)^2 I)) / B

    with clipping norm C = `l2_norm_clip`, S = `sensitivity`, sigma =
    `noise_multiplier`, B = `expected_batch_size`, and one draw of noise a step, keyed
    by the operating system (Abadi et al. 2016, arXiv:1607.00133, algorithm 1).

    `apply_clipped_sums` takes the sums of any clipping engine. `minimize` takes
    per-example losses and a persistent tape, like the original, and clips by
    TF-Privacy's own jacobian path.

    Args:
        l2_norm_clip: float. C, above 0.
        noise_multiplier: float. sigma, at least 0; 0 protects nothing.
        expected_batch_size: float. B, a number known before the draw: the sampling
            rate times a given or noisy number of records.
        learning_rate: float or a `tf_keras` schedule.
        sensitivity: float. What takes the place of C in the noise where an engine's
            rounding counts too; C by default, and at least C.
        **kwargs: the other arguments of `tf_keras.optimizers.legacy.Adam`.

    Raises:
        InputError: if a number is out of range.
    """

    def __init__(
        self,
        l2_norm_clip: float,
        noise_multiplier: float,
        expected_batch_size: float,
        learning_rate: Any = 0.001,
        sensitivity: float | None = None,
        **kwargs: Any,
    ) -> None:
        _validation.positive(
            l2_norm_clip=l2_norm_clip, expected_batch_size=expected_batch_size
        )
        _validation.non_negative(noise_multiplier=noise_multiplier)
        self.l2_norm_clip = float(l2_norm_clip)
        self.noise_multiplier = float(noise_multiplier)
        self.expected_batch_size = float(expected_batch_size)
        self.sensitivity = self.l2_norm_clip if sensitivity is None else sensitivity
        _validation.positive(sensitivity=self.sensitivity)
        if self.sensitivity < self.l2_norm_clip:
            raise InputError(
                f"Expected sensitivity >= l2_norm_clip={l2_norm_clip}, received "
                f"sensitivity={sensitivity}. Leave it out where sums are exact."
            )
        query = _gaussian_query.GaussianSumQuery(
            self.l2_norm_clip, self.sensitivity * self.noise_multiplier
        )
        super().__init__(query, learning_rate=learning_rate, **kwargs)

    def build(self, variables: Sequence[tf.Variable]) -> None:
        """Makes Adam's slots for `variables` now, so that weights can be loaded."""
        self._create_all_weights(list(variables))

    def noised_mean(
        self,
        clipped_sums: Sequence[tf.Tensor],
        public_sums: Sequence[tf.Tensor] | None = None,
        num_public: tf.Tensor | int = 0,
    ) -> list[tf.Tensor]:
        """Adds noise once and divides by the expected size.

        Args:
            clipped_sums: the clipped sums over the private records of a step.
            public_sums: the sums over its public records, which get no noise of
                their own.
            num_public: how many public records there are; they join the expected
                size.

        Returns:
            (clipped_sums + noise + public_sums) / (expected_batch_size +
            num_public), one tensor a variable, rounded to the type of its sum when
            all is done.
        """
        require_one_device()
        stddev = self.sensitivity * self.noise_multiplier
        size = tf.cast(self.expected_batch_size, tf.float64)
        size += tf.cast(num_public, tf.float64)
        return noised_mean(clipped_sums, stddev, public_sums, size)

    def apply_clipped_sums(
        self,
        variables: Sequence[tf.Variable],
        clipped_sums: Sequence[tf.Tensor],
        public_sums: Sequence[tf.Tensor] | None = None,
        num_public: tf.Tensor | int = 0,
        regulariser: Callable[[], tf.Tensor] | None = None,
    ) -> list[tf.Tensor]:
        """Makes one private step from the sums of a clipping engine.

        Args:
            variables: what the sums are gradients of.
            clipped_sums: see `noised_mean`.
            public_sums: see `noised_mean`.
            num_public: see `noised_mean`.
            regulariser: returns a scalar of the variables alone; its gradient is
                added after the noise, unclipped, since it reads no record.

        Returns:
            The noised mean, before the regulariser: what the step released.
        """
        gradients = self.noised_mean(clipped_sums, public_sums, num_public)
        self.apply_noised_mean(variables, gradients, regulariser)
        return gradients

    def apply_noised_mean(
        self,
        variables: Sequence[tf.Variable],
        gradients: Sequence[tf.Tensor],
        regulariser: Callable[[], tf.Tensor] | None = None,
    ) -> None:
        """Steps Adam with what `noised_mean` returned.

        Args:
            variables: what the gradients belong to.
            gradients: of `noised_mean`.
            regulariser: see `apply_clipped_sums`.
        """
        steps = gradients
        if regulariser is not None:
            with tf.GradientTape() as tape:
                penalty = regulariser()
            extra = tape.gradient(
                penalty, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
            )
            steps = [
                g + tf.cast(tf.convert_to_tensor(e), g.dtype)
                for g, e in zip(gradients, extra, strict=True)
            ]
        self._was_dp_gradients_called = True
        self.apply_gradients(
            [(tf.cast(g, v.dtype), v) for g, v in zip(steps, variables, strict=True)]
        )

    def _compute_gradients(
        self,
        loss: tf.Tensor,
        var_list: Sequence[tf.Variable],
        grad_loss: tf.Tensor | None = None,
        tape: tf.GradientTape | None = None,
    ) -> list[tuple[tf.Tensor, tf.Variable]]:
        # What `minimize` calls: TF-Privacy's clipping, our noise and division.
        del grad_loss
        if callable(loss) or callable(var_list) or tape is None:
            raise InputError(
                "Expected per-example losses, variables and the persistent tape that "
                "recorded them, received a callable or no tape."
            )
        self._was_dp_gradients_called = True
        variables = tf.nest.flatten(var_list)
        sums = StockClipping(self.l2_norm_clip).clipped_sum(loss, variables, tape)
        return list(zip(self.noised_mean(sums), variables, strict=True))

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor; there is no noise state."""
        config = super().get_config()
        del config["global_state"], config["num_microbatches"]
        return config | {
            "l2_norm_clip": self.l2_norm_clip,
            "noise_multiplier": self.noise_multiplier,
            "expected_batch_size": self.expected_batch_size,
        }


class StockClipping:
    """The clipped sum that TF-Privacy's stock optimizer computes, without noise.

    Args:
        l2_norm_clip: float. The clipping norm.
    """

    def __init__(self, l2_norm_clip: float) -> None:
        self._optimizer = stock_dp_adam(l2_norm_clip, noise_multiplier=0.0)

    def clipped_sum(
        self,
        losses: tf.Tensor,
        variables: Sequence[tf.Variable],
        tape: tf.GradientTape,
    ) -> list[tf.Tensor]:
        """Returns the sum over `losses` (batch,), batch >= 1, from its jacobian.

        Args:
            losses: float tensor (batch,), recorded on `tape`.
            variables: what to differentiate by.
            tape: a persistent tape.
        """
        means = self._optimizer._compute_gradients(losses, list(variables), tape=tape)
        return [
            gradient * tf.cast(tf.shape(losses)[0], gradient.dtype)
            for gradient, _ in means
        ]


def stock_dp_adam(
    l2_norm_clip: float,
    noise_multiplier: float,
    learning_rate: Any = 0.001,
    **kwargs: Any,
) -> tf_keras.optimizers.legacy.Adam:
    """Builds TF-Privacy's DPKerasAdamOptimizer itself, nothing replaced.

    It is the reference for ours and what the paper used. It draws noise under
    TensorFlow's global seed and divides by the actual batch size, so that no
    guarantee is claimed for what it trains.

    Args:
        l2_norm_clip: float. The clipping norm, above 0.
        noise_multiplier: float. At least 0.
        learning_rate: float or a `tf_keras` schedule.
        **kwargs: the other arguments of TF-Privacy's class, `num_microbatches`
            among them.

    Returns:
        An optimizer whose `minimize` takes per-example losses, variables and a
        persistent tape; see `make_stock_step`.
    """
    _validation.positive(l2_norm_clip=l2_norm_clip)
    _validation.non_negative(noise_multiplier=noise_multiplier)
    return _StockDPAdam(
        l2_norm_clip=l2_norm_clip,
        noise_multiplier=noise_multiplier,
        learning_rate=learning_rate,
        **kwargs,
    )


def make_stock_step(
    optimizer: tf_keras.optimizers.legacy.Adam,
    model: keras.Model,
    per_example_loss: PerExampleLoss,
) -> Callable[..., None]:
    """Compiles the step of a stock optimizer on one batch, real and fake alike.

    Args:
        optimizer: what `stock_dp_adam` built, or a `DPKerasAdamOptimizer`.
        model: keras.Model, built.
        per_example_loss: `(model, *inputs)` -> (batch,).

    Returns:
        `step(*inputs)`, of tensors that share their first dimension, at least 1.
    """
    variables = [variable.value for variable in model.trainable_variables]

    @tf.function(autograph=False)
    def step(*inputs: tf.Tensor) -> None:
        with tf.GradientTape(persistent=True) as tape:
            losses = per_example_loss(model, *inputs)
        optimizer.minimize(losses, variables, tape=tape)

    return step
