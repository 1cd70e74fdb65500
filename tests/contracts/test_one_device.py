"""DP training under a strategy is refused, everywhere, before it reads or charges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.dp_training import models
from tfpriv._errors import InputError
from tfpriv.accounting import DPSGDPlan
from tfpriv.dp_training import (
    DPKerasAdamOptimizer,
    DPModel,
    DPTrainer,
    dp_model,
    one_device,
    optimizer,
    trainer,
)
from tfpriv.seqgan import dp_seqgan, seqgan
from tfpriv.seqgan.discriminator import Discriminator
from tfpriv.seqgan.dp_seqgan import DPSeqGAN
from tfpriv.seqgan.generator import Generator

PLAN = DPSGDPlan(
    num_examples=4,
    batch_size=4,
    steps=2,
    noise_multiplier=1.0,
    sampling="full_batch",
)


class Untouched:
    """Private records, or a ledger, that nobody may have a look at."""

    def __init__(self) -> None:
        self.uses: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.uses.append(name)
        raise AssertionError("records were read, or a ledger charged")

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        return self.__getattr__("__array__")


def make_trainer(private: Untouched) -> Callable[[], Any]:
    model = models.linear()
    return lambda: DPTrainer(model, models.linear_loss, PLAN, 0.1)


def step_trainer(private: Untouched) -> Callable[[], Any]:
    made = DPTrainer(models.linear(), models.linear_loss, PLAN, 0.1)
    made.ledger = private
    return lambda: made.step((private,))


def noise_a_sum(private: Untouched) -> Callable[[], Any]:
    adam = DPKerasAdamOptimizer(1.0, 1.0, 4)
    return lambda: adam.noised_mean([tf.zeros((2,))])


def make_model(private: Untouched) -> Callable[[], Any]:
    model = models.logistic()
    return lambda: DPModel(model, epsilon=8.0, delta=1e-5)


def fit_model(private: Untouched) -> Callable[[], Any]:
    made = DPModel(models.logistic(), epsilon=8.0, delta=1e-5)
    made.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return lambda: made.fit(private, private, verbose=0)


def fit_dp_seqgan(made: DPSeqGAN) -> Callable[[Untouched], Callable[[], Any]]:
    return lambda private: lambda: made.fit(private, data_budget=private)


def make_seqgan(private: Untouched) -> Callable[[], Any]:
    return lambda: seqgan.SeqGAN(
        Generator(8, 3, 2, 2), Discriminator(8, 3, 2, (1,), (2,))
    )


# What trains, and the module that has to ask.
ENTRIES = {
    "DPTrainer": (make_trainer, trainer),
    "DPTrainer.step": (step_trainer, trainer),
    "DPKerasAdamOptimizer.noised_mean": (noise_a_sum, optimizer),
    "DPModel": (make_model, dp_model),
    "DPModel.fit": (fit_model, dp_model),
    "DPSeqGAN.fit": (fit_dp_seqgan(DPSeqGAN(8.0)), dp_seqgan),
    "DPSeqGAN.paper.fit": (fit_dp_seqgan(DPSeqGAN.paper()), dp_seqgan),
    "DPSeqGAN.seqgan.fit": (fit_dp_seqgan(DPSeqGAN.seqgan()), dp_seqgan),
    "SeqGAN": (make_seqgan, seqgan),
}
each_entry = pytest.mark.parametrize("entry", ENTRIES)


def strategies() -> dict[str, Any]:
    data_parallel = keras.distribution.DataParallel(devices=["cpu:0"])
    mirrored = tf.distribute.MirroredStrategy(["CPU:0"])
    return {
        "MirroredStrategy": mirrored.scope(),
        "OneDeviceStrategy": tf.distribute.OneDeviceStrategy("CPU:0").scope(),
        "DataParallel": data_parallel.scope(),
    }


def is_refused(entry: str, strategy: str) -> None:
    """The contract: one line that names the strategy, and nothing was touched."""
    private = Untouched()
    attempt = ENTRIES[entry][0](private)
    with strategies()[strategy], pytest.raises(InputError) as caught:
        attempt()
    assert strategy in str(caught.value)
    assert "one device" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert private.uses == []


@each_entry
@pytest.mark.parametrize("strategy", strategies())
def test_is_refused_before_anything_is_read_or_charged(entry, strategy):
    is_refused(entry, strategy)


@each_entry
def test_an_entry_that_does_not_ask_is_found_out(entry, monkeypatch):
    monkeypatch.setattr(ENTRIES[entry][1], "require_one_device", lambda *_, **__: None)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        is_refused(entry, "MirroredStrategy")


@pytest.mark.parametrize("strategy", ["MirroredStrategy"])
def test_variables_of_a_strategy_are_refused_outside_its_scope_too(strategy):
    with strategies()[strategy]:
        model, wrapped = models.linear(), models.logistic()
    with pytest.raises(InputError, match="variables on 1 replicas"):
        DPTrainer(model, models.linear_loss, PLAN, 0.1)
    with pytest.raises(InputError, match="variables on 1 replicas"):
        DPModel(wrapped, epsilon=8.0, delta=1e-5)


def test_without_a_strategy_nothing_is_refused():
    one_device.require_one_device(models.linear().variables)
