"""`fit` under differential privacy, for any Keras 3 model on TensorFlow."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfpriv import _validation
from tfpriv._errors import BudgetExceeded, InputError
from tfpriv.accounting import (
    DPSGDPlan,
    NonPrivate,
    PrivacyLedger,
    PrivacyStatement,
    PrivateRead,
)
from tfpriv.dp_training.independence import refuse_layers_that_mix, refuse_what_mixes
from tfpriv.dp_training.one_device import require_one_device
from tfpriv.dp_training.trainer import DPTrainer

_ASSUMPTIONS = (
    "the model's starting weights, its shape and all settings do not depend on the "
    "records",
    "validation data and what callbacks read are public or not of these records",
    "floating-point noise is taken for real Gaussian noise",
)


class DPModel(keras.Model):
    """A Keras model whose `fit` is DP-SGD within a budget.

    It holds the model that it is given and calls it; nothing of it is replaced.
    `fit` draws records by Poisson sampling, clips the gradient of each, adds noise
    and steps TF-Privacy's Adam (`DPTrainer`), with as little noise as the budget
    allows for the steps that are asked for. `evaluate`, `predict` and callbacks work
    as always; what is saved and shared is `private.model`.

    A loss on training records would not be private, so the curves of `fit` are the
    norm of the noised gradient and what `validation_data` gives.

    Example::

        private = DPModel(classifier, epsilon=8.0, delta=1e-5)
        private.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        private.fit(x, y, batch_size=64, epochs=10, validation_data=public)
        print(private.privacy_statement())

    Args:
        model: keras.Model with one output. Built, or built by `fit` on a row of
            zeros.
        epsilon: float. The budget of `fit`, with respect to adding or removing one
            record.
        delta: float in (0, 1).
        l2_norm_clip: float. Largest norm of one record's gradient.
        engine: str. See `DPTrainer`.
        ledger: PrivacyLedger that is charged for every step, or None.

    Raises:
        InputError: an argument cannot be used, or a layer mixes examples; the message
            has its name.
    """

    def __init__(
        self,
        model: keras.Model,
        *,
        epsilon: float,
        delta: float,
        l2_norm_clip: float = 1.0,
        engine: str = "bookkeeping",
        ledger: PrivacyLedger | None = None,
        name: str | None = None,
    ) -> None:
        require_one_device(model.variables)
        super().__init__(name=name or f"private_{model.name}")
        _validation.positive(epsilon=epsilon, l2_norm_clip=l2_norm_clip)
        _validation.probability(delta=delta)
        refuse_layers_that_mix(model)
        self.model = model
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        self.l2_norm_clip = float(l2_norm_clip)
        self.engine = engine
        self.ledger = ledger
        self.plan: DPSGDPlan | None = None
        self._trainer: DPTrainer | None = None
        self._loaded = False
        # It has no weights but the model's.
        self.built = model.built

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """What the model returns."""
        return self.model(inputs, training=training)

    def compile(
        self,
        optimizer: str | keras.optimizers.Adam = "adam",
        loss: Any = None,
        metrics: Any = None,
        **kwargs: Any,
    ) -> None:
        """Takes what `keras.Model.compile` takes, but for a few.

        Args:
            optimizer: "adam" or a `keras.optimizers.Adam`; its learning rate,
                schedule, betas and epsilon go to TF-Privacy's Adam.
            loss: a name, a `keras.losses.Loss` or `(y_true, y_pred)` -> one number
                an example. It may read no two examples at once.
            metrics: of `evaluate` and `validation_data`.
            **kwargs: `jit_compile`, `run_eagerly`, `steps_per_execution` of
                `evaluate` and `predict`.

        Raises:
            InputError: another optimizer, no loss, or several.
        """
        optimizer = keras.optimizers.get(optimizer)
        if type(optimizer) is not keras.optimizers.Adam or optimizer.amsgrad:
            raise InputError(
                f"Expected optimizer='adam' or a keras.optimizers.Adam, received "
                f"{type(optimizer).__name__}. TF-Privacy's Adam makes the steps."
            )
        if loss is None or isinstance(loss, (list, tuple, dict)):
            raise InputError(
                f"Expected one loss, received loss={loss!r}. Add several up in a "
                f"callable of (y_true, y_pred)."
            )
        for name in ("loss_weights", "weighted_metrics"):
            if kwargs.get(name) is not None:
                raise InputError(
                    f"Expected no {name}, received some. Weigh within the loss."
                )
        super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **kwargs)
        self._loss_of_examples = _per_example(loss)

    def fit(
        self,
        x: Any,
        y: Any,
        *,
        batch_size: int = 64,
        epochs: int = 1,
        num_examples: int | None = None,
        validation_data: Any = None,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        verbose: str | int = "auto",
    ) -> keras.callbacks.History:
        """Trains within the budget: `epochs * ceil(num_examples / batch_size)` steps.

        Args:
            x: array, or a list or dict of arrays as the model takes them; ALL private
                records.
            y: array, one row a record.
            batch_size: int. Expected number of records in a step.
            epochs: int.
            num_examples: int. How many records are planned for, where their exact
                number must not get into the statement; by default it is taken to be
                public.
            validation_data: of `evaluate`; see the assumptions of the statement.
            callbacks: Keras callbacks. What they stop early is not given back.
            verbose: 0 shows nothing; else the plan comes first.

        Returns:
            `noised_gradient_norm` and validation figures of each epoch.

        Raises:
            InputError: before any record is used, if arrays, model and loss do not
                fit together or examples are mixed.
            BudgetExceeded: at a second call; a budget is for one.
        """
        if not self.compiled:
            raise InputError("Expected a compiled model. Call compile first.")
        require_one_device(self.model.variables)
        if self.plan is not None:
            raise BudgetExceeded(
                f"Expected one fit for epsilon={self.epsilon:g}, received another: the "
                f"budget is spent. Plan more epochs in one call, or make a new DPModel."
            )
        _refuse_backups(callbacks or ())
        _validation.integer(batch_size=batch_size, epochs=epochs)
        self._structure = x
        arrays = [np.asarray(a) for a in keras.tree.flatten(x)] + [np.asarray(y)]
        if any(a.ndim == 0 for a in arrays) or len({len(a) for a in arrays}) != 1:
            raise InputError(
                "Expected x and y with one row a record in each, received arrays of "
                "different lengths."
            )
        plan = self.plan_for(
            len(y), batch_size=batch_size, epochs=epochs, num_examples=num_examples
        )
        steps_per_epoch = plan.steps // epochs
        trainer = self._make_trainer(plan, arrays)
        if verbose:
            sys.stdout.write(_plan_in_words(plan, self.delta))
        self.plan, self._trainer = plan, trainer
        return self._run(
            arrays, epochs, steps_per_epoch, validation_data, callbacks, verbose
        )

    def plan_for(
        self,
        size: int,
        *,
        batch_size: int = 64,
        epochs: int = 1,
        num_examples: int | None = None,
    ) -> DPSGDPlan:
        """Returns what `fit` would do to so many records; reads none.

        Args:
            size: int. Records there are.
            batch_size: int. Of `fit`.
            epochs: int. Of `fit`.
            num_examples: int. Of `fit`.

        Raises:
            InputError: a number that cannot be used.
        """
        num_examples = size if num_examples is None else num_examples
        _validation.integer(
            batch_size=batch_size, epochs=epochs, num_examples=num_examples
        )
        return DPSGDPlan.calibrate(
            epsilon=self.epsilon,
            delta=self.delta,
            num_examples=num_examples,
            batch_size=batch_size,
            steps=epochs * math.ceil(num_examples / batch_size),
            l2_norm_clip=self.l2_norm_clip,
        )

    def load_weights(self, *args: Any, **kwargs: Any) -> None:
        """Loads weights, of which the statement knows no more than that they came.

        What `keras.Model.load_weights` takes.
        """
        super().load_weights(*args, **kwargs)
        self._loaded = True

    def privacy_statement(self) -> PrivacyStatement:
        """Returns what `fit` guarantees.

        Weights that were loaded may have read anything: then there is no guarantee
        here, and what they cost is with whoever trained them.
        """
        reads = []
        if self._loaded:
            reads.append(PrivateRead("what trained the loaded weights", NonPrivate()))
        if self.plan is not None:
            reads.append(PrivateRead("training", self.plan.event()))
        return PrivacyStatement(reads, delta=self.delta, assumptions=_ASSUMPTIONS)

    def _make_trainer(self, plan: DPSGDPlan, arrays: list[np.ndarray]) -> DPTrainer:
        specs = [tf.TensorSpec(a.shape[1:], tf.as_dtype(a.dtype)) for a in arrays]
        zeros = [tf.zeros((1, *s.shape), s.dtype) for s in specs]
        if not self.model.built:
            self._call_model(self.model, *zeros)
        # The wrapper is built without records as well.
        self(self._packed(zeros[:-1]))
        refuse_what_mixes(self.model, self._call_model, self._example_losses, specs)
        adam = self.optimizer
        trainer = DPTrainer(
            self.model,
            self._example_losses,
            plan,
            learning_rate=float(adam.learning_rate),
            ledger=self.ledger,
            engine=self.engine,
            regulariser=_penalty if self.model.losses else None,
            name=self.name,
        )
        for key in ("beta_1", "beta_2"):
            setattr(trainer.optimizer, key, getattr(adam, key))
        trainer.optimizer.epsilon = adam.epsilon
        return trainer

    def _packed(self, inputs: Sequence[tf.Tensor]) -> Any:
        packed = keras.tree.pack_sequence_as(self._structure, list(inputs))
        if isinstance(packed, dict):
            # As they were given: Keras compares the order of names too.
            return {key: packed[key] for key in self._structure}
        return packed

    def _call_model(self, model: keras.Model, *inputs: tf.Tensor) -> tf.Tensor:
        return model(self._packed(inputs[:-1]), training=True)

    def _example_losses(self, model: keras.Model, *inputs: tf.Tensor) -> tf.Tensor:
        return self._loss_of_examples(inputs[-1], self._call_model(model, *inputs))

    def _run(
        self,
        arrays: list[np.ndarray],
        epochs: int,
        steps: int,
        validation_data: Any,
        callbacks: Sequence[keras.callbacks.Callback] | None,
        verbose: str | int,
    ) -> keras.callbacks.History:
        history = keras.callbacks.History()
        callbacks = keras.callbacks.CallbackList(
            [*(callbacks or []), history],
            add_progbar=bool(verbose),
            model=self,
            epochs=epochs,
            steps=steps,
            verbose=1 if verbose == "auto" else verbose,
        )
        self.stop_training = False
        callbacks.on_train_begin()
        logs: dict[str, float] = {}
        for epoch in range(epochs):
            callbacks.on_epoch_begin(epoch)
            for step in range(steps):
                callbacks.on_train_batch_begin(step)
                self._trainer.optimizer.learning_rate = float(
                    self.optimizer.learning_rate
                )
                norm = self._trainer.step(arrays)["noised_gradient_norm"]
                self.optimizer.iterations.assign_add(1)
                logs = {"noised_gradient_norm": norm}
                callbacks.on_train_batch_end(step, logs)
            if validation_data is not None:
                values = self._validate(validation_data)
                logs |= {f"val_{key}": value for key, value in values.items()}
            callbacks.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        callbacks.on_train_end(logs)
        return history

    def _validate(self, data: Any) -> dict[str, float]:
        parts = data if isinstance(data, tuple) else (data,)
        return self.evaluate(*parts, verbose=0, return_dict=True)


def _refuse_backups(callbacks: Sequence[keras.callbacks.Callback]) -> None:
    """A run that was killed has spent: going on from its backup would not say so."""
    for callback in callbacks:
        if isinstance(callback, keras.callbacks.BackupAndRestore):
            raise InputError(
                "Expected no BackupAndRestore in a DP fit, received one: what a killed "
                "run spent would be missing in the statement. Save with DPTrainer."
                "save and go on with restore, on one PrivacyLedger."
            )


def _per_example(loss: Any) -> Any:
    """`(y_true, y_pred)` -> losses whose first axis is the batch, then averaged."""
    loss = keras.losses.get(loss)
    raw = loss.call if isinstance(loss, keras.losses.Loss) else loss

    def losses(y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        values = tf.convert_to_tensor(raw(y_true, y_pred))
        if values.shape.rank is None or values.shape.rank < 2:
            return values
        return tf.reduce_mean(values, axis=list(range(1, values.shape.rank)))

    return losses


def _penalty(model: keras.Model) -> tf.Tensor:
    return tf.add_n([tf.convert_to_tensor(loss) for loss in model.losses])


def _plan_in_words(plan: DPSGDPlan, delta: float) -> str:
    return (
        f"Plan: {plan.steps} steps, each record in each with probability "
        f"{plan.sampling_rate:.4g}, noise multiplier {plan.noise_multiplier:g}, clip "
        f"{plan.l2_norm_clip:g}; epsilon {plan.epsilon(delta):.4g} at delta "
        f"{delta:g}.\n"
    )
