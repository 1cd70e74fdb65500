"""Some examples through the model at once: norms, and factors of clipped gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tfpriv.dp_training.clipping import wide_dtype
from tfpriv.dp_training.closed_forms.form import GradientForm, sum_in_order
from tfpriv.dp_training.closed_forms.uses import NoClosedForm, gradient_forms

# An example with a gradient of more clips than this adds nothing.
_LONGEST = 2.0**60
# How many clips long a clipped gradient may be, since norms are rounded.
LONGER = 1.0 + 2.0**-11
# How many clips long the absolute products of a clipped gradient may be together.
LARGEST_MASS = 2.0**10
# Sums in float64 are near enough for as many uses of a variable in an example.
_MOST_POSITIONS = 2**11


class Clipped(NamedTuple):
    """The clipped gradients of some rows, in factors; all float64 but `factors`.

    Attributes:
        factors: of all forms, one after the other, each (rows, ...).
        mass: (rows,). See `Size.squared_mass`, of the whole clipped gradient.
        terms: (rows,). The largest `Size.terms`.
    """

    factors: tuple[tf.Tensor, ...]
    mass: tf.Tensor
    terms: tf.Tensor


class PlaceMatters(NoClosedForm):
    """On this machine a row's gradient depends on its place in the batch."""


class ExampleBlock:
    """The graph that clips the gradients of `rows` examples and leaves them factored.

    Args:
        losses: inputs, each (rows, ...) -> (rows,).
        variables: trainable variables of the model.
        l2_norm_clip: float. C.
        specs: dtype and shape without the batch, one an input.
        rows: int.

    Raises:
        NoClosedForm: if there is none, or rows do not stay apart.
    """

    def __init__(
        self,
        losses: Callable[[tuple[tf.Tensor, ...]], tf.Tensor],
        variables: Sequence[keras.Variable],
        l2_norm_clip: float,
        specs: Sequence[tuple[tf.DType, tuple[int, ...]]],
        rows: int,
    ) -> None:
        self.rows = rows
        self._losses = losses
        self._variables = variables
        self._l2_norm_clip = l2_norm_clip
        self._forms: list[GradientForm | None] = []
        specs = [tf.TensorSpec((rows, *shape), dtype) for dtype, shape in specs]
        if not all(spec.shape.is_fully_defined() for spec in specs):
            raise NoClosedForm("an input has axes of unknown length")
        self._signature = (*specs, tf.TensorSpec((rows,), tf.bool))
        self._is_random = False
        self._repeatable = self._traced(self._clip_alike)
        outputs = self._repeatable.outputs
        self.signature = [(x.dtype, x.shape) for x in outputs]
        self._specimens(specs)

    @functools.cached_property
    def clip(self) -> Callable[..., Clipped]:
        """`(*inputs, valid)`, the last bool (rows,), to factors; the others add 0."""
        # Tracing is what takes the longest, so where nothing is random once is enough.
        return self._traced(self._clip) if self._is_random else self._repeatable

    def totals(self, factors: Sequence[tf.Tensor], narrow: bool) -> list[tf.Tensor]:
        """The sum over all rows, in any number, one tensor a variable.

        Args:
            factors: of `Clipped`.
            narrow: whether large variables are summed in float32.
        """
        factors = iter(factors)
        totals = []
        for form, variable in zip(self._forms, self._variables, strict=True):
            dtype = wide_dtype(variable.value.dtype)
            if form is None:
                totals.append(tf.zeros(variable.shape, dtype))
            else:
                own = tuple(next(factors) for _ in range(form.num_factors))
                total = form.total(own, narrow and form.narrow)
                totals.append(tf.cast(total, dtype))
        return totals

    @property
    def narrow_terms(self) -> int:
        """The largest `GradientForm.narrow_terms`."""
        return max(form.narrow_terms for form in self._forms if form is not None)

    @property
    def has_narrow_sums(self) -> bool:
        """Whether any variable is large enough to be summed in float32."""
        return any(form is not None and form.narrow for form in self._forms)

    def check(self, like: ExampleBlock | None = None) -> None:
        """Makes sure that what a row gives depends on that row alone, to the last bit.

        In which order a matrix product adds depends on shapes and places and not on
        numbers, so a place that is treated differently shows on any data.

        Args:
            like: another block, of another size, that must give rows the same.

        Raises:
            NoClosedForm: if it depends on another row.
            PlaceMatters: if it depends on its place or on the size of the block.
        """
        kept, alike, mixed = self._made_up
        try:
            self._one_row = [same_row(x.numpy()) for x in self._run(alike)]
            for one, other in zip(self._one_row, self._run(mixed), strict=True):
                refuse_rows_that_mix(one, other.numpy()[kept])
        except tf.errors.OpError as error:
            raise NoClosedForm("the loss fails on made-up rows") from error
        if like is not None:
            for one, other in zip(self._one_row, like._one_row, strict=True):
                if one.tobytes() != other.tobytes():
                    raise PlaceMatters("a row's gradient depends on the block's size")

    def _clip(self, *tensors: tf.Tensor) -> Clipped:
        *inputs, valid = tensors
        losses = self._losses(tuple(inputs))
        self._forms = gradient_forms(self._variables, losses, self.rows)
        forms = [form for form in self._forms if form is not None]
        if not forms:
            raise NoClosedForm("the loss depends on no variable")
        if any(form.positions > _MOST_POSITIONS for form in forms):
            raise NoClosedForm(f"a variable is used over {_MOST_POSITIONS} times")
        sizes = [form.size() for form in forms]
        squares = sum_in_order([size.squared_norm for size in sizes])
        longest = tf.sqrt(squares + sum_in_order([size.doubt for size in sizes]))
        norm = tf.maximum(tf.sqrt(squares), longest / LONGER)
        mass = tf.sqrt(sum_in_order([size.squared_mass for size in sizes]))
        terms = tf.reduce_max(tf.stack([size.terms for size in sizes]), axis=0)
        bound = norm * (1.0 + 2.0**-22) + mass * 2.0**-22
        clip = self._l2_norm_clip
        scale = clip / tf.maximum(tf.maximum(bound, mass / LARGEST_MASS), clip)
        finite = bound <= clip * _LONGEST
        kept = valid & finite
        scale = tf.where(kept, scale, 0.0)
        factors = [x for form in forms for x in form.factors(scale, finite)]
        mass = tf.where(kept, scale * mass, 0.0)
        return Clipped(tuple(factors), mass, tf.where(kept, terms, 0.0))

    def _clip_alike(self, *tensors: tf.Tensor) -> Clipped:
        """`_clip`, each row drawing the same where something is drawn."""
        clipped = self._clip(*tensors)
        graph = clipped.mass.graph
        self._is_random = any(map(_is_random, graph.get_operations()))
        _share_randomness(graph, self.rows)
        return clipped

    def _traced(self, clip: Callable[..., Clipped]) -> Callable[..., Clipped]:
        # Not inlined: it is called in several places, and optimised once.
        function = tf.function(
            clip, autograph=False, experimental_attributes={"_noinline": True}
        )
        return function.get_concrete_function(*self._signature)

    def _run(self, inputs: list[tf.Tensor]) -> list[tf.Tensor]:
        every = tf.ones([self.rows], bool)
        return tf.nest.flatten(self._repeatable(*inputs, every))

    def _specimens(self, specs: list[tf.TensorSpec]) -> None:
        """Which rows hold one made-up example in both batches; one where all do."""
        generator = np.random.default_rng(0)
        kept = np.random.default_rng(1).permutation(self.rows) < self.rows // 2
        kept[0] = True
        alike, mixed = [], []
        for spec in specs:
            if spec.dtype.is_floating:
                first = generator.normal(size=spec.shape[1:])
                others = np.random.default_rng(2).normal(size=spec.shape)
            else:
                # Ids that every table has.
                first = generator.integers(0, 2, spec.shape[1:])
                others = np.random.default_rng(2).integers(0, 2, spec.shape)
            others[kept] = first
            mixed.append(tf.constant(others.astype(spec.dtype.as_numpy_dtype)))
            alike.append(tf.repeat(mixed[-1][:1], self.rows, axis=0))
        self._made_up = kept, alike, mixed


