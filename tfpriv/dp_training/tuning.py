"""KerasTuner over models of private records: a search is many releases, not one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from tfpriv._errors import BudgetExceeded, InputError
from tfpriv._validation import boolean
from tfpriv.accounting import DataBudget
from tfpriv.dp_training.dp_model import DPModel

try:
    import keras_tuner
except ImportError:
    raise InputError(
        "Expected keras-tuner to be installed, received no such package. pip install "
        "'tfpriv[tuner]'."
    ) from None

_TRIAL = "a trial of a search over settings"
_UNPROTECTED = "training of a model without a guarantee, a trial of a search"


class SearchExceeded(BudgetExceeded, keras_tuner.errors.FatalError):
    """A trial that the data set's budget does not allow: it ends the search.

    KerasTuner would take another error for a bad choice of settings, and go on.
    """


class SearchRefused(InputError, keras_tuner.errors.FatalError):
    """A search that cannot be priced: it ends before a trial pays or reads."""


class PrivateHyperModel(keras_tuner.HyperModel):
    """A HyperModel whose trials are charged to a data set, or declared public.

    Every trial reads the records, and what is chosen among trials tells about all of
    them. So before a trial reads a record,

    - a `DPModel` pays its whole plan to the budget: K trials cost what their K plans
      cost together, and one too many ends the search (`SearchExceeded`);
    - another model, RMAT for instance, has no finite price for its training records:
      the budget notes each trial as not private, and says so ever after. What the
      model that is chosen releases is still certified for whoever's text is encoded,
      as long as the search changes nothing of that: keep epsilon, mask_rate, scale,
      dimension and max_length out of it;
    - records that are declared public cost nothing.

    Validation data choose the settings too. For a `DPModel` they have to be public, or
    not of these records. KerasTuner writes weights and exact scores of all trials to
    its folder, and knows no file modes: after trials without a guarantee that folder
    is as private as the records.

    Example::

        budget = tfpriv.accounting.DataBudget.find("mine.csv")
        tuner = keras_tuner.RandomSearch(
            PrivateHyperModel(build, data_budget=budget),
            objective="val_accuracy", max_trials=5, directory="internal",
        )
        tuner.search(x, y, batch_size=64, epochs=3, validation_data=public)
        budget.epsilon()  # of all trials, and of all else that was charged

    Args:
        build: `(hyperparameters)` -> compiled model; or a `keras_tuner.HyperModel`.
        data_budget: DataBudget of the records.
        public: bool. Whether all records that trials read are public.

    Raises:
        InputError: neither a budget nor public records, or both.
    """

    def __init__(
        self,
        build: Callable[[Any], keras.Model] | keras_tuner.HyperModel,
        *,
        data_budget: DataBudget | None = None,
        public: bool = False,
    ) -> None:
        super().__init__()
        boolean(public=public)
        if (data_budget is None) != public:
            received = "both" if public else "neither"
            raise InputError(
                "Expected data_budget=..., which pays for the trials, or public=True, "
                f"received {received}. tfpriv budget init FILE gives a data set a "
                "budget; DataBudget.find(FILE) opens it."
            )
        self.data_budget = data_budget
        self.public = public
        self._inner = build

    def build(self, hp: Any) -> keras.Model:
        """Builds the model of a trial; reads no record."""
        inner = self._inner
        return inner.build(hp) if hasattr(inner, "build") else inner(hp)

    def fit(self, hp: Any, model: keras.Model, *args: Any, **kwargs: Any) -> Any:
        """Pays for a trial, then trains it.

        Args:
            hp: its settings.
            model: what `build` made of them.
            *args: of `model.fit`, records first.
            **kwargs: of `model.fit`.

        Raises:
            SearchExceeded: the budget does not cover the trial; no record was read.
            SearchRefused: a `DPModel` that would not take these arguments, or whose
                price is not known before; nothing was charged, no record was read.
        """
        if not self.public:
            self._pay(model, args, kwargs)
        if hasattr(self._inner, "fit"):
            return self._inner.fit(hp, model, *args, **kwargs)
        return model.fit(*args, **kwargs)

    def _pay(self, model: keras.Model, args: tuple, kwargs: dict[str, Any]) -> None:
        if not isinstance(model, DPModel):
            self.data_budget.note(_UNPROTECTED)
            return
        if getattr(type(self._inner), "fit", _FIT) is not _FIT:
            raise SearchRefused(
                "Expected a HyperModel without a fit of its own for a DPModel, "
                f"received {type(self._inner).__name__}: what it would read is not "
                "known before. Give its build method."
            )
        try:
            given = _DP_FIT.bind(model, *args, **kwargs).arguments
        except TypeError as error:
            raise SearchRefused(
                f"Expected search(...) with what DPModel.fit takes, received: {error}. "
                "Give x, y and, by name, batch_size, epochs, num_examples, "
                "validation_data, callbacks or verbose; no Hyperband."
            ) from None
        plan = model.plan_for(
            len(np.asarray(given["y"])),
            **{k: given[k] for k in _OF_THE_PLAN if k in given},
        )
        try:
            self.data_budget.charge(plan.event(), _TRIAL)
        except BudgetExceeded as error:
            raise SearchExceeded(str(error)) from None


_FIT = keras_tuner.HyperModel.fit
_DP_FIT = inspect.signature(DPModel.fit)
_OF_THE_PLAN = ("batch_size", "epochs", "num_examples")
