"""The generator: an LSTM language model over token ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfpriv._errors import InputError
from tfpriv._validation import integer, non_negative, positive
from tfpriv.seqgan import sampling


@keras.saving.register_keras_serializable(package="tfpriv")
class Generator(keras.Model):
    """An LSTM language model that samples, scores and is trained by SeqGAN.

    Sequences are int32 (batch, max_length): tokens, then `end_id` if it fits, then
    `pad_id`. With `end_id=None` every sequence has exactly `max_length` tokens and
    every id is a word, as in SeqGAN's synthetic-data experiment.

    Args:
        vocabulary_size: int V, special ids included.
        max_length: int T, tokens of a sampled sequence, the end token included.
        embedding_dim: int.
        units: int. Size of the LSTM's state.
        pad_id: int. Fills a row behind its end; not read when `end_id` is None.
        start_id: int. Input of the first step.
        end_id: int or None. Token that ends a sequence.
        forbidden_ids: ids that never occur: their probability is 0. None means
            pad and start, or none at all when `end_id` is None.
        dropout: float in [0, 1). On embeddings and states, in training only.
        initializer_stddev: float or None. Every weight starts as a normal of this
            deviation (SeqGAN's generator: 0.1, its oracle: 1); None takes Keras'
            defaults.
        seed: int or None. Of the initial weights.

    Call arguments:
        ids: int (batch, length). The sequences to score.
        training: bool.

    Returns (call):
        float32 (batch, length, V). Logits of each token given those before it.

    Raises:
        InputError: sizes below 1, or a special id outside the vocabulary.

    Examples:
        >>> generator = Generator(vocabulary_size=50, max_length=8, seed=0)
        >>> generator.sample(3, seed=1).shape
        (3, 8)

    References:
        Yu et al. 2017, "SeqGAN: Sequence Generative Adversarial Nets with Policy
        Gradient", arXiv:1609.05473, section 3.
    """

    def __init__(
        self,
        vocabulary_size: int,
        max_length: int,
        embedding_dim: int = 32,
        units: int = 32,
        *,
        pad_id: int = 0,
        start_id: int = 1,
        end_id: int | None = 2,
        forbidden_ids: Sequence[int] | None = None,
        dropout: float = 0.0,
        initializer_stddev: float | None = None,
        seed: int | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        # === Layers ===
        super().__init__(name=name, **kwargs)
        integer(
            vocabulary_size=vocabulary_size,
            max_length=max_length,
            embedding_dim=embedding_dim,
            units=units,
        )
        non_negative(dropout=dropout)
        if forbidden_ids is None:
            forbidden_ids = () if end_id is None else (pad_id, start_id)
        special = {"pad_id": pad_id, "start_id": start_id, "end_id": end_id}
        special |= {f"forbidden_ids[{i}]": x for i, x in enumerate(forbidden_ids)}
        for key, value in special.items():
            if value is not None and not 0 <= value < vocabulary_size:
                raise InputError(
                    f"Expected 0 <= {key} < vocabulary_size={vocabulary_size}, "
                    f"received {key}={value}."
                )
        if end_id is not None and end_id in forbidden_ids:
            raise InputError(f"Expected an end_id that may occur, received {end_id}.")
        init = _initializers(initializer_stddev, seed)
        self.embedding = keras.layers.Embedding(
            vocabulary_size,
            embedding_dim,
            embeddings_initializer=init["embedding"],
            dtype=self.dtype_policy,
            name="embedding",
        )
        self.cell = keras.layers.LSTMCell(
            units,
            kernel_initializer=init["kernel"],
            recurrent_initializer=init["recurrent"],
            bias_initializer=init["bias"],
            unit_forget_bias=initializer_stddev is None,
            dtype=self.dtype_policy,
            name="lstm",
        )
        self.head = keras.layers.Dense(
            vocabulary_size,
            kernel_initializer=init["head"],
            bias_initializer=init["head_bias"],
            dtype=self.dtype_policy,
            name="head",
        )
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.embedding.build((None, None))
        self.cell.build((None, embedding_dim))
        self.head.build((None, units))
        self.built = True

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.max_length = max_length
        self.embedding_dim = embedding_dim
        self.units = units
        self.pad_id = pad_id
        self.start_id = start_id
        self.end_id = end_id
        self.forbidden_ids = tuple(int(x) for x in forbidden_ids)
        self.dropout = dropout
        self.initializer_stddev = initializer_stddev
        self.seed = seed
        self._graphs: dict[str, Any] = {}

    def build(self, input_shape: Any = None) -> None:
        """Does nothing: weights exist from the start."""

    def compute_output_shape(self, input_shape: tuple) -> tuple:
        """(batch, length) -> (batch, length, V)."""
        return (*input_shape, self.vocabulary_size)

    # --- The network ---------------------------------------------------------

    def call(self, ids: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Logits, float32 (batch, length, V)."""
        hidden, _ = self.states(ids, training=training)
        hidden = self.dropout_layer(hidden, training=training)
        logits = tf.cast(self.head(hidden), tf.float32)
        return logits + self._mask(())

    def states(
        self, ids: tf.Tensor, training: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """LSTM states from which each token is drawn.

        Args:
            ids: int (batch, length).
            training: bool. Turns dropout on.

        Returns:
            hidden and carry, each (batch, length, units): at index t the state
            after start and the first t tokens.
        """
        ids = tf.convert_to_tensor(ids)
        length = int(ids.shape[1])
        start = tf.fill([tf.shape(ids)[0], 1], tf.cast(self.start_id, ids.dtype))
        inputs = self.embedding(tf.concat([start, ids[:, :-1]], axis=1))
        inputs = self.dropout_layer(inputs, training=training)
        inputs = tf.matmul(inputs, self._weight(self.cell.kernel))
        inputs += self._weight(self.cell.bias)
        recurrent = self._weight(self.cell.recurrent_kernel)
        state = self.initial_state(tf.shape(ids)[0])
        hidden, carry = [], []
        for t in range(length):
            gates = inputs[:, t] + tf.matmul(state[0], recurrent)
            state = _lstm_state(gates, state[1])
            hidden.append(state[0])
            carry.append(state[1])
        return tf.stack(hidden, axis=1), tf.stack(carry, axis=1)

    def initial_state(self, batch: int | tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The state before the start token: zeros (batch, units), twice."""
        zeros = tf.zeros([batch, self.units], self.compute_dtype)
        return zeros, zeros

    def step(
        self, tokens: tf.Tensor, hidden: tf.Tensor, carry: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """One token further: int (rows,) and two states (rows, units)."""
        inputs = tf.gather(self._weight(self.embedding.embeddings), tokens)
        gates = (
            tf.matmul(inputs, self._weight(self.cell.kernel))
            + tf.matmul(hidden, self._weight(self.cell.recurrent_kernel))
            + self._weight(self.cell.bias)
        )
        return _lstm_state(gates, carry)

    def _weight(self, variable: keras.Variable) -> tf.Tensor:
        return tf.cast(variable, self.compute_dtype)

    def _mask(self, suppress: Sequence[int]) -> tf.Tensor:
        mask = np.zeros(self.vocabulary_size, np.float32)
        mask[list({*self.forbidden_ids, *suppress})] = sampling.FORBIDDEN
        return tf.constant(mask)

    def drawing_head(
        self,
        temperature: tf.Tensor | float = 1.0,
        suppress: Sequence[int] = (),
        order: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Output layer for `sampling.draw_tokens`, at a temperature.

        Args:
            temperature: positive float; logits are divided by it.
            suppress: ids that are not drawn, beside `forbidden_ids`.
            order: int32 (V,), a permutation of the ids; what is drawn as i is then
                order[i].

        Returns:
            kernel float32 (units, V'), bias float32 (V',).
        """
        kernel = tf.cast(self.head.kernel, tf.float32) / temperature
        bias = tf.cast(self.head.bias, tf.float32) / temperature
        bias += self._mask(suppress)
        if order is not None:
            kernel, bias = tf.gather(kernel, order, axis=1), tf.gather(bias, order)
        return sampling.pad_to_blocks(kernel, bias)

    # --- Scoring -------------------------------------------------------------

    def token_mask(self, ids: tf.Tensor) -> tf.Tensor:
        """Which positions are scored: tokens and the end token, never a pad.

        Args:
            ids: int (batch, length).

        Returns:
            float32 (batch, length) of 0 and 1.
        """
        ids = tf.convert_to_tensor(ids)
        if self.end_id is None:
            return tf.ones(tf.shape(ids), tf.float32)
        ended = tf.cumsum(tf.cast(ids == self.end_id, tf.int32), axis=1, exclusive=True)
        return tf.cast((ended == 0) & (ids != self.pad_id), tf.float32)

    def token_log_probs(
        self,
        ids: tf.Tensor,
        temperature: tf.Tensor | float = 1.0,
        training: bool = False,
    ) -> tf.Tensor:
        """`log_probs`, to be called inside another graph or a gradient tape."""
        logits = self(ids, training=training) / temperature
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            tf.cast(ids, tf.int32), logits
        )
        return -losses * self.token_mask(ids)

    def log_probs(self, ids: Any, temperature: float = 1.0) -> np.ndarray:
        """Log probability of each token given those before it.

        Args:
            ids: int (batch, length).
            temperature: positive float.

        Returns:
            float32 (batch, length); 0 behind the end token.
        """
        positive(temperature=temperature)
        function = self._graph("log_probs", self.token_log_probs)
        temperature = tf.constant(temperature, tf.float32)
        parts = [
            function(tf.convert_to_tensor(part), temperature)[:count].numpy()
            for part, count in _chunks(self.checked_ids(ids), 256)
        ]
        return np.concatenate(parts)

    def nll(self, ids: Any, temperature: float = 1.0) -> float:
        """Mean negative log likelihood of a token, in nats.

        Of held-out sequences it is NLL_test; under an oracle, of a generator's
        samples, it is SeqGAN's NLL_oracle.

        Args:
            ids: int (batch, length).
            temperature: positive float.
        """
        ids = self.checked_ids(ids)
        scored = float(tf.reduce_sum(self.token_mask(ids)))
        total = float(self.log_probs(ids, temperature).astype(np.float64).sum())
        return -total / scored

    # --- Sampling ------------------------------------------------------------

    def sample(
        self,
        batch_size: int,
        *,
        temperature: float = 1.0,
        seed: int | None = None,
        prefix: Any = None,
        suppress: Sequence[int] = (),
        chunk: int = 512,
    ) -> np.ndarray:
        """Draws sequences, all steps in one graph.

        Args:
            batch_size: int. Sequences to draw.
            temperature: positive float; below 1 sharpens.
            seed: int, or None for entropy of the operating system. With it the
                result is the same on every call.
            prefix: int (batch_size, p) or None. Sequences to go on from.
            suppress: ids not to be drawn here (the unknown word, for example).
            chunk: int. Sequences drawn at a time, to bound the memory.

        Returns:
            int32 (batch_size, max_length).

        Raises:
            InputError: a size or temperature that is not positive, or a prefix of
                another batch size or of more than `max_length` tokens.
        """
        integer(batch_size=batch_size, chunk=chunk)
        positive(temperature=temperature)
        if prefix is None:
            prefix = np.zeros((batch_size, 0), np.int32)
        prefix = np.asarray(prefix, np.int32)
        if prefix.ndim != 2 or len(prefix) != batch_size:
            raise InputError(
                f"Expected a prefix of shape ({batch_size}, p), "
                f"received {prefix.shape}."
            )
        if prefix.shape[1] > self.max_length:
            raise InputError(
                f"Expected a prefix of at most max_length={self.max_length} tokens, "
                f"received {prefix.shape[1]}."
            )
        suppress = tuple(int(x) for x in suppress)
        function = self._graph(f"sample{suppress}", self._sample, suppress)
        temperature = tf.constant(temperature, tf.float32)
        parts = [
            function(
                tf.convert_to_tensor(part),
                temperature,
                sampling.fresh_seed(seed, index),
            )[:count].numpy()
            for index, (part, count) in enumerate(_chunks(prefix, chunk))
        ]
        return np.concatenate(parts)

    def _sample(
        self,
        prefix: tf.Tensor,
        temperature: tf.Tensor,
        seed: tf.Tensor,
        suppress: tuple[int, ...],
    ) -> tf.Tensor:
        rows, given = prefix.shape
        prefix = tf.pad(prefix, [[0, 0], [0, self.max_length - given]])
        kernel, bias = self.drawing_head(temperature, suppress)
        uniforms = sampling.uniform([self.max_length, rows, 1, 2], seed)

        def body(
            t: Any, tokens: Any, hidden: Any, carry: Any, done: Any, output: Any
        ) -> tuple:
            hidden, carry = self.step(tokens, hidden, carry)
            drawn = sampling.draw_tokens(
                tf.cast(hidden, tf.float32),
                uniforms[t],
                kernel,
                bias,
                self.vocabulary_size,
            )[:, 0]
            tokens = tf.where(t < given, prefix[:, t], drawn)
            if self.end_id is not None:
                tokens = tf.where(done, self.pad_id, tokens)
                done |= tokens == self.end_id
            return t + 1, tokens, hidden, carry, done, output.write(t, tokens)

        loop = (
            tf.constant(0),
            tf.fill([rows], self.start_id),
            *self.initial_state(rows),
            tf.zeros([rows], tf.bool),
            tf.TensorArray(tf.int32, self.max_length, element_shape=[rows]),
        )
        result = tf.while_loop(
            lambda t, *_: t < self.max_length, body, loop, parallel_iterations=1
        )
        return tf.transpose(result[-1].stack())

    # --- Book-keeping --------------------------------------------------------

    def _graph(self, key: str, function: Any, *fixed: Any) -> Any:
        if key not in self._graphs:
            self._graphs[key] = tf.function(
                lambda *args: function(*args, *fixed), autograph=False
            )
        return self._graphs[key]

    def checked_ids(self, ids: Any) -> np.ndarray:
        """`ids` as int32 (batch, length), batch >= 1.

        Raises:
            InputError: another shape or type, or an id outside the vocabulary.
        """
        ids = np.asarray(ids)
        if ids.ndim != 2 or not np.issubdtype(ids.dtype, np.integer) or not len(ids):
            raise InputError(
                "Expected token ids as integers of shape (batch, length), received "
                f"{ids.dtype} of shape {ids.shape}."
            )
        if ids.min() < 0 or ids.max() >= self.vocabulary_size:
            raise InputError(
                f"Expected ids from 0 to {self.vocabulary_size - 1}, received "
                f"{ids.min()} to {ids.max()}."
            )
        return ids.astype(np.int32)

    def get_config(self) -> dict[str, Any]:
        """Every argument of the constructor."""
        config = super().get_config()
        config.update(
            vocabulary_size=self.vocabulary_size,
            max_length=self.max_length,
            embedding_dim=self.embedding_dim,
            units=self.units,
            pad_id=self.pad_id,
            start_id=self.start_id,
            end_id=self.end_id,
            forbidden_ids=list(self.forbidden_ids),
            dropout=self.dropout,
            initializer_stddev=self.initializer_stddev,
            seed=self.seed,
        )
        return config


def _lstm_state(gates: tf.Tensor, carry: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Hidden and carry from gate pre-activations in Keras' order (i, f, c, o)."""
    i, f, c, o = tf.split(gates, 4, axis=-1)
    carry = tf.sigmoid(f) * carry + tf.sigmoid(i) * tf.tanh(c)
    return tf.sigmoid(o) * tf.tanh(carry), carry


def _initializers(stddev: float | None, seed: int | None) -> dict[str, Any]:
    """One initializer a weight, each with a seed of its own."""
    names = ("embedding", "kernel", "recurrent", "bias", "head", "head_bias")
    if seed is None:
        seeds = [None] * len(names)
    else:
        states = np.random.SeedSequence(seed).generate_state(len(names))
        seeds = [int(x) % 2**31 for x in states]
    if stddev is not None:
        positive(initializer_stddev=stddev)
        return {
            name: keras.initializers.RandomNormal(stddev=stddev, seed=s)
            for name, s in zip(names, seeds, strict=True)
        }
    seeded = dict(zip(names, seeds, strict=True))
    return {
        "embedding": keras.initializers.RandomUniform(seed=seeded["embedding"]),
        "kernel": keras.initializers.GlorotUniform(seed=seeded["kernel"]),
        "recurrent": keras.initializers.Orthogonal(seed=seeded["recurrent"]),
        "bias": "zeros",
        "head": keras.initializers.GlorotUniform(seed=seeded["head"]),
        "head_bias": "zeros",
    }


def _chunks(rows: np.ndarray, size: int) -> Iterator[tuple[np.ndarray, int]]:
    """Parts of one shape (so that one graph serves all) and their true lengths."""
    if len(rows) <= size:
        yield rows, len(rows)
        return
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        count = len(part)
        if count < size:
            part = np.concatenate([part, np.repeat(part[-1:], size - count, axis=0)])
        yield part, count
