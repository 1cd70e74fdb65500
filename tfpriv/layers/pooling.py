"""From a vector a token to a vector a text."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv._validation import one_of
from tfpriv.layers._wide_layer import WideLayer

KINDS = ("mean", "cls", "pooled")


@keras.saving.register_keras_serializable(package="tfpriv")
class SequencePooling(WideLayer):
    """Pools the output of a BERT backbone.

    - "mean": the mean over the positions that the mask keeps; zeros for a text that
      has none.
    - "cls": the first position.
    - "pooled": the backbone's own pooled output.

    Args:
        kind: str. One of the above.

    Call arguments:
        inputs: dict, as a KerasNLP `BertBackbone` returns it, with the mask added:
            "sequence_output" float (batch, length, hidden) for "mean" and "cls";
            "padding_mask" bool or int (batch, length) for "mean";
            "pooled_output" float (batch, hidden) for "pooled". Others are ignored.

    Returns (call):
        float32 (float64 under that policy) (batch, hidden).

    Raises:
        InputError: an unknown kind, or inputs without what the kind needs.
    """

    def __init__(self, kind: str = "mean", **kwargs: Any) -> None:
        one_of(KINDS, kind=kind)
        super().__init__(**kwargs)
        self.kind = kind
        # It ends the sequence that an implicit mask is about.
        self.supports_masking = False

    def _needed(self) -> tuple[str, ...]:
        return {
            "mean": ("sequence_output", "padding_mask"),
            "cls": ("sequence_output",),
            "pooled": ("pooled_output",),
        }[self.kind]

    def _check(self, inputs: Any) -> None:
        names = sorted(inputs) if isinstance(inputs, dict) else type(inputs).__name__
        missing = [name for name in self._needed() if name not in names]
        if missing or not isinstance(inputs, dict):
            raise InputError(
                f"Expected a dict with {', '.join(self._needed())} for "
                f"kind={self.kind!r}, received {names}."
            )

    def call(self, inputs: dict[str, tf.Tensor], mask: Any = None) -> tf.Tensor:
        """The pooled vectors. An implicit Keras `mask` is not used."""
        self._check(inputs)
        values = tf.cast(inputs[self._needed()[0]], self.output_dtype)
        if self.kind == "pooled":
            return values
        if self.kind == "cls":
            return values[:, 0]
        kept = tf.cast(inputs["padding_mask"], tf.bool)[..., tf.newaxis]
        # Not a product: what a padded position holds may not be finite.
        total = tf.reduce_sum(tf.where(kept, values, tf.zeros_like(values)), axis=1)
        count = tf.reduce_sum(tf.cast(kept, self.output_dtype), axis=1)
        return total / tf.maximum(count, 1)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> None:
        """None: a pooled vector has no positions."""

    def compute_output_shape(self, input_shape: dict[str, tuple]) -> tuple:
        """(batch, hidden)."""
        shape = input_shape[self._needed()[0]]
        return (shape[0], shape[-1])

    def compute_output_spec(self, inputs: Any, **kwargs: Any) -> keras.KerasTensor:
        """Shape and dtype of the output, for functional models."""
        self._check(inputs)
        shapes = {name: value.shape for name, value in inputs.items()}
        return keras.KerasTensor(self.compute_output_shape(shapes), self.output_dtype)

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        config = super().get_config()
        config.update(kind=self.kind)
        return config
