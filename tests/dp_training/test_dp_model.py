"""DP `fit` on models of four kinds, what it refuses, and its budget."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tests.dp_training import models
from tfpriv._errors import BudgetExceeded, InputError
from tfpriv.dp_training import DPModel

RECORDS = 40
CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def logistic() -> DPModel:
    private = DPModel(models.logistic(), epsilon=8.0, delta=1e-5)
    private.compile("adam", CROSS_ENTROPY)
    return private


def test_a_backup_that_hides_what_a_killed_run_spent_is_refused(tmp_path):
    private = logistic()
    backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
    with pytest.raises(InputError, match="BackupAndRestore"):
        private.fit(
            np.zeros((RECORDS, 3), np.float32),
            np.zeros(RECORDS, np.int64),
            callbacks=[backup],
            verbose=0,
        )
    assert private.plan is None
    assert not (tmp_path / "backup").exists()


def test_loaded_weights_have_no_guarantee(tmp_path):
    private, other = logistic(), logistic()
    for model in (private, other):
        model(np.zeros((1, 3), np.float32))
    assert private.privacy_statement().epsilon == 0
    private.save_weights(tmp_path / "a.weights.h5")
    other.load_weights(tmp_path / "a.weights.h5")
    assert np.isinf(other.privacy_statement().epsilon)


def ids(length: int) -> np.ndarray:
    generator = np.random.default_rng(0)
    return generator.integers(1, 9, (RECORDS, length)).astype(np.int32)


def lstm_classifier() -> keras.Model:
    tokens = keras.Input((5,), dtype="int32")
    x = layers.LSTM(3, unroll=True)(layers.Embedding(12, 4)(tokens))
    return keras.Model(tokens, layers.Dense(2)(x))


def two_inputs() -> keras.Model:
    tokens = keras.Input((5,), dtype="int32", name="tokens")
    numbers = keras.Input((3,), name="numbers")
    x = layers.GlobalAveragePooling1D()(layers.Embedding(12, 4)(tokens))
    x = layers.Concatenate()([x, layers.Dense(4, activation="relu")(numbers)])
    return keras.Model({"tokens": tokens, "numbers": numbers}, layers.Dense(2)(x))


def bert_classifier() -> keras.Model:
    import keras_nlp

    backbone = keras_nlp.models.BertBackbone(
        vocabulary_size=12,
        num_layers=1,
        num_heads=2,
        hidden_dim=4,
        intermediate_dim=8,
        max_sequence_length=5,
    )
    return keras_nlp.models.BertTextClassifier(
        backbone=backbone, num_classes=2, preprocessor=None
    )


def bert_inputs() -> dict[str, np.ndarray]:
    tokens = ids(5)
    return {
        "token_ids": tokens,
        "segment_ids": np.zeros_like(tokens),
        "padding_mask": np.ones_like(tokens, bool),
    }


KINDS = {
    "TextCNN": (lambda: models.text_cnn(length=5), lambda: ids(5)),
    "LSTM": (lstm_classifier, lambda: ids(5)),
    "two inputs": (
        two_inputs,
        lambda: {"tokens": ids(5), "numbers": np.ones((RECORDS, 3), np.float32)},
    ),
    "BERT": (bert_classifier, bert_inputs),
}


def first_input(x) -> np.ndarray:
    return x if isinstance(x, np.ndarray) else next(iter(x.values()))


def private(model: keras.Model, **settings) -> DPModel:
    return DPModel(model, **{"epsilon": 8.0, "delta": 1e-3, **settings})


@pytest.mark.parametrize("kind", KINDS)
def test_fit_trains_within_its_budget(kind, capsys):
    make, data = KINDS[kind]
    model, x = make(), data()
    y = np.random.default_rng(1).integers(0, 2, RECORDS)
    ours = private(model)
    ours.compile(keras.optimizers.Adam(0.01), CROSS_ENTROPY, metrics=["accuracy"])
    before = [np.array(v) for v in model.trainable_variables]
    history = ours.fit(x, y, batch_size=20, epochs=2, validation_data=(x, y), verbose=2)
    assert "epsilon" in capsys.readouterr().out.splitlines()[0]
    assert len(history.history["noised_gradient_norm"]) == 2
    assert set(history.history) >= {"val_loss", "val_accuracy"}
    after = model.trainable_variables
    assert all(np.any(a != b) for a, b in zip(before, after, strict=True))
    assert ours.predict(x, verbose=0).shape == (RECORDS, 2)
    statement = ours.privacy_statement()
    assert 7.9 < statement.epsilon <= 8.0
    assert ours.plan.steps == 4


@pytest.mark.slow
def test_it_learns():
    x = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    y = (x.sum(axis=1) > 0).astype(np.int32)
    ours = private(models.logistic(), epsilon=3.0, delta=1e-4)
    ours.compile(keras.optimizers.Adam(0.1), CROSS_ENTROPY, metrics=["accuracy"])
    ours.fit(x, y, batch_size=200, epochs=10, verbose=0)
    assert ours.evaluate(x, y, verbose=0, return_dict=True)["accuracy"] > 0.85


@pytest.mark.slow
def test_callbacks_set_the_learning_rate_and_stop():
    rates = []

    class Watch(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            adam = self.model._trainer.optimizer
            rates.append(round(float(adam.learning_rate), 4))

        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = epoch == 1

    x, y = np.zeros((20, 3), np.float32), np.zeros(20, np.int32)
    ours = private(models.logistic())
    ours.compile("adam", CROSS_ENTROPY)
    schedule = keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 / (1 + epoch))
    ours.fit(x, y, batch_size=10, epochs=5, verbose=0, callbacks=[schedule, Watch()])
    assert rates == [0.1, 0.1, 0.05, 0.05]
    # What was planned is paid, not what was used.
    assert ours.privacy_statement().reads[0].event == ours.plan.event()


# --- Refusals ---------------------------------------------------------------------


class CentredOnTheBatch(layers.Layer):
    def call(self, x):
        return x - tf.reduce_mean(x, axis=0, keepdims=True)


class Remembers(layers.Layer):
    def build(self, shape):
        self.seen = self.add_weight(shape=(3,), initializer="zeros", trainable=False)

    def call(self, x):
        self.seen.assign(self.seen + tf.reduce_sum(x, axis=0))
        return x


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__(name="pairs")
        self.centred, self.head = CentredOnTheBatch(), layers.Dense(2)

    def call(self, x):
        return self.head(self.centred(x))


def chain(*parts: layers.Layer) -> keras.Model:
    return keras.Sequential([keras.Input((3,)), *parts, layers.Dense(2)])


def functional(part: layers.Layer) -> keras.Model:
    x = keras.Input((3,))
    return keras.Model(x, layers.Dense(2)(part(layers.Dense(3)(x))))


def stateful() -> keras.Model:
    x = keras.Input((4, 3), batch_size=20)
    return keras.Model(x, layers.LSTM(2, stateful=True, name="memory")(x))


def try_to_fit(model, loss=CROSS_ENTROPY, shape=(20, 3)) -> None:
    ours = private(model)
    ours.compile("adam", loss)
    ours.fit(
        np.ones(shape, np.float32), np.zeros(20, np.int32), batch_size=10, verbose=0
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: chain(layers.BatchNormalization(name="norm")), "'norm'"),
        (stateful, "'memory'"),
        (lambda: functional(CentredOnTheBatch(name="centred")), "'centred'"),
        (lambda: chain(CentredOnTheBatch(name="centred")), "'centred'"),
        (Subclassed, "'pairs'"),
        (lambda: chain(Remembers(name="memory")), "memory"),
    ],
)
def test_a_model_that_mixes_examples_is_refused_by_name(make, words):
    with pytest.raises(InputError, match=words):
        try_to_fit(make())


def of_pairs(y_true, y_pred):
    losses = keras.losses.sparse_categorical_crossentropy(y_true, y_pred, True)
    return losses * tf.reduce_mean(y_pred)


def of_the_batch(y_true, y_pred):
    return tf.reduce_mean(tf.square(y_pred))


@pytest.mark.parametrize(
    ("loss", "words"), [(of_pairs, "other examples"), (of_the_batch, "each example")]
)
def test_a_loss_across_examples_is_refused(loss, words):
    with pytest.raises(InputError, match=words):
        try_to_fit(models.logistic(), loss)


def test_layers_that_treat_every_example_alone_are_taken():
    frozen = layers.BatchNormalization(trainable=False)
    try_to_fit(chain(layers.LayerNormalization(), layers.Dropout(0.5), frozen))


@pytest.mark.parametrize(
    "settings",
    [{"epsilon": 0.0}, {"epsilon": float("nan")}, {"delta": 2.0}, {"l2_norm_clip": -1}],
)
def test_numbers_out_of_range_are_refused(settings):
    with pytest.raises(InputError):
        private(models.logistic(), **settings)


@pytest.mark.parametrize("optimizer", ["sgd", keras.optimizers.AdamW()])
def test_other_optimizers_are_refused(optimizer):
    with pytest.raises(InputError, match="Adam"):
        private(models.logistic()).compile(optimizer, CROSS_ENTROPY)


# --- Budget and noise -------------------------------------------------------------


def check_budget_and_noise(kind: type[DPModel]) -> None:
    """What is stated is what was drawn, and it can be spent once."""
    dimension, records = 400, 100
    model = models.linear(dimension)
    ours = kind(model, epsilon=1.0, delta=1e-3)
    ours.compile(keras.optimizers.Adam(1e-6), lambda y, p: 0.0 * p[:, 0])
    x, y = np.ones((records, dimension), np.float32), np.zeros(records, np.float32)
    history = ours.fit(x, y, batch_size=50, epochs=20, verbose=0)
    plan = ours.plan
    assert (plan.sampling, plan.steps, plan.sampling_rate) == ("poisson", 40, 0.5)
    stated = ours.privacy_statement().epsilon
    assert stated == plan.epsilon(1e-3) <= 1.0, "another epsilon is stated"
    # The gradients are 0: all that moves is noise, over the expected size.
    norms = np.array(history.history["noised_gradient_norm"])
    expected = plan.noise_multiplier * np.sqrt(dimension + 1) / 50
    off = np.abs(norms / expected - 1).max()
    assert off < 6 / np.sqrt(2 * dimension) + 2**-8, "the noise has another size"
    assert len(set(norms)) == len(norms)
    with pytest.raises(BudgetExceeded):
        ours.fit(x, y, verbose=0)


def test_budget_and_noise():
    check_budget_and_noise(DPModel)


class TwoThirdsOfTheNoise(DPModel):
    def _make_trainer(self, plan, arrays):
        trainer = super()._make_trainer(plan, arrays)
        trainer.optimizer.noise_multiplier *= 2 / 3
        return trainer


class SpentTwice(DPModel):
    def fit(self, *args, **kwargs):
        self.plan = None
        return super().fit(*args, **kwargs)


class HalfTheStepsStated(DPModel):
    def privacy_statement(self):
        from tfpriv.accounting import PrivacyStatement, PrivateRead

        event = type(self.plan)(100, 50, 20, self.plan.noise_multiplier).event()
        return PrivacyStatement([PrivateRead("training", event)], delta=self.delta)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("twin", "why"),
    [
        (TwoThirdsOfTheNoise, "the noise has another size"),
        (SpentTwice, "DID NOT RAISE"),
        (HalfTheStepsStated, "another epsilon is stated"),
    ],
)
def test_a_broken_twin_is_refused(twin, why):
    with pytest.raises((AssertionError, pytest.fail.Exception), match=why):
        check_budget_and_noise(twin)
