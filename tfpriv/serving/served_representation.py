"""The graphs of a representation model, from strings to tensors of a fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

_TEXTS = tf.TensorSpec([None], tf.string, name="text")
_IDS = tf.TensorSpec([None, None], tf.int32, name="ids")
_EXAMPLES = tf.TensorSpec([None], tf.string, name="examples")


class ServedRepresentation:
    """The signatures of a `PrivateTextModel`, or of one of its two parts.

    | signature | input | outputs | whole | client | server |
    |---|---|---|---|---|---|
    | encode | text (B,) | representation (B, d) | x | x | |
    | encode_ids | ids (B, T) | representation (B, d) | x | x | |
    | classify | representation (B, d) | probabilities (B, C), label (B,) | x | | x |
    | tf_example | examples (B,) | probabilities, label | x | | |
    | serving_default | as tf_example from text, encode, classify | | x | x | x |

    Each call of a signature that reads texts is one release of each text. What a part
    does not need is not saved: neither the adversary nor optimizers nor, in the
    server's part, any weight of the encoder.

    Args:
        model: a `PrivateTextModel`.
        label_names: of the task's classes, in order.
        part: "whole", "client" (texts to representations) or "server"
            (representations to labels).
    """

    def __init__(
        self, model: Any, label_names: Sequence[str], part: str = "whole"
    ) -> None:
        self._model = model
        self._labels = list(label_names)
        self.part = part
        # One graph of each step, which all signatures share.
        self._release = tf.function(
            lambda ids: model.encoder(ids, training=False),
            input_signature=[_IDS],
            autograph=False,
        )
        self._vectors = tf.TensorSpec(
            [None, model.encoder.output_dim], tf.float32, name="representation"
        )

    @property
    def weights(self) -> list[tf.Variable]:
        """What the part needs, and all that is saved of the model."""
        # Not Keras' variables: those have the state of seed generators.
        read = [] if self.part == "server" else self._model.encoder.weights
        told = [] if self.part == "client" else self._model.task_head.weights
        return [weight.value for weight in (*read, *told)]

    def signatures(self) -> dict[str, Any]:
        """Returns name -> tf.function, `serving_default` among them."""
        made = {
            "encode": (self._encode, _TEXTS),
            "encode_ids": (self._encode_ids, _IDS),
            "classify": (self._classify, self._vectors),
            "tf_example": (self._tf_example, _EXAMPLES),
        }
        default = {
            "whole": (self._predict, _TEXTS),
            "client": made["encode"],
            "server": made["classify"],
        }
        names = {
            "whole": tuple(made),
            "client": ("encode", "encode_ids"),
            "server": ("classify",),
        }
        chosen = {name: made[name] for name in names[self.part]}
        chosen["serving_default"] = default[self.part]
        return {
            name: tf.function(function, input_signature=[spec], autograph=False)
            for name, (function, spec) in chosen.items()
        }

    def examples(self, texts: Sequence[str]) -> dict[str, dict[str, tf.Tensor]]:
        """Returns inputs for each signature made of some texts, for warming up."""
        strings = tf.constant(list(texts), tf.string)
        vectors = tf.zeros([len(texts), self._vectors.shape[1]])
        serialized = [_example(text) for text in texts]
        made = {
            "encode": {"text": strings},
            "encode_ids": {"ids": self._model.encoder.word_pieces(strings)},
            "classify": {"representation": vectors},
            "tf_example": {"examples": tf.constant(serialized)},
        }
        default = {"whole": "encode", "client": "encode", "server": "classify"}
        made["serving_default"] = made[default[self.part]]
        return {name: made[name] for name in self.signatures()}

    def _encode(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"representation": self._released(text)}

    def _encode_ids(self, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"representation": self._release(self._admitted(ids))}

    def _classify(self, representation: tf.Tensor) -> dict[str, tf.Tensor]:
        logits = self._model.task_head(representation, training=False)
        best = tf.argmax(logits, axis=-1)
        return {
            "probabilities": tf.nn.softmax(tf.cast(logits, tf.float32)),
            "label": tf.gather(tf.constant(self._labels), best),
        }

    def _predict(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        return self._classify(self._released(text))

    def _tf_example(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        features = {"text": tf.io.FixedLenFeature([], tf.string)}
        return self._predict(tf.io.parse_example(examples, features)["text"])

    def pieces(self, text: tf.Tensor) -> tf.Tensor:
        """Returns the word pieces of texts, int32 (B, T), as the model reads them."""
        text = tf.ensure_shape(text, [None])
        # One text of other bytes must not fail the batch that it shares with others.
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        return self._model.encoder.word_pieces(text)

    def _released(self, text: tf.Tensor) -> tf.Tensor:
        return self._release(self.pieces(text))

    def _admitted(self, ids: tf.Tensor) -> tf.Tensor:
        """Unknown ids as [UNK], and no more words than the certificate counts on."""
        ids = tf.ensure_shape(ids, [None, None])
        pieces = self._model.encoder.word_pieces
        tokenizer = pieces.tokenizer
        size = tokenizer.vocabulary_size()
        unknown = tokenizer.token_to_id(tokenizer.oov_token)
        ids = tf.where((ids >= 0) & (ids < size), ids, unknown)
        continues = np.zeros(size, bool)
        continues[pieces.continuation_ids] = True
        starts = (ids != tokenizer.pad_token_id) & ~tf.gather(continues, ids)
        words = tf.cumsum(tf.cast(starts, tf.int32), axis=1)
        return tf.where(words <= pieces.max_words, ids, tokenizer.pad_token_id)


def _example(text: str) -> bytes:
    value = tf.train.BytesList(value=[text.encode()])
    feature = {"text": tf.train.Feature(bytes_list=value)}
    return tf.train.Example(
        features=tf.train.Features(feature=feature)
    ).SerializeToString()
