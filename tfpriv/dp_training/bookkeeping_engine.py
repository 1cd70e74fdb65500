"""The fast clipping engine: one backward pass, norms and sums in closed form."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from tfpriv.dp_training.clipping import (
    ClippingEngine,
    PerExampleLoss,
    make_engine,
    register_engine,
)
from tfpriv.dp_training.closed_forms.form import (
    GROUP_ROWS,
    LARGEST_MASS,
    UNIT_BITS,
    GradientForm,
)
from tfpriv.dp_training.closed_forms.uses import NoClosedForm, gradient_forms

_LOG = logging.getLogger(__name__)

# Examples that go through the model together: always as many, filled up. Matrix
# products treat 4, 6, 8, 12, 16 or 48 rows alike, depending on the processor, and the
# rest of a batch differently; so these leave no rest. The first that serves is used.
_BLOCK_SIZES = (24, 48)
# The second and last attempt at a gradient that is too long when it was rounded.
_SHORTER_STILL = 1.0 - 2.0**-10
# The norm of what was rounded is at most 2^28 * 2^-53 off, relatively.
_NORM_ERROR = 1.0 + 2.0**-24


@register_engine("bookkeeping")
class BookkeepingEngine(ClippingEngine):
    """Clips without ever computing the gradient of one example.

    One forward and one backward pass, no further than to where variables meet
    activations, give for each example the two factors of its gradient by each
    matrix; norms and clipped sums follow in closed form (Bu et al. 2023,
    arXiv:2210.00038). `closed_forms` has the forms. They are found in the graph of
    the loss and not by the classes of layers, so a layer or model of one's own has
    one too if it meets its variables in products, convolutions, look-ups, sums.

    A model in which a variable meets anything else (an LSTM that is not unrolled,
    a table that is also a matrix) falls back to the loop engine as a whole, and the
    log says so with the variable's path.

    Sums are exact, and one example changes them by at most C, to the last bit:

    1. An example's factors do not depend on the batch it is in. All batches pass
       the model in blocks of one fixed size, and before the first the engine makes
       sure, on made-up data, that on this machine no row's factors change by a bit
       with its place or with the other rows. Where they do, it falls back.
    2. The factors are scaled so that their product is the clipped gradient in
       units, and each is rounded to whole numbers. The unit (`unit`) is a power of
       two that depends on C alone.
    3. The norm of the ROUNDED gradient is computed in float64 with a bound on the
       error. Where it may be above C, the example is scaled down a little more and
       rounded again; where it still is, or is not finite, it adds exactly 0.
    4. Sums of products of whole numbers are exact in float64, in any order, while
       the absolute values add up to less than 2^53. A gradient is at most 2^40
       units long; in one matrix product are at most 240 examples, none of which
       may put in more than 2^45; more are summed in groups. So sums are exact for
       up to 2^13 examples a step.

    Rounding is to C * 2^-40 where a gradient is written out, and moves a coordinate
    by at most about C * 2^-18 where it is a product of factors.
    """

    exact_sums = True
    largest_step = 2 ** (53 - UNIT_BITS)

    def __init__(
        self,
        model: keras.Model,
        per_example_loss: PerExampleLoss,
        l2_norm_clip: float,
    ) -> None:
        super().__init__(model, per_example_loss, l2_norm_clip)
        self._keras_variables = list(model.trainable_variables)
        self._blocks: dict[tuple, _Block] = {}
        self._lock = threading.Lock()
        self._loop: ClippingEngine | None = None

    @property
    def unit(self) -> float:
        """What sums are multiples of: a power of two, C * 2^-40 to C * 2^-39."""
        if self._loop is not None:
            return self._loop.unit
        return math.ldexp(1.0, math.frexp(self.l2_norm_clip)[1] - UNIT_BITS)

    def clipped_sum(
        self, inputs: tuple[tf.Tensor, ...], mask: tf.Tensor
    ) -> list[tf.Tensor]:
        """See `ClippingEngine.clipped_sum`."""
        inputs = tuple(tf.convert_to_tensor(x) for x in inputs)
        block = self._block(inputs)
        if self._loop is not None:
            return self._loop.clipped_sum(inputs, mask)
        rows = tf.cast(tf.reshape(tf.where(mask), [-1]), tf.int32)
        count = tf.size(rows)

        def group(start: tf.Tensor) -> list[tf.Tensor]:
            return self._group_sum(block, inputs, rows[start : start + GROUP_ROWS])

        def add_group(start: tf.Tensor, totals: list) -> tuple[tf.Tensor, list]:
            new = group(start)
            return start + GROUP_ROWS, [a + b for a, b in zip(totals, new, strict=True)]

        def sum_all() -> list[tf.Tensor]:
            start = (tf.constant(GROUP_ROWS), group(tf.constant(0)))
            return tf.while_loop(lambda first, _: first < count, add_group, start)[1]

        return tf.cond(count > 0, sum_all, self.zeros)

    def _group_sum(
        self, block: _Block, inputs: tuple[tf.Tensor, ...], rows: tf.Tensor
    ) -> list[tf.Tensor]:
        """The sum over at least one and at most `GROUP_ROWS` rows."""
        count = tf.size(rows)
        size = (count + block.rows - 1) // block.rows

        def add_block(step: tf.Tensor, arrays: list) -> tuple[tf.Tensor, list]:
            places = step * block.rows + tf.range(block.rows)
            taken = tf.gather(rows, tf.minimum(places, count - 1))
            examples = tuple(tf.gather(x, taken) for x in inputs)
            factors = block.factors(*examples, places < count)
            return step + 1, [
                array.write(step, factor)
                for array, factor in zip(arrays, factors, strict=True)
            ]

        arrays = [
            tf.TensorArray(dtype, size, element_shape=shape)
            for dtype, shape in block.signature
        ]
        _, arrays = tf.while_loop(
            lambda step, _: step < size,
            add_block,
            (tf.constant(0), arrays),
            parallel_iterations=1,
        )
        return block.totals([array.concat() for array in arrays], self.unit)

    def _block(self, inputs: tuple[tf.Tensor, ...]) -> _Block | None:
        """The traced block for inputs of this structure; None is the loop."""
        key = tuple((x.dtype, tuple(x.shape[1:])) for x in inputs)
        with self._lock:
            if self._loop is None and key not in self._blocks:
                try:
                    # Out of whatever graph is being built: the block is run here.
                    with tf.init_scope():
                        self._blocks[key] = _first_block(self, key)
                except NoClosedForm as reason:
                    _LOG.warning(
                        "Clipping of %r falls back to the loop, which is slower: %s.",
                        self.model.name,
                        reason,
                    )
                    self._loop = make_engine(
                        "loop", self.model, self._per_example_loss, self.l2_norm_clip
                    )
            return self._blocks.get(key)

    def _block_factors(
        self, inputs: tuple[tf.Tensor, ...], valid: tf.Tensor
    ) -> tuple[list[GradientForm | None], list[tf.Tensor]]:
        """The forms of a block and their factors, 0 where a row adds nothing."""
        losses = self.losses(inputs)
        forms = gradient_forms(self._keras_variables, losses, valid.shape[0])
        used = [form for form in forms if form is not None]
        if not used:
            raise NoClosedForm("the loss depends on no variable")
        norm = tf.sqrt(tf.add_n([form.squared_norms() for form in used]))
        clip = self.l2_norm_clip * (1.0 - max(form.slack for form in used))
        length = self.l2_norm_clip / self.unit
        finite = tf.math.is_finite(norm)
        scale = (clip / self.unit) / tf.maximum(norm, clip)
        scale = tf.where(finite, scale, 0.0)

        def attempt(scale: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
            parts = [form.rounded(scale) for form in used]
            squares = tf.add_n([part.squared_norms for part in parts])
            short = finite & (squares * _NORM_ERROR <= length**2)
            for part in parts:
                # Only crafted examples have factors that cancel so far.
                short &= part.mass <= LARGEST_MASS
            return short, [factor for part in parts for factor in part.factors]

        def again() -> tuple[tf.Tensor, list[tf.Tensor]]:
            # A gradient of many equal numbers can be rounded up in all of them.
            return attempt(tf.where(short, scale, scale * _SHORTER_STILL))

        short, factors = attempt(scale)
        done = tf.reduce_all(short | ~finite | ~valid)
        short, factors = tf.cond(done, lambda: (short, factors), again)
        return forms, [_where(short & valid, factor) for factor in factors]


class _PlaceMatters(NoClosedForm):
    """On this machine a row's gradient depends on its place in the batch."""


