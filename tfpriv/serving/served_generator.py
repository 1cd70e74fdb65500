"""The graph of a DP-SeqGAN: how many texts of which label, and the texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv.seqgan import sampling
from tfpriv.serving.text_writer import TextWriter
from tfpriv.serving.tilted_graph import LONGEST, TiltedGraph, fresh_uniforms
from tfpriv.text.vocabulary import END, PAD, UNK

_MOST = 1024
_MAX_TRIES = 8
_SPECS = [
    tf.TensorSpec([], tf.int32, name="count"),
    tf.TensorSpec([], tf.string, name="label"),
    tf.TensorSpec([], tf.float32, name="temperature"),
]


class ServedGenerator:
    """The signature `generate`, which is `serving_default` too.

    Inputs: `count`, int32, 1 to 1,024; `label`, string, one of the model's; and
    `temperature`, float32 above 0: 1 draws as the model does, less is more of the
    same. Output: `text`, string (count,). Anything else is refused with an error that
    says what was expected. Drawing costs nothing, however often it is done.

    Args:
        model: a fitted `DPSeqGAN`.

    Raises:
        InputError: it is not fitted.
    """

    def __init__(self, model: Any) -> None:
        method = model.method
        if method is None:
            raise InputError("Expected a fitted DPSeqGAN, received one that is not.")
        self.label_names = tuple(method.labels)
        self.weights: list[tf.Variable] = []
        self._width = LONGEST
        if model.mode == "guaranteed":
            vocabulary = method.prior.vocabulary
            drawn = [self._guaranteed(method, i) for i in range(len(method.labels))]
        else:
            vocabulary = method.vocabulary
            same = np.arange(len(vocabulary))
            drawn = [self._network(g, same) for g in method.generators]
        self._draw = drawn
        self._writer = TextWriter(vocabulary.tokens)

    def signatures(self) -> dict[str, Any]:
        """Returns name -> tf.function."""
        generate = tf.function(self._generate, input_signature=_SPECS, autograph=False)
        return {"generate": generate, "serving_default": generate}

    def examples(self, texts: Sequence[str]) -> dict[str, dict[str, tf.Tensor]]:
        """Returns inputs for each signature, for as many texts as are given."""
        inputs = {
            "count": tf.constant(len(texts)),
            "label": tf.constant(self.label_names[len(texts) % len(self.label_names)]),
            "temperature": tf.constant(1.0),
        }
        return dict.fromkeys(("generate", "serving_default"), inputs)

    def _generate(
        self, count: tf.Tensor, label: tf.Tensor, temperature: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        names = tf.constant(self.label_names)
        same = tf.cast(tf.equal(names, label), tf.int32)
        checks = [
            tf.debugging.Assert(
                tf.reduce_any(same > 0),
                [f"Expected a label of {', '.join(self.label_names)}."],
            ),
            tf.debugging.Assert(
                (count >= 1) & (count <= _MOST),
                [f"Expected 1 <= count <= {_MOST}, received", count],
            ),
            tf.debugging.Assert(
                (temperature > 0) & tf.math.is_finite(temperature),
                ["Expected a temperature > 0, received", temperature],
            ),
        ]
        with tf.control_dependencies(checks):
            number = tf.argmax(same, output_type=tf.int32)
        ids, length = tf.switch_case(
            number, [lambda draw=draw: draw(count, temperature) for draw in self._draw]
        )
        # Networks of different lengths have no common width that a graph would know.
        ids = tf.pad(ids, [[0, 0], [0, self._width - tf.shape(ids)[1]]])
        ids = tf.ensure_shape(ids, [None, self._width])
        return {"text": self._writer.write(ids, length)}

    def _guaranteed(self, method: Any, number: int) -> Any:
        fitted = method.classes[number]
        if fitted.chosen == "adversarial":
            words = fitted.gan.words.tokens
            large = np.concatenate([np.arange(UNK + 1), words])
            # Its texts are filtered like those of the seed corpus.
            accepts = TiltedGraph(method.seed_model, number).accepts
            return self._network(fitted.gan.generator, large, accepts)
        graph = TiltedGraph(method.seed_model, number)

        def draw(count: tf.Tensor, temperature: tf.Tensor) -> tuple:
            ids = graph.sample(count, temperature)
            return ids, tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=1)

        return draw

    def _network(self, generator: Any, large: np.ndarray, accepts: Any = None) -> Any:
        """Draws from an LSTM; `large` turns its ids into those of the vocabulary."""
        self.weights += [weight.value for weight in generator.weights]
        self._width = max(self._width, generator.max_length)

        def draw(count: tf.Tensor, temperature: tf.Tensor) -> tuple:
            def again(tries: Any, ids: Any, good: Any) -> tuple:
                drawn = _words(_sequences(generator, count, temperature), large)
                ids = tf.where(good[:, None], ids, drawn)
                good = ids[:, 0] != PAD
                return tries + 1, ids, good if accepts is None else good & accepts(ids)

            shape = [count, generator.max_length]
            start = (0, tf.fill(shape, PAD), tf.zeros([count], tf.bool))
            _, ids, _ = tf.while_loop(
                lambda tries, _, good: (tries < _MAX_TRIES) & ~tf.reduce_all(good),
                again,
                start,
                parallel_iterations=1,
            )
            ids = tf.ensure_shape(ids, [None, generator.max_length])
            return ids, tf.reduce_sum(tf.cast(ids != PAD, tf.int32), axis=1)

        return draw


def _sequences(generator: Any, count: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
    """As `Generator.sample`, int32 (count, max_length), from bits that are fresh."""
    kernel, bias = generator.drawing_head(temperature)
    uniforms = fresh_uniforms([generator.max_length, count, 1, 2])
    uniforms = tf.cast(uniforms, tf.float32)
    # Of what float32 rounds up to 1.
    uniforms = tf.minimum(uniforms, np.nextafter(np.float32(1), np.float32(0)))

    def step(t: Any, tokens: Any, hidden: Any, carry: Any, done: Any, rows: Any):
        hidden, carry = generator.step(tokens, hidden, carry)
        drawn = sampling.draw_tokens(
            tf.cast(hidden, tf.float32),
            tf.ensure_shape(uniforms[t], [None, 1, 2]),
            kernel,
            bias,
            generator.vocabulary_size,
        )[:, 0]
        if generator.end_id is not None:
            drawn = tf.where(done, generator.pad_id, drawn)
            done |= drawn == generator.end_id
        return t + 1, drawn, hidden, carry, done, rows.write(t, drawn)

    start = (
        0,
        tf.fill([count], generator.start_id),
        *generator.initial_state(count),
        tf.zeros([count], tf.bool),
        tf.TensorArray(tf.int32, generator.max_length, element_shape=[None]),
    )
    result = tf.while_loop(
        lambda t, *_: t < generator.max_length, step, start, parallel_iterations=1
    )
    return tf.transpose(result[-1].stack())


def _words(ids: tf.Tensor, large: np.ndarray) -> tf.Tensor:
    """Words up to the end, in ids of the vocabulary, then PAD."""
    stops = tf.cast((ids == END) | (ids == PAD), tf.int32)
    kept = (tf.cumsum(stops, axis=1) == 0) & (ids > UNK)
    order = tf.argsort(tf.cast(~kept, tf.int32), axis=1, stable=True)
    ids = tf.gather(tf.where(kept, ids, PAD), order, batch_dims=1)
    return tf.gather(large.astype(np.int32), ids)
