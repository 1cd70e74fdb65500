"""What a clipping engine must do, and the list of those that exist.

An engine turns a batch into the sum of its clipped per-example gradients. The
engines differ in speed only: `tests/contracts` holds each of them to the same
sums. Add one in a module of its own, decorated with `@register_engine("name")`,
and name the module in `_MODULES`.
"""

from __future__ import annotations

import abc
import importlib
import logging
import math
from collections.abc import Callable, Sequence

import keras
import tensorflow as tf

from tfpriv import _validation
from tfpriv._errors import InputError
from tfpriv.dp_training.independence import refuse_layers_that_mix

_LOG = logging.getLogger(__name__)

PerExampleLoss = Callable[..., tf.Tensor]
"""`per_example_loss(model, *inputs)` -> float tensor (batch,): one loss an example."""

_MODULES = {
    "bookkeeping": "bookkeeping_engine",
    "jacobian": "jacobian_engine",
    "loop": "loop_engine",
}
_ENGINES: dict[str, type[ClippingEngine]] = {}

# So that a unit and its inverse are float32 numbers.
_CLIP_RANGE = (2.0**-64, 2.0**64)
_SHORTER = 1.0 - 2.0**-22


class ClippingEngine(abc.ABC):
    """Sums the clipped gradients of a batch, one gradient an example.

    For examples i with mask m_i and gradients g_i over ALL trainable variables
    together, the sum is over m_i * g_i * min(1, C / |g_i|_2), C = `l2_norm_clip`
    (Abadi et al. 2016, arXiv:1607.00133, algorithm 1). Adding or removing one
    example therefore changes the sum by at most C in L2 norm (`sensitivity`).

    An example whose gradient is not finite adds exactly 0, so that it can do no
    more than any other; a masked row adds exactly 0 whatever it holds.

    Sums of floating-point numbers are rounded, which crafted examples can drive far
    past C (Mironov 2012, doi 10.1145/2382196.2382264; Casacuberta et al. 2022,
    arXiv:2207.10635). So an engine says with `rounding` how far its sums may be from
    the sum of what examples add; noise is scaled to `sensitivity`, which counts it.
    With `rounding = 0` clipped gradients are whole multiples of `unit`, and their sum
    is exact in any order.

    Args:
        model: keras.Model, built. Its trainable variables are those of now.
        per_example_loss: callable, `(model, *inputs)` -> (batch,). It may use
            TensorFlow and Keras operations only, and the loss of an example may
            depend on that example alone.
        l2_norm_clip: float. C, from 2^-64 to 2^64.
        largest_step: int. How many examples may be added up in one step, at most.
        expected_step: int or None. How many a step usually has, for speed alone;
            None is `largest_step`.

    Raises:
        InputError: if the clip is out of range, the model has no trainable variables
            yet, a layer mixes the examples of a batch or steps are too large.
    """

    name: str
    # How far, in clips, a step's sums may be from those of what its examples add, at
    # most; None where nobody knows.
    rounding: float | None = None
    # How large `largest_step` may be.
    most_examples = 2**23
    # Whether XLA compiles `clipped_sum`.
    jit_compile = False

    def __init__(
        self,
        model: keras.Model,
        per_example_loss: PerExampleLoss,
        l2_norm_clip: float,
        largest_step: int = 256,
        expected_step: int | None = None,
    ) -> None:
        if expected_step is None:
            expected_step = largest_step
        _validation.positive(l2_norm_clip=l2_norm_clip)
        _validation.integer(largest_step=largest_step, expected_step=expected_step)
        if largest_step > self.most_examples:
            raise InputError(
                f"Expected at most {self.most_examples} examples a step for "
                f"engine={self.name!r}, received {largest_step}. Use engine='loop' or "
                f"smaller steps."
            )
        if not _CLIP_RANGE[0] <= l2_norm_clip <= _CLIP_RANGE[1]:
            raise InputError(
                f"Expected 2^-64 <= l2_norm_clip <= 2^64, received "
                f"l2_norm_clip={l2_norm_clip}. Scale the loss."
            )
        refuse_layers_that_mix(model)
        if not model.trainable_variables:
            raise InputError(
                f"Expected a built model with trainable variables, received "
                f"{model.name!r} with none. Call the model once on an example batch."
            )
        self.model = model
        self.l2_norm_clip = float(l2_norm_clip)
        self.largest_step = int(largest_step)
        self.expected_step = int(expected_step)
        self._per_example_loss = per_example_loss
        self.variables: list[tf.Variable] = [
            variable.value for variable in model.trainable_variables
        ]

    @property
    def sensitivity(self) -> float:
        """The L2 norm by which one example can change the sum, rounding included."""
        return self.l2_norm_clip * (1.0 + 2.0 * (self.rounding or 0.0))

    @property
    def unit(self) -> float:
        """What gradients are multiples of: a power of two, C * 2^-30 to C * 2^-29."""
        return math.ldexp(1.0, math.frexp(self.l2_norm_clip)[1] - 30)

    @abc.abstractmethod
    def clipped_sum(
        self, inputs: tuple[tf.Tensor, ...], mask: tf.Tensor
    ) -> list[tf.Tensor]:
        """Returns the sum of the clipped gradients of the rows that `mask` keeps.

        Runs eagerly and inside a tf.function.

        Args:
            inputs: tensors that share their first dimension, the batch; it may
                be 0.
            mask: bool tensor (batch,). False rows add exactly 0.

        Returns:
            One dense tensor a trainable variable, of its shape, in float32 or wider.
        """

    def losses(self, inputs: tuple[tf.Tensor, ...]) -> tf.Tensor:
        """Returns the losses (batch,) in float32 or wider.

        Raises:
            InputError: if `per_example_loss` returns anything but one number an
                example.
        """
        losses = tf.convert_to_tensor(self._per_example_loss(self.model, *inputs))
        batch = inputs[0].shape[0]
        if losses.shape.rank != 1 or not losses.shape.is_compatible_with([batch]):
            raise InputError(
                f"Expected per_example_loss to return one loss an example, shape "
                f"({batch},), received shape {losses.shape}. Average over the "
                f"positions of an example only, never over the batch."
            )
        return tf.cast(losses, wide_dtype(losses.dtype))

    def to_units(self, gradients: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Clips the gradient of one example and rounds it towards 0 to whole units.

        Args:
            gradients: the coordinates of ONE example's gradient, each once; tensors
                of any shapes, float32 or float64, at most 2^28 coordinates together.

        Returns:
            int64 tensors of the same shapes. Times `unit` they have an L2 norm of at
            most C, exactly; all are 0 where the gradient is not finite.
        """
        if not gradients:
            return []
        # The float64 norm is at most 2^28 * 2^-53 off, relatively, and the float32
        # scale and product 2^-24 each: together less than the 2^-22 that the scale
        # is short of C / norm. Rounding towards 0 then lengthens no coordinate.
        squares = [tf.nn.l2_loss(tf.cast(g, tf.float64)) for g in gradients]
        norm = tf.sqrt(2.0 * tf.add_n(squares))
        clip = self.l2_norm_clip * _SHORTER
        scale = (clip / self.unit) / tf.maximum(norm, clip)
        scale = tf.where(tf.math.is_finite(norm), scale, 0.0)
        return [
            # Where the scale is 0, NaN and infinity become 0 as well.
            tf.cast(tf.math.multiply_no_nan(g, tf.cast(scale, g.dtype)), tf.int64)
            for g in gradients
        ]

    def from_units(self, total: tf.Tensor) -> tf.Tensor:
        """Returns a sum of `to_units` as float64, exact up to 2^23 examples."""
        return tf.cast(total, tf.float64) * self.unit

    def zeros(self) -> list[tf.Tensor]:
        """Returns the sum over no examples, in the types of any other sum."""
        return [tf.zeros(v.shape, wide_dtype(v.dtype)) for v in self.variables]


def register_engine(
    name: str,
) -> Callable[[type[ClippingEngine]], type[ClippingEngine]]:
    """Returns a class decorator that makes an engine known under `name`."""

    def register(engine: type[ClippingEngine]) -> type[ClippingEngine]:
        engine.name = name
        _ENGINES[name] = engine
        return engine

    return register


def engine_names() -> list[str]:
    """Returns the names that `make_engine` takes."""
    return sorted({*_MODULES, *_ENGINES})


def make_engine_for(
    name: str,
    model: keras.Model,
    per_example_loss: PerExampleLoss,
    l2_norm_clip: float,
    largest_step: int,
    expected_step: int | None = None,
) -> ClippingEngine:
    """As `make_engine`, but the loop takes the steps that are too large for `name`."""
    most = engine_class(name).most_examples
    if largest_step > most and name != "loop":
        _LOG.warning(
            "Steps of %r fall back to the loop, which is slower: engine=%r adds up at "
            "most %d examples a step.",
            model.name,
            name,
            most,
        )
        name = "loop"
    return make_engine(
        name, model, per_example_loss, l2_norm_clip, largest_step, expected_step
    )


def make_engine(
    name: str,
    model: keras.Model,
    per_example_loss: PerExampleLoss,
    l2_norm_clip: float,
    largest_step: int = 256,
    expected_step: int | None = None,
) -> ClippingEngine:
    """Builds the engine called `name`; see `ClippingEngine` for the arguments.

    Raises:
        InputError: if there is no engine of that name, or it refuses the model.
    """
    engine = engine_class(name)
    return engine(model, per_example_loss, l2_norm_clip, largest_step, expected_step)


def engine_class(name: str) -> type[ClippingEngine]:
    """Returns the engine called `name`, its module being imported if need be.

    Raises:
        InputError: if there is no engine of that name.
    """
    _validation.one_of(engine_names(), engine=name)
    if name not in _ENGINES:
        importlib.import_module(f"tfpriv.dp_training.{_MODULES[name]}")
    return _ENGINES[name]


def wide_dtype(dtype: tf.DType) -> tf.DType:
    """Returns the type that losses, gradients and noise of `dtype` are held in."""
    return tf.float64 if tf.as_dtype(dtype) == tf.float64 else tf.float32
