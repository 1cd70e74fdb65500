"""Trials of a search pay before they read, or are declared public."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from tests.dp_training import models
from tfpriv._errors import BudgetExceeded, InputError
from tfpriv.accounting import Compose, DataBudget, epsilon
from tfpriv.dp_training import DPModel

keras_tuner = pytest.importorskip(
    "keras_tuner", reason="needs keras-tuner: pip install 'tfpriv[tuner]'"
)
pytest.importorskip("tensorboard", reason="KerasTuner needs TensorBoard to search")
from tfpriv.dp_training import tuning  # noqa: E402

PrivateHyperModel = tuning.PrivateHyperModel

RECORDS = 40
X = np.random.default_rng(0).normal(size=(RECORDS, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
DELTA = 1e-5


@pytest.fixture
def budget(tmp_path, monkeypatch):
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(tmp_path / "state"))
    file = tmp_path / "mine.csv"
    file.write_text("text\nsecret\n")
    return DataBudget.create(file, epsilon=4.0, delta=DELTA)


class Private(DPModel):
    """Counts what is trained."""

    fits = 0

    def fit(self, *args, **kwargs):
        Private.fits += 1
        return super().fit(*args, **kwargs)


@pytest.fixture(autouse=True)
def counted():
    Private.fits = 0


def build_private(hp):
    model = Private(models.logistic(), epsilon=1.0, delta=DELTA)
    adam = keras.optimizers.Adam(hp.Float("learning_rate", 1e-3, 1e-1))
    model.compile(adam, LOSS, metrics=["accuracy"])
    return model


def build_plain(hp):
    model = models.logistic()
    sgd = keras.optimizers.SGD(hp.Float("learning_rate", 1e-3, 1e-1))
    model.compile(sgd, LOSS, metrics=["accuracy"])
    return model


def searched(hypermodel, folder, trials=2):
    tuner = keras_tuner.RandomSearch(
        hypermodel,
        objective=keras_tuner.Objective("val_accuracy", "max"),
        max_trials=trials,
        directory=folder,
        seed=1,
    )
    tuner.search(
        X, Y, batch_size=20, epochs=1, validation_data=(X[:8], Y[:8]), verbose=0
    )
    return tuner


def is_paid_for(hypermodel, budget, folder) -> None:
    """The contract: two trials cost what their two plans cost together."""
    searched(hypermodel, folder)
    plan = build_private(keras_tuner.HyperParameters()).plan_for(
        RECORDS, batch_size=20, epochs=1
    )
    both = epsilon(Compose((plan.event(), plan.event())), DELTA)
    assert budget.epsilon() == pytest.approx(both)
    assert Private.fits == 2


@pytest.mark.slow
def test_every_trial_is_charged(budget, tmp_path):
    is_paid_for(PrivateHyperModel(build_private, data_budget=budget), budget, tmp_path)


class ChargesOnce(PrivateHyperModel):
    """The twin: as if a search were one release."""

    paid = False

    def _pay(self, *arguments):
        if not self.paid:
            super()._pay(*arguments)
        self.paid = True


@pytest.mark.slow
def test_a_search_that_pays_once_is_found_out(budget, tmp_path):
    twin = ChargesOnce(build_private, data_budget=budget)
    with pytest.raises(AssertionError):
        is_paid_for(twin, budget, tmp_path)
    assert Private.fits == 2


@pytest.mark.slow
def test_one_trial_too_many_ends_the_search(budget, tmp_path):
    hypermodel = PrivateHyperModel(build_private, data_budget=budget)
    with pytest.raises(tuning.SearchExceeded) as caught:
        searched(hypermodel, tmp_path, trials=50)
    assert isinstance(caught.value, BudgetExceeded)
    assert 1 <= Private.fits < 50
    assert len(budget.ledger.events()) == Private.fits
    assert budget.epsilon() <= budget.limit_epsilon


@pytest.mark.slow
def test_what_was_chosen_and_loaded_claims_nothing(budget, tmp_path):
    tuner = searched(PrivateHyperModel(build_private, data_budget=budget), tmp_path)
    (best,) = tuner.get_best_models(1)
    assert np.isinf(best.privacy_statement().epsilon)


@pytest.mark.slow
def test_trials_without_a_guarantee_are_noted(budget, tmp_path):
    searched(PrivateHyperModel(build_plain, data_budget=budget), tmp_path)
    assert budget.epsilon() == 0
    notes = [
        line
        for line in budget.ledger.lines()
        if "without a guarantee" in getattr(line, "name", "")
    ]
    assert len(notes) == 2


@pytest.mark.slow
def test_public_records_cost_nothing(budget, tmp_path):
    searched(PrivateHyperModel(build_private, public=True), tmp_path)
    assert Private.fits == 2
    assert budget.epsilon() == 0


def test_nothing_is_searched_that_nobody_pays_for(budget):
    for settings in ({}, {"data_budget": budget, "public": True}):
        with pytest.raises(InputError, match=r"public=True"):
            PrivateHyperModel(build_private, **settings)


class OwnFit(keras_tuner.HyperModel):
    def build(self, hp):
        return build_private(hp)

    def fit(self, hp, model, *args, **kwargs):
        return model.fit(*args, epochs=3, **kwargs)


def test_a_fit_that_nobody_can_price_is_refused(budget):
    hypermodel = PrivateHyperModel(OwnFit(), data_budget=budget)
    hp = keras_tuner.HyperParameters()
    with pytest.raises(InputError, match="OwnFit"):
        hypermodel.fit(hp, hypermodel.build(hp), X, Y)
    assert budget.epsilon() == 0
    assert Private.fits == 0


class OwnBuild(keras_tuner.HyperModel):
    def build(self, hp):
        return build_private(hp)


def test_a_hypermodel_that_only_builds_is_priced(budget):
    hypermodel = PrivateHyperModel(OwnBuild(), data_budget=budget)
    hp = keras_tuner.HyperParameters()
    hypermodel.fit(hp, hypermodel.build(hp), X, Y, batch_size=20, verbose=0)
    assert Private.fits == 1
    assert budget.epsilon() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "settings", "word"),
    [
        ((X, Y), {"validation_split": 0.2}, "validation_split"),
        ((X, Y), {"initial_epoch": 0}, "Hyperband"),
        ((X, Y, 20), {}, "by name"),
        ((X,), {}, "'y'"),
    ],
)
def test_what_a_dp_fit_does_not_take_ends_the_search_unpaid(
    budget, arguments, settings, word
):
    hypermodel = PrivateHyperModel(build_private, data_budget=budget)
    hp = keras_tuner.HyperParameters()
    with pytest.raises(tuning.SearchRefused, match=word):
        hypermodel.fit(hp, hypermodel.build(hp), *arguments, **settings)
    # Any other error KerasTuner takes for bad settings, and tries the next ones.
    assert issubclass(tuning.SearchRefused, keras_tuner.errors.FatalError)
    assert budget.ledger.events() == ()
    assert Private.fits == 0
