"""RMAT on several devices equals RMAT on one; what was not shown to is refused."""

from __future__ import annotations

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.representation.conftest import make_backbone
from tfpriv._errors import InputError
from tfpriv.representation import RMAT, replicas

# Trained in one process of two logical devices: a runtime has its devices for good.
EQUAL = (
    "rmat",
    "rmat:weighted",
    "rmat-uncapped",
    "rmat-classes",
    "rmat-xla",
    "rmat-l1",
    "ads",
    "cape",
)
TWINS = ("rmat:own mean", "rmat:own cap")
_CASES = (*EQUAL, *TWINS, "noise", "refused")


@pytest.fixture(scope="module")
def found():
    process = subprocess.run(
        [sys.executable, "-m", "tests.representation.two_devices", *_CASES],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return json.loads(process.stdout.splitlines()[-1])


def equals_one_device(found) -> None:
    """The contract: the same steps, weights and curves as on one device."""
    assert found["steps"] == [3, 3]
    assert found["moved"] > 0.01
    assert found["apart"] < 1e-5
    one, two = found["history"]
    assert one.keys() == two.keys()
    for name in one:
        assert two[name] == pytest.approx(one[name], abs=1e-5), name


@pytest.mark.slow
@pytest.mark.parametrize("case", EQUAL)
def test_two_devices_train_as_one_does(found, case):
    equals_one_device(found[case])


@pytest.mark.slow
@pytest.mark.parametrize("case", TWINS)
def test_a_loss_of_each_replica_by_itself_is_found_out(found, case):
    with pytest.raises(AssertionError):
        equals_one_device(found[case])


def is_independent(one, two) -> None:
    """The contract: 200 draws of one text by two replicas have nothing in common."""
    assert not np.intersect1d(one, two).size
    both = np.concatenate([one, two])
    drawn = [part - both.mean(axis=0) for part in (one, two)]
    assert min(part.std() for part in drawn) > 0
    # Five standard deviations of the correlation of so many independent draws.
    assert abs(np.corrcoef(*(part.ravel() for part in drawn))[0, 1]) < 5 / 200**0.5


@pytest.mark.slow
def test_the_noise_of_replicas_is_independent(found):
    is_independent(*np.array(found["noise"]))


@pytest.mark.slow
def test_replicas_that_share_their_noise_are_found_out(found):
    one, _ = np.array(found["noise"])
    with pytest.raises(AssertionError):
        is_independent(one, one)
    with pytest.raises(AssertionError):
        is_independent(one, one + 1e-3)


@pytest.mark.slow
def test_several_workers_are_refused(found):
    for entry, message in found["refused"].items():
        assert "MultiWorkerMirroredStrategy" in message, entry
        assert message.startswith("InputError: Expected"), entry
        assert "\n" not in message, entry


def test_a_run_that_was_killed_goes_on_and_says_what_it_learnt_from(
    tokenizer, tmp_path
):
    class Killed(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1:
                raise KeyboardInterrupt

    def fit(*callbacks):
        model = model_under(tf.distribute.get_strategy(), tokenizer, run_eagerly=True)
        backup = keras.callbacks.BackupAndRestore(tmp_path / "backup")
        texts, targets = ["a", "b"] * 2, {"label": [0, 1] * 2, "private": [0, 1] * 2}
        try:
            model.fit(
                texts, targets, epochs=3, callbacks=[backup, *callbacks], verbose=0
            )
        except KeyboardInterrupt:
            return None
        return model

    assert fit(Killed()) is None
    model = fit()
    # Two epochs of the run that was killed, one of its own.
    assert model.trained_steps.numpy() == 3
    assert model.privacy_statement().encoder_trained_on_private_text


def model_under(strategy, tokenizer, *optimizers, **settings) -> RMAT:
    with strategy.scope():
        model = RMAT(
            make_backbone(),
            tokenizer,
            num_classes=2,
            num_private_classes=2,
            public_backbone=True,
        )
        model.compile(*optimizers, **settings)
    return model


def refused(model) -> str:
    with pytest.raises(InputError) as caught:
        model.fit(["a", "b"], {"label": [0, 1], "private": [0, 1]}, verbose=0)
    assert "\n" not in str(caught.value)
    assert not model.trained_steps.numpy()
    return str(caught.value)


def test_another_strategy_is_refused(tokenizer):
    strategy = tf.distribute.experimental.CentralStorageStrategy(
        ["CPU:0"], parameter_device="CPU:0"
    )
    model = model_under(strategy, tokenizer)
    assert "CentralStorageStrategy" in refused(model)


def test_keras_own_distribution_is_refused(tokenizer):
    model = model_under(tf.distribute.get_strategy(), tokenizer)
    with keras.distribution.DataParallel(devices=["cpu:0"]).scope():
        assert "DataParallel" in refused(model)


def test_a_model_of_no_strategy_is_refused_under_one(tokenizer):
    model = model_under(tf.distribute.get_strategy(), tokenizer)
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        assert "inside `with strategy.scope():`" in refused(model)


def test_an_optimizer_from_outside_is_refused(tokenizer):
    outside = keras.optimizers.SGD(0.1)
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    model = model_under(strategy, tokenizer, keras.optimizers.SGD(0.1), outside)
    assert "optimizers that were made under the model's strategy" in refused(model)


@pytest.mark.parametrize(
    ("optimizer", "name"),
    [
        (keras.optimizers.SGD(0.1, clipnorm=1.0), "clipnorm"),
        (keras.optimizers.SGD(0.1, global_clipnorm=1.0), "global_clipnorm"),
        (keras.optimizers.SGD(0.1, clipvalue=1.0), "clipvalue"),
        (
            keras.optimizers.SGD(0.1, gradient_accumulation_steps=2),
            "gradient_accumulation_steps",
        ),
        (
            keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1)),
            "LossScaleOptimizer",
        ),
    ],
)
def test_what_keras_does_on_each_replica_is_refused(optimizer, name):
    with pytest.raises(InputError, match=f"received {name}"):
        replicas.check_optimizer(optimizer)
