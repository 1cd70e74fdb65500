"""How a small network is trained to classify texts, the same for each of them."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Self

import keras
import numpy as np
import tensorflow as tf

from tfpriv._validation import integer, non_negative, positive
from tfpriv.datasets import TextDataset
from tfpriv.evaluation._labels import accuracy, require_labelled
from tfpriv.text import Vocabulary
from tfpriv.text.vocabulary import UNK

_POOL = 16  # batches of texts that are alike in length are cut out of a pool
_PREDICT_BATCH = 256


class NetworkClassifier(abc.ABC):
    """A Keras network on token ids, with its vocabulary from its training texts.

    Every training set gets the same number of gradient steps, whatever its size, so
    that a larger synthetic set has no longer training for an advantage; 400 steps of
    32 are about 12 passes over 1,000 texts. A token becomes UNK with probability
    `word_dropout` in training: otherwise UNK would never be seen.

    Args:
        steps: int. Gradient steps of Adam.
        batch_size: int. Texts a step.
        learning_rate: float. Of the first step; it falls to 0 in a straight line, so
            that the last steps settle instead of adding noise to the comparison.
        max_length: int. Tokens a text, longer ones are cut.
        min_count: int. Tokens seen less often in training are UNK.
        word_dropout: float in [0, 1).
        seed: int. Of the weights, the order of texts and all dropout.

    Attributes:
        curve_: list of float, the validation accuracy after each pass over the
            training texts; empty without `validation`.
    """

    def __init__(
        self,
        *,
        steps: int = 400,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        max_length: int = 40,
        min_count: int = 2,
        word_dropout: float = 0.2,
        seed: int = 0,
    ) -> None:
        integer(steps=steps, batch_size=batch_size, min_count=min_count)
        integer(max_length=max_length)
        positive(learning_rate=learning_rate)
        non_negative(word_dropout=word_dropout)
        integer(0, seed=seed)
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_length = max_length
        self.min_count = min_count
        self.word_dropout = word_dropout
        self.seed = seed
        self.curve_: list[float] = []

    @abc.abstractmethod
    def build(self, vocabulary_size: int, classes: int) -> keras.Model:
        """Returns a network from int32 ids (batch, length) to logits (batch, classes).

        Initial weights and dropout must take their randomness from `self.seed`, and
        more padding behind the texts must not change the logits.
        """

    def fit(self, train: TextDataset, validation: TextDataset | None = None) -> Self:
        """Trains a new network on labelled texts.

        Args:
            train: the training texts.
            validation: texts to score after each pass; nothing is chosen by them.

        Raises:
            InputError: there are no texts or no labels.
        """
        require_labelled(train, "train")
        self.vocabulary_ = Vocabulary.from_texts(train.texts, min_count=self.min_count)
        self.label_names_ = train.label_names
        self.model_ = self.build(len(self.vocabulary_), len(self.label_names_))
        self._predict = tf.function(
            lambda ids: tf.argmax(self.model_(ids, training=False), -1),
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
        )
        rows = self.vocabulary_.encode(train.texts, self.max_length)
        number = {name: i for i, name in enumerate(self.label_names_)}
        targets = np.array([number[label] for label in train.labels])
        train_steps = self._training_loop(rows, targets)
        order = self._order((rows != 0).sum(1))
        ends = [self.steps]
        if validation is not None:
            passes = np.arange(1, self.steps * self.batch_size // len(train) + 1)
            marks = passes * len(train) // self.batch_size
            ends = sorted({int(mark) for mark in marks if mark > 0} | {self.steps})
        self.curve_ = []
        begin = 0
        for end in ends:
            train_steps(tf.constant(order[begin:end], tf.int32), tf.constant(begin))
            begin = end
            if validation is not None:
                self.curve_.append(self.score(validation))
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Returns a label for each text."""
        rows = self.vocabulary_.encode(list(texts), self.max_length)
        found: list[int] = []
        for begin in range(0, len(rows), _PREDICT_BATCH):
            batch = rows[begin : begin + _PREDICT_BATCH]
            found += self._predict(batch).numpy().tolist()
        return [self.label_names_[i] for i in found]

    def score(self, test: TextDataset) -> float:
        """Returns the share of texts whose label is predicted."""
        require_labelled(test, "test")
        return accuracy(self.predict(test.texts), test.labels)

    def _order(self, lengths: np.ndarray) -> np.ndarray:
        """Returns which texts each step reads, int of shape (steps, batch_size).

        Passes over the texts in random order follow one another. What would make a
        few batches is sorted by length first, so that a batch of short texts is a
        short one: that halves the time.
        """
        draw = np.random.default_rng(self.seed)
        needed = self.steps * self.batch_size
        passes = -(-needed // len(lengths))
        stream = np.concatenate([draw.permutation(len(lengths)) for _ in range(passes)])
        batches = []
        for begin in range(0, needed, _POOL * self.batch_size):
            pool = stream[begin : min(needed, begin + _POOL * self.batch_size)]
            pool = pool[np.argsort(lengths[pool], kind="stable")]
            batches.append(draw.permutation(pool.reshape(-1, self.batch_size)))
        return np.concatenate(batches)

    def _training_loop(
        self, rows: np.ndarray, targets: np.ndarray
    ) -> Callable[[tf.Tensor, tf.Tensor], None]:
        model, variables = self.model_, self.model_.trainable_variables
        rate = keras.optimizers.schedules.PolynomialDecay(
            self.learning_rate, self.steps, end_learning_rate=0.0
        )
        optimizer = keras.optimizers.Adam(rate)
        optimizer.build(variables)
        ids = tf.constant(rows)
        lengths = tf.constant((rows != 0).sum(1), tf.int32)
        targets = tf.constant(targets, tf.int32)

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, self.batch_size], tf.int32),
                tf.TensorSpec([], tf.int32),
            ]
        )
        def train_steps(order: tf.Tensor, first: tf.Tensor) -> None:
            for step in tf.range(tf.shape(order)[0]):
                chosen = order[step]
                longest = tf.reduce_max(tf.gather(lengths, chosen))
                batch = tf.gather(ids, chosen)[:, :longest]
                noise = tf.random.stateless_uniform(
                    tf.shape(batch), seed=tf.stack([self.seed, first + step])
                )
                hidden = (noise < self.word_dropout) & (batch > UNK)
                batch = tf.where(hidden, UNK, batch)
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(
                        tf.nn.sparse_softmax_cross_entropy_with_logits(
                            tf.gather(targets, chosen), model(batch, training=True)
                        )
                    )
                optimizer.apply(tape.gradient(loss, variables), variables)

        return train_steps
