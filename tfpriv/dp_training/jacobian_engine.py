"""The clipping engine that is TF-Privacy's own code: slow, and not ours."""

from __future__ import annotations

import keras
import tensorflow as tf

from tfpriv.dp_training.clipping import (
    ClippingEngine,
    PerExampleLoss,
    register_engine,
    wide_dtype,
)
from tfpriv.dp_training.optimizer import StockClipping


@register_engine("jacobian")
class JacobianEngine(ClippingEngine):
    """Clips by the jacobian of all losses, as TF-Privacy's optimizers do.

    An independent witness for the other engines, 30 to 50 times slower than a
    plain step. Unlike the others it hands on a gradient that is not finite, and its
    sums are float32 numbers in TF-Privacy's order, not exact ones.
    """

    def __init__(
        self,
        model: keras.Model,
        per_example_loss: PerExampleLoss,
        l2_norm_clip: float,
        largest_step: int = 256,
        expected_step: int | None = None,
    ) -> None:
        super().__init__(
            model, per_example_loss, l2_norm_clip, largest_step, expected_step
        )
        self._clipping = StockClipping(l2_norm_clip)

    def clipped_sum(
        self, inputs: tuple[tf.Tensor, ...], mask: tf.Tensor
    ) -> list[tf.Tensor]:
        """See `ClippingEngine.clipped_sum`."""

        def some_rows() -> list[tf.Tensor]:
            kept = tuple(tf.boolean_mask(x, mask) for x in inputs)
            with tf.GradientTape(persistent=True) as tape:
                losses = self.losses(kept)
            sums = self._clipping.clipped_sum(losses, self.variables, tape)
            return [tf.cast(total, wide_dtype(total.dtype)) for total in sums]

        # TF-Privacy cannot reshape the losses of no rows.
        return tf.cond(tf.reduce_any(mask), some_rows, self.zeros)
