"""From word pieces to the released representation: nothing private passes it."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv.accounting import LaplaceCertificate
from tfpriv.layers import (
    L1Clip,
    LaplaceNoise,
    MinMaxScale,
    RandomizedResponseCode,
    RandomMask,
    SequencePooling,
)
from tfpriv.representation.design import ReleaseDesign
from tfpriv.representation.word_pieces import WordPieces

# Under XLA every shape is compiled: rows and widths are multiples of these.
_ROWS = 32
_WIDTHS = 8


@keras.saving.register_keras_serializable(package="tfpriv")
class PrivateEncoder(keras.layers.Layer):
    """Mask, BERT, two dense layers, a bound, noise (Wu and Luo 2023).

    Masks and noise are drawn anew in every call, in training and afterwards: it is
    the release that is private, and what a reader gets is what was trained on.

    Args:
        backbone: `keras_nlp.models.BertBackbone`.
        tokenizer: `keras_nlp.models.BertTokenizer` of the same vocabulary.
        design: ReleaseDesign, or its fields as a dict.
    """

    def __init__(
        self,
        backbone: keras.Model,
        tokenizer: Any,
        design: ReleaseDesign | dict[str, Any],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if isinstance(design, dict):
            design = ReleaseDesign(**design)
        self.design = design
        self.backbone = backbone
        self.backbone.trainable = design.train_backbone
        self.word_pieces = WordPieces(
            tokenizer, max_words=design.max_length - 2, name="word_pieces"
        )
        self.pooling = SequencePooling(design.pooling, name="pooling")
        self.projection = self._projection()
        self.bound, self.noise = self._mechanism()
        self.post = [
            # In float32: what half precision cannot hold would be released as infinity.
            keras.layers.Dense(
                units, activation="relu", dtype="float32", name=f"post_{i}"
            )
            for i, units in enumerate(design.post_units)
        ]
        self.mask: RandomMask | None = None
        self._compiled: Any = None
        self.supports_jit = False
        self._build_all()

    @property
    def tokenizer(self) -> Any:
        """The tokenizer of the backbone's vocabulary."""
        return self.word_pieces.tokenizer

    @property
    def output_dim(self) -> int:
        """Coordinates of a released representation."""
        return (*(self.design.dimension,), *self.design.post_units)[-1]

    def call(self, ids: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Releases a batch.

        Args:
            ids: int32 word pieces (B, T) from `word_pieces`, without [CLS] and [SEP].
            training: whether dropout is on; masks and noise always are.

        Returns:
            float32 (B, output_dim).
        """
        x = self._before_noise(ids, training)
        if self.noise is not None:
            x = self.noise(x)
        for layer in self.post:
            x = layer(x)
        return tf.cast(x, tf.float32)

    def code_probabilities(
        self, ids: tf.Tensor, training: bool | None = None
    ) -> tf.Tensor:
        """Returns the softmax of the codes' logits: NOT a release.

        For training with scale="code": a drawn code has no gradient.

        Args:
            ids: int32 word pieces (B, T), as in `call`.
            training: whether dropout is on.

        Returns:
            float32 (B, K).
        """
        return tf.nn.softmax(tf.cast(self._before_noise(ids, training), tf.float32))

    def responded(self, probabilities: tf.Tensor) -> tf.Tensor:
        """Returns the probabilities of codes (B, K) behind randomised response."""
        keep = self.noise.keep_probability
        other = (1 - keep) / (self.design.dimension - 1)
        return other + (keep - other) * probabilities

    def compile_backbone(self, jit_compile: bool) -> None:
        """Sets whether training computes the backbone under XLA.

        Masks and noise stay outside: XLA cannot draw them. It compiles once for each
        shape, so rows and widths are rounded up to few of them. Releases are computed
        without, whatever is set here.
        """
        self._compiled = None
        if jit_compile:
            self._compiled = tf.function(
                lambda inputs: self._pooled(inputs, True),
                jit_compile=True,
                autograph=False,
            )

    def _before_noise(self, ids: tf.Tensor, training: bool | None) -> tf.Tensor:
        rows = tf.shape(ids)[0]
        compiled = self._compiled if training else None
        if compiled is not None:
            ids = tf.pad(
                ids,
                [[0, -rows % _ROWS], [0, 0]],
                constant_values=self.tokenizer.pad_token_id,
            )
        ids, present = self._masked(ids)
        if compiled is None:
            x = self._pooled(
                self._packed(ids, present, short=bool(training)), bool(training)
            )
        else:
            inputs = self._packed(ids, present, short=True, multiple=_WIDTHS)
            x = compiled(inputs)[:rows]
        for layer in self.projection:
            x = layer(x, training=training)
        return x if self.bound is None else self.bound(x)

    def _pooled(self, inputs: dict[str, tf.Tensor], training: bool) -> tf.Tensor:
        outputs = self.backbone(inputs, training=training)
        return self.pooling({**outputs, "padding_mask": inputs["padding_mask"]})

    def certificate(
        self, lengths: tuple[int, int] | None = None
    ) -> LaplaceCertificate | None:
        """Returns what one release costs; see `ReleaseDesign.certificate`."""
        tail = 0.0
        if isinstance(self.noise, LaplaceNoise):
            tail = self.noise.tail_delta(self.design.dimension)
        return self.design.certificate(lengths, tail_delta=tail)

    def _projection(self) -> list[keras.layers.Layer]:
        design = self.design
        if design.hidden_units == 0:
            if design.dimension != self.backbone.hidden_dim:
                raise InputError(
                    f"Expected dimension {self.backbone.hidden_dim}, the backbone's "
                    f"width, without dense layers, received {design.dimension}. Give "
                    "hidden_units."
                )
            return []
        hidden = design.hidden_units or self.backbone.hidden_dim
        return [
            keras.layers.Dense(hidden, activation="relu", name="dense_1"),
            keras.layers.Dense(design.dimension, name="dense_2", dtype="float32"),
        ]

    def _mechanism(self) -> tuple[keras.layers.Layer | None, keras.layers.Layer | None]:
        design = self.design
        if design.scale is None:
            return None, None
        if design.scale == "code":
            noise = RandomizedResponseCode(
                design.dimension, design.epsilon, name="noise"
            )
            return None, noise
        if design.scale == "l1":
            noise = LaplaceNoise(
                design.noise_scale, domain="l1_ball", radius=design.radius, name="noise"
            )
            return L1Clip(design.radius, name="bound"), noise
        noise = LaplaceNoise(design.noise_scale, domain="unit_box", name="noise")
        return MinMaxScale(name="bound"), noise

    def _masked(self, ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        if not self.design.mask_rate:
            return ids, ids != self.tokenizer.pad_token_id
        if self.mask is None:
            self.mask = self._make_mask()
        return self.mask(ids)

    def _make_mask(self) -> RandomMask:
        # Not before the first call: a loaded tokenizer gets its vocabulary late.
        tokenizer = self.tokenizer
        return RandomMask(
            self.design.mask_rate,
            tokenizer.mask_token_id,
            continuation=self.word_pieces.continuation_ids,
            mode=self.design.mask_mode,
            unit=self.design.mask_unit,
            replacement=self.design.mask_replacement,
            pad_token_id=tokenizer.pad_token_id,
            name="mask",
        )

    def _packed(
        self,
        ids: tf.Tensor,
        present: tf.Tensor,
        *,
        short: bool,
        multiple: int = 1,
    ) -> dict[str, tf.Tensor]:
        """Puts [CLS] before and [SEP] behind the pieces that fit.

        In training rows are as wide as the longest one, or the next multiple that fits
        the window. A release is always as wide as the window: sums of another width
        round otherwise, and one person's text would move, a little, the vectors of all
        others in its batch.
        """
        tokenizer = self.tokenizer
        room = self.design.max_length - 2
        lengths = tf.minimum(tf.reduce_sum(tf.cast(present, tf.int32), axis=1), room)
        width = room
        if short:
            # A replica may have no row of the last batch.
            width = tf.maximum(tf.reduce_max(lengths), 0)
            width = tf.minimum(width + -(width + 2) % multiple, room)
        ids = ids[:, :width]
        behind = width - tf.shape(ids)[1] + 1
        ids = tf.pad(ids, [[0, 0], [1, behind]], constant_values=tokenizer.pad_token_id)
        place = tf.range(width + 2)[None]
        end = lengths[:, None] + 1
        ids = tf.where(place == 0, tokenizer.cls_token_id, ids)
        ids = tf.where(place == end, tokenizer.sep_token_id, ids)
        ids = tf.where(place > end, tokenizer.pad_token_id, ids)
        return {
            "token_ids": ids,
            "segment_ids": tf.zeros_like(ids),
            "padding_mask": tf.cast(place <= end, tf.int32),
        }

    def _build_all(self) -> None:
        width = self.backbone.hidden_dim
        for layer in self.projection:
            layer.build((None, width))
            width = layer.units
        for layer in (self.bound, self.noise):
            if layer is not None:
                layer.build((None, width))
        for layer in self.post:
            layer.build((None, width))
            width = layer.units
        self.built = True

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """Returns (B, output_dim)."""
        return (input_shape[0], self.output_dim)

    def compute_output_spec(
        self, ids: Any, training: bool | None = None
    ) -> keras.KerasTensor:
        """Returns the symbolic output."""
        return keras.KerasTensor((ids.shape[0], self.output_dim), "float32")

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, JSON-serialisable."""
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "backbone": serialize(self.backbone),
            "tokenizer": serialize(self.tokenizer),
            "design": dataclasses.asdict(self.design),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> PrivateEncoder:
        """Builds the encoder that `get_config` described."""
        deserialize = keras.saving.deserialize_keras_object
        backbone = deserialize(config.pop("backbone"))
        tokenizer = deserialize(config.pop("tokenizer"))
        return cls(backbone, tokenizer, **config)