def same_row(rows: np.ndarray) -> np.ndarray:
    """The row (...) that (rows, ...) consists of, where all rows hold one example.

    Raises:
        PlaceMatters: if rows differ in any bit.
    """
    if not _all_bits_equal(rows, rows[:1]):
        raise PlaceMatters("a row's gradient depends on its place in the batch")
    return rows[0].copy()


def refuse_rows_that_mix(alone: np.ndarray, among_others: np.ndarray) -> None:
    """Compares what an example gave among its equals with what it gave among others.

    Args:
        alone: (...), of `same_row`.
        among_others: (n, ...), of the same example.

    Raises:
        NoClosedForm: if they differ in any bit.
    """
    if not _all_bits_equal(among_others, alone[None]):
        raise NoClosedForm("a row's gradient depends on the other rows")


def _all_bits_equal(rows: np.ndarray, row: np.ndarray) -> bool:
    """Row by row: a comparison of all at once holds as much again."""
    expected = row.tobytes()
    return all(one.tobytes() == expected for one in rows)


def sums_in_float32_are_bounded() -> bool:
    """Whether float32 products keep float32's precision where they run.

    Not on a GPU that takes TensorFloat-32 for it, nor where oneDNN is told to use
    bfloat16.
    """
    if tf.config.list_physical_devices("GPU"):
        return False
    generator = np.random.default_rng(0)
    a, b = (generator.uniform(1, 2, (64, n)).astype(np.float32) for n in (256, 512))
    ours = tf.matmul(a, b, transpose_a=True).numpy()
    exact = a.astype(np.float64).T @ b
    return bool(np.abs(ours - exact).max() <= 64 * 2.0**-24 * exact.max())


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
