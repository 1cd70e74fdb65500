"""The loop body of DP-SGD: charge, sample, clip, add noise once, step Adam."""

from __future__ import annotations

import functools
import math
import os
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfpriv import _files, _validation
from tfpriv._errors import BudgetExceeded, InputError
from tfpriv.accounting import Compose, DPSGDPlan, PrivacyLedger
from tfpriv.dp_training.clipping import PerExampleLoss, make_engine_for
from tfpriv.dp_training.cyclic_sampler import CyclicSampler
from tfpriv.dp_training.one_device import require_one_device
from tfpriv.dp_training.optimizer import DPKerasAdamOptimizer
from tfpriv.dp_training.sampler import PoissonSampler

Arrays = Sequence[np.ndarray]

_LARGEST_DEFAULT_BATCH = 512
_STATE_VERSION = 1


class DPTrainer:
    """Trains a Keras 3 model on private and public records by DP-SGD with Adam.

    A step charges the ledger, draws the private records, sums their clipped
    gradients, adds N(0, (S * sigma)^2 I) once, adds the clipped gradients of the
    public records, divides by the expected number of records, adds the gradient
    of the regulariser, and steps Adam. Everything that matters for privacy (rate,
    clipping norm C, noise multiplier sigma, expected size) comes from the plan; S is C
    and what the engine rounds (`ClippingEngine.sensitivity`).

    Guarantee: with respect to adding or removing one private record (leaving its
    place empty, for `sampling="once_per_epoch"`), the weights after all steps are
    as private as `plan.epsilon(delta)` says, if every step reads the same private
    records and the model's starting weights, the public records and the
    regulariser do not depend on private ones. Public records may depend on the
    model, as a generator's fakes do: that is post-processing. How long a step
    takes is not covered.

    It is for one device: under any `tf.distribute` strategy it is refused.

    Example::

        def loss(model, ids, labels):
            return keras.losses.sparse_categorical_crossentropy(labels, model(ids))

        trainer = DPTrainer(model, loss, plan, learning_rate=1e-3, ledger=ledger)
        for _ in range(plan.steps):
            trainer.step((real_ids, ones), (fake_ids, zeros))

    Args:
        model: keras.Model, built.
        per_example_loss: `(model, *inputs)` -> (batch,), from TensorFlow and Keras
            operations only.
        plan: DPSGDPlan. Its `num_examples` and `batch_size` may be noisy: the
            sums are divided by `batch_size` whatever was drawn.
        learning_rate: float or a `tf_keras` schedule.
        ledger: PrivacyLedger, or None: then only `plan.steps` is a limit.
        engine: str. A name of `clipping.engine_names()`; with a ledger, of one
            whose rounding is known. Steps too large for it are left to the loop.
        regulariser: `(model)` -> scalar tensor, of the weights alone; added after
            the noise.
        physical_batch_size: int. Rows that are computed at once; by default
            enough for nearly every draw, at most 512. Larger draws take more
            batches of the same step, so it changes speed and memory only.
        name: str. What the ledger calls the charges.
        part: str. Which disjoint part of the records is trained on, a class for
            instance, for parallel composition in the ledger; or None.

    Raises:
        InputError: if an argument cannot be used.
    """

    def __init__(
        self,
        model: keras.Model,
        per_example_loss: PerExampleLoss,
        plan: DPSGDPlan,
        learning_rate: Any,
        ledger: PrivacyLedger | None = None,
        engine: str = "bookkeeping",
        regulariser: Callable[[keras.Model], tf.Tensor] | None = None,
        *,
        physical_batch_size: int | None = None,
        name: str = "dp_training",
        part: str | None = None,
    ) -> None:
        require_one_device(model.variables)
        if physical_batch_size is None:
            physical_batch_size = _default_physical_batch_size(plan)
        self.model = model
        self.plan = plan
        self.ledger = ledger
        self.name = name
        self.part = part
        self.steps_taken = 0
        self._make_engine = functools.partial(
            make_engine_for,
            engine,
            model,
            per_example_loss,
            plan.l2_norm_clip,
            expected_step=_expected_step(plan),
        )
        self.engine = self._make_engine(_largest_step(plan))
        if ledger is not None and self.engine.rounding is None:
            raise InputError(
                "Expected an engine whose rounding is known where a ledger is charged, "
                f"received engine={engine!r}: what the ledger states rests on that. "
                "Use engine='bookkeeping' or 'loop', or no ledger."
            )
        self.sampler = _make_sampler(plan, physical_batch_size)
        self.optimizer = DPKerasAdamOptimizer(
            l2_norm_clip=plan.l2_norm_clip,
            noise_multiplier=plan.noise_multiplier,
            expected_batch_size=plan.batch_size,
            learning_rate=learning_rate,
            sensitivity=self.engine.sensitivity,
        )
        self._regulariser = regulariser
        self._num_records: int | None = None
        self._structure: list[tuple[tuple[int, ...], str]] | None = None
        self._resumed_within_pass = False
        self._clipped_sum: Callable[..., list[tf.Tensor]] | None = None
        self._update = tf.function(self._apply, autograph=False)

    def step(
        self, private_inputs: Arrays, public_inputs: Arrays | None = None
    ) -> dict[str, float]:
        """Makes one private step, the ledger being charged before it.

        Args:
            private_inputs: arrays (n, ...) that share n: ALL private records, not
                a batch. What a step reads of them is drawn here.
            public_inputs: arrays (m, ...) of the same structure, all of which are
                used, or None. Each record is clipped as well.

        Returns:
            `step`: how many steps were taken. `noised_gradient_norm`: the L2 norm
            of what the step released. Neither was computed from private records
            other than through the noise.

        Raises:
            BudgetExceeded: if the plan's steps are used up or the ledger refuses.
                No record was read.
            InputError: if the arrays do not fit together.
        """
        require_one_device()
        private_inputs = _as_arrays("private_inputs", private_inputs)
        num_records = len(private_inputs[0])
        num_public = 0
        if public_inputs is not None:
            public_inputs = _as_arrays("public_inputs", public_inputs)
            num_public = len(public_inputs[0])
        self._check_inputs(private_inputs, public_inputs)
        if self.steps_taken >= self.plan.steps:
            raise BudgetExceeded(
                f"Expected at most steps={self.plan.steps} steps, received a call for "
                f"one more. Plan more steps before training starts."
            )
        step = self.steps_taken
        self._charge(step)
        # Before the records are read: a step that is broken off counts as taken.
        self.steps_taken += 1
        if self._clipped_sum is None:
            self._remember(private_inputs)
        sums = self._private_sums(private_inputs, num_records, step)
        public_sums = None
        if num_public:
            public_sums = self._clipped_sum(public_inputs, np.ones(num_public, bool))
        # Not within a graph: words for the noise come from the host.
        released = self.optimizer.noised_mean(sums, public_sums, num_public)
        norm = self._update(released)
        return {"step": self.steps_taken, "noised_gradient_norm": float(norm)}

    def state(self) -> dict[str, np.ndarray]:
        """Copies what a resumed run needs: weights, Adam's slots, step counter.

        There is no noise or sampling state, for there is none to keep. The arrays
        are as private as the weights are.
        """
        self.optimizer.build(self.engine.variables)
        counters = {"version": _STATE_VERSION, "steps_taken": self.steps_taken}
        state = {key: np.array(value) for key, value in counters.items()}
        for prefix, owner in (("model", self.model), ("optimizer", self.optimizer)):
            for number, weights in enumerate(owner.get_weights()):
                state[f"{prefix}/{number}"] = np.asarray(weights)
        return state

    def load_state(self, state: dict[str, np.ndarray]) -> None:
        """Goes on from what `state` returned, in a trainer built the same way.

        Steps that were taken after the state was saved are charged again when
        they are replayed: their first run read private records too.

        Raises:
            InputError: if the state is of another model or version.
        """
        version = int(state.get("version", 0))
        if version != _STATE_VERSION:
            raise InputError(
                f"Expected a trainer state of version {_STATE_VERSION}, received "
                f"version {version}. Load it with the tfpriv that wrote it."
            )
        self.optimizer.build(self.engine.variables)
        weights = _numbered(state, "model/")
        slots = _numbered(state, "optimizer/")
        _check_shapes("model", weights, self.model.get_weights())
        _check_shapes("optimizer", slots, self.optimizer.get_weights())
        self.model.set_weights(weights)
        self.optimizer.set_weights(slots)
        self.steps_taken = int(state["steps_taken"])
        places = self.steps_taken * self.plan.batch_size
        self._resumed_within_pass = (
            self.plan.sampling == "once_per_epoch"
            and places % self.plan.num_examples != 0
        )

    def save(self, path: str | os.PathLike) -> None:
        """Writes `state` to an .npz file of mode 0600, whole or not at all."""
        with _files.atomic_write(path, mode=_files.PRIVATE, binary=True) as file:
            np.savez(file, **self.state())

    def restore(self, path: str | os.PathLike) -> None:
        """Goes on from a file that `save` wrote; see `load_state`.

        Raises:
            InputError: if the file is damaged or of another model.
        """
        try:
            with np.load(path, allow_pickle=False) as file:
                state = dict(file)
        except (EOFError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(
                f"Expected a file that DPTrainer.save wrote, received {path}, which "
                f"is none or damaged. Use another checkpoint."
            ) from error
        self.load_state(state)

    def _check_inputs(
        self,
        private: tuple[np.ndarray, ...],
        public: tuple[np.ndarray, ...] | None,
    ) -> None:
        if self._num_records not in (None, len(private[0])):
            raise InputError(
                "Expected the same private records in every step, received another "
                "number of them. Make a new plan and trainer for other records."
            )
        expected = self._structure or _structure(private)
        for name, arrays in (("private_inputs", private), ("public_inputs", public)):
            if arrays is not None and _structure(arrays) != expected:
                raise InputError(
                    f"Expected {name} of the shapes and types of all other records, "
                    f"{expected}, received {_structure(arrays)}. Pad and cast alike."
                )

    def _remember(self, private: tuple[np.ndarray, ...]) -> None:
        self._num_records = len(private[0])
        largest = _largest_step(self.plan, self._num_records)
        if largest > self.engine.largest_step:
            # More than the plan's number, which may be noisy. No engine that it takes
            # rounds by more than the one that the noise was scaled for.
            self.engine = self._make_engine(largest)
        self._structure = _structure(private)
        # One trace for private and public batches alike, whatever their sizes.
        signature = tuple(tf.TensorSpec((None, *s), d) for s, d in self._structure)
        self._clipped_sum = tf.function(
            self.engine.clipped_sum,
            input_signature=(signature, tf.TensorSpec((None,), tf.bool)),
            autograph=False,
            jit_compile=self.engine.jit_compile,
        )

    def _charge(self, step: int) -> None:
        events = [self.plan.step_event(step)]
        if self._resumed_within_pass:
            # The steps that are replayed read records for which the pass that was
            # cut off has paid already: as if another pass began.
            events.append(self.plan.step_event(0))
        if self.ledger is not None:
            # An event of nothing: the pass was paid for when it began.
            for event in events:
                if event != Compose(()):
                    self.ledger.charge(self.name, event, part=self.part)
        self._resumed_within_pass = False

    def _private_sums(
        self, inputs: tuple[np.ndarray, ...], num_records: int, step: int
    ) -> list[tf.Tensor]:
        if num_records == 0:
            return self.engine.zeros()
        sums = []
        for batch in self.sampler.draw(num_records, step):
            rows = tuple(x[batch.indices] for x in inputs)
            sums.append(self._clipped_sum(rows, batch.mask))
        if len(sums) == 1:
            return sums[0]
        return [
            tf.add_n([tf.cast(part, tf.float64) for part in parts])
            for parts in zip(*sums, strict=True)
        ]

    def _apply(self, released: list[tf.Tensor]) -> tf.Tensor:
        regulariser = None
        if self._regulariser is not None:
            regulariser = lambda: self._regulariser(self.model)  # noqa: E731
        self.optimizer.apply_noised_mean(self.engine.variables, released, regulariser)
        return tf.linalg.global_norm(released)


def _largest_step(plan: DPSGDPlan, num_records: int | None = None) -> int:
    """How many records a step reads at most, but for a chance below 1e-15.

    Without `num_records` there is room for a quarter more than `plan.num_examples`,
    which may be noisy.
    """
    expected = _expected_step(plan)
    if num_records is None:
        expected *= 1.25
    else:
        expected *= num_records / plan.num_examples
    if plan.sampling == "full_batch":
        return math.ceil(expected)
    if plan.sampling == "once_per_epoch":
        # A place holds one record more than another.
        return math.ceil(expected + plan.batch_size)
    return math.ceil(expected + 8.5 * math.sqrt(expected) + 40)


def _expected_step(plan: DPSGDPlan) -> int:
    return plan.num_examples if plan.sampling == "full_batch" else plan.batch_size


def _make_sampler(
    plan: DPSGDPlan, physical_batch_size: int
) -> PoissonSampler | CyclicSampler:
    if plan.sampling == "once_per_epoch":
        return CyclicSampler(plan.num_examples, plan.batch_size, physical_batch_size)
    # "none" claims nothing for sampling, so any draw will do; a Poisson one keeps
    # the sensitivity at C when a record is added or removed.
    _validation.one_of(("poisson", "full_batch", "none"), sampling=plan.sampling)
    rate = 1.0 if plan.sampling == "full_batch" else plan.batch_size / plan.num_examples
    return PoissonSampler(rate, physical_batch_size)


def _default_physical_batch_size(plan: DPSGDPlan) -> int:
    if plan.sampling == "full_batch":
        enough = plan.num_examples
    else:
        # Four standard deviations above the mean of a Poisson draw.
        enough = math.ceil(plan.batch_size + 4 * math.sqrt(plan.batch_size))
    return max(1, min(enough, plan.num_examples, _LARGEST_DEFAULT_BATCH))


def _as_arrays(name: str, arrays: Arrays) -> tuple[np.ndarray, ...]:
    if not isinstance(arrays, (tuple, list)) or not arrays:
        raise InputError(
            f"Expected {name} to be a tuple of arrays, received "
            f"{type(arrays).__name__}. Wrap a single array: (array,)."
        )
    arrays = tuple(np.asarray(x) for x in arrays)
    if any(x.ndim == 0 for x in arrays) or len({len(x) for x in arrays}) > 1:
        raise InputError(
            f"Expected {name} to share their first dimension, received arrays of "
            f"different lengths. Give one row a record in each."
        )
    return arrays


def _structure(arrays: tuple[np.ndarray, ...]) -> list[tuple[tuple[int, ...], str]]:
    return [(x.shape[1:], x.dtype.name) for x in arrays]


def _numbered(state: dict[str, np.ndarray], prefix: str) -> list[np.ndarray]:
    count = sum(key.startswith(prefix) for key in state)
    return [state[f"{prefix}{i}"] for i in range(count)]


def _check_shapes(
    what: str, received: list[np.ndarray], expected: list[np.ndarray]
) -> None:
    ours = [np.shape(x) for x in expected]
    theirs = [np.shape(x) for x in received]
    if ours != theirs:
        raise InputError(
            f"Expected {what} weights of shapes {ours}, received {theirs}. Build the "
            f"trainer as the one that was saved."
        )