def _first_block(engine: BookkeepingEngine, key: tuple) -> _Block:
    for rows in _BLOCK_SIZES[:-1]:
        try:
            return _Block(engine, key, rows)
        except _PlaceMatters:
            continue
    return _Block(engine, key, _BLOCK_SIZES[-1])


class _Block:
    """The graph that turns `rows` examples into factors of their gradients.

    Args:
        engine: whose.
        key: dtype and shape without the batch, one an input.
        rows: int.

    Raises:
        NoClosedForm: if there is none, or rows do not stay apart.
    """

    def __init__(self, engine: BookkeepingEngine, key: tuple, rows: int) -> None:
        self.rows = rows
        specs = [tf.TensorSpec((rows, *shape), dtype) for dtype, shape in key]
        if not all(spec.shape.is_fully_defined() for spec in specs):
            raise NoClosedForm("an input has axes of unknown length")
        self._forms: list[GradientForm | None] = []

        def factors(*tensors: tf.Tensor) -> list[tf.Tensor]:
            *inputs, valid = tensors
            self._forms, factors = engine._block_factors(tuple(inputs), valid)
            return factors

        def everything(*inputs: tf.Tensor) -> list[tf.Tensor]:
            valid = tf.ones([rows], bool)
            forms, factors = engine._block_factors(inputs, valid)
            raw = [tensor for form in forms if form for tensor in form.raw]
            _share_randomness(raw[0].graph, rows)
            return raw + factors

        self._shapes = [v.shape for v in engine.variables]
        self.factors = tf.function(factors, autograph=False).get_concrete_function(
            *specs, tf.TensorSpec((rows,), tf.bool)
        )
        self.signature = [
            (output.dtype, output.shape) for output in self.factors.outputs
        ]
        specimens = _specimens(specs, rows)
        check = tf.function(everything, autograph=False).get_concrete_function(*specs)
        _refuse_rows_that_mix(check, specimens)
        if not any(map(_is_random, self.factors.graph.get_operations())):
            # The graph itself, which may be compiled in another way.
            every = tf.ones([rows], bool)
            _refuse_rows_that_mix(lambda *x: self.factors(*x, every), specimens)

    def totals(self, factors: Sequence[tf.Tensor], unit: float) -> list[tf.Tensor]:
        """The sum over all rows, one tensor a variable."""
        factors = iter(factors)
        totals = []
        for form, shape in zip(self._forms, self._shapes, strict=True):
            if form is None:
                totals.append(tf.zeros(shape, tf.float64))
            else:
                own = tuple(next(factors) for _ in range(form.num_factors))
                totals.append(form.total(own, unit))
        return totals


def _where(kept: tf.Tensor, factor: tf.Tensor) -> tf.Tensor:
    if factor.dtype.is_integer:
        # Ids of a table's rows, which the rows' zeros are added to.
        return factor
    shape = [-1] + [1] * (factor.shape.rank - 1)
    return tf.where(tf.reshape(kept, shape), factor, tf.zeros([], factor.dtype))


def _is_random(op: tf.Operation) -> bool:
    return "Random" in op.type and len(op.outputs) == 1


def _share_randomness(graph: tf.Graph, rows: int) -> None:
    """Has every row and every run draw the same, so that they can be compared."""
    for op in filter(_is_random, graph.get_operations()):
        (drawn,) = op.outputs
        if drawn.shape.rank and drawn.shape[0] == rows:
            readers = drawn.consumers()
            fixed = np.random.default_rng(0).uniform(size=drawn.shape[1:])
            with graph.as_default():
                shared = tf.broadcast_to(tf.cast(fixed, drawn.dtype), drawn.shape)
            for reader in readers:
                for i, tensor in enumerate(reader.inputs):
                    if tensor is drawn:
                        reader._update_input(i, shared)


def _specimens(
    specs: list[tf.TensorSpec], rows: int
) -> tuple[np.ndarray, list[tf.Tensor], list[tf.Tensor]]:
    """Which rows hold one made-up example in both batches; one where all do."""
    generator = np.random.default_rng(0)
    kept = generator.permutation(rows) < rows // 2
    kept[0] = True
    alike, mixed = [], []
    for spec in specs:
        if spec.dtype.is_floating:
            drawn = generator.normal(size=spec.shape)
        else:
            # Ids that every table has.
            drawn = generator.integers(0, 2, spec.shape)
        drawn[kept] = drawn[0]
        mixed.append(tf.constant(drawn.astype(spec.dtype.as_numpy_dtype)))
        alike.append(tf.repeat(mixed[-1][:1], rows, axis=0))
    return kept, alike, mixed


def _refuse_rows_that_mix(
    compute: Callable[..., list[tf.Tensor]],
    specimens: tuple[np.ndarray, list[tf.Tensor], list[tf.Tensor]],
) -> None:
    """Makes sure that what a row gives depends on that row alone, to the last bit.

    In which order a matrix product adds depends on shapes and places and not on
    numbers, so a place that is treated differently shows on any data.

    Raises:
        NoClosedForm: if it depends on another row, or on its place.
    """
    kept, alike, mixed = specimens
    try:
        alike, mixed = compute(*alike), compute(*mixed)
    except tf.errors.OpError as error:
        raise NoClosedForm("the loss fails on made-up rows") from error
    for one, other in zip(alike, mixed, strict=True):
        one, other = one.numpy(), other.numpy()
        if one.tobytes() != np.repeat(one[:1], len(one), axis=0).tobytes():
            raise _PlaceMatters("a row's gradient depends on its place in the batch")
        if one[kept].tobytes() != other[kept].tobytes():
            raise NoClosedForm("a row's gradient depends on the other rows")
