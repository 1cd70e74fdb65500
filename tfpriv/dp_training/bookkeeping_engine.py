"""The fast clipping engine: one backward pass, norms and sums in closed form."""

from __future__ import annotations

import functools
import logging
import threading

import keras
import tensorflow as tf

from tfpriv.dp_training.clipping import (
    ClippingEngine,
    PerExampleLoss,
    make_engine,
    register_engine,
)
from tfpriv.dp_training.closed_forms.form import MOST_ROWS
from tfpriv.dp_training.closed_forms.uses import NoClosedForm
from tfpriv.dp_training.example_block import (
    ExampleBlock,
    PlaceMatters,
    sums_in_float32_are_bounded,
)

_LOG = logging.getLogger(__name__)

# Examples that go through the model together: blocks of one or two fixed sizes,
# filled up. Matrix products treat 4, 6, 8, 12, 16 or 48 rows alike, depending on the
# processor and on the rows that an example has in them, and the rest of a batch
# differently; the first large size that serves is used, and the small one beside it
# for the rest of a batch, where it serves as well. Both are multiples of 6 or both of
# 4: see `OuterProducts`.
_BLOCK_SIZES = ((66, 18), (72, 24), (48, 24), (24, 12))
# Where steps usually have so few examples: less is filled up.
_FEW, _BLOCK_SIZES_OF_FEW = 44, ((32, 16), (36, 12), (40, 24), (24, 12))


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

    One example moves the sum by at most `sensitivity`, rounding included:

    1. An example's factors do not depend on the batch it is in. All batches pass
       the model in blocks of one or two fixed sizes, and before the first the
       engine makes sure, on made-up data, that on this machine no row's factors
       change by a bit with its place, with the other rows or with the size of the
       block. Where they do, another size is taken, or the loop. Nor do they hang on
       timing: see `sum_in_order`.
    2. Factors, not gradients, are what is clipped: example i adds g_i, the sum of
       outer products of its float32 factors as they are after scaling, in real
       numbers. Norms are computed in float64 from the factors. With the mass m, the
       norm when products are replaced by their absolute values, scaling rounds by
       at most 2^-22 m (two float32 roundings a product; what is smaller than 2^-126
       is in m). Where norms of large factors are computed in float32, the forms say
       how much longer they may be; with M, the longest, the scale is C / (norm' (1 +
       2^-22) + 2^-22 m), norm' the larger of norm and M / (1 + 2^-11). So |g_i| <= C
       (1 + 2^-11). The scale is below C / norm by more than 2^-10 only where crafted
       factors cancel, and never lets m be above 2^10 C. A gradient that is not
       finite, over 2^60 C long or too long for float32's squares adds 0.
    3. What is returned is within E = 1.75 * 2^-10 C of the sum of all g_i, for up to
       `largest_step` (n) examples. A sum of N products is off by at most N u times
       the sum of their absolute values, u = 2^-24 for float32, in any order (Higham
       2002, section 3.1; zeros count nothing). For a group of rows that is N u times
       the sum of their m, which is computed: where the groups' share of E would be
       used up, the group is summed in float64, where it is below 2^-20 C / n a row.
       What is added up is rounded to float32 twice at most, a group's sum and the
       sum of groups, 2 n u C: at most 2^-10 C, and of E the rest is for the groups.

    So two sums that differ in one example are at most C (1 + 2^-11) + 2 E apart,
    which is C (1 + 2^-8), or C (1 + 2 `rounding`).
    """

    rounding = 2.0**-9
    most_examples = 2**13

    def __init__(
        self,
        model: keras.Model,
        per_example_loss: PerExampleLoss,
        l2_norm_clip: float,
        largest_step: int = 256,
        expected_step: int | None = None,
    ) -> None:
        super().__init__(
            model, per_example_loss, l2_norm_clip, largest_step, expected_step
        )
        self._keras_variables = list(model.trainable_variables)
        self._blocks: dict[tuple, list[ExampleBlock]] = {}
        self._lock = threading.Lock()
        self._loop: ClippingEngine | None = None
        self._narrow = sums_in_float32_are_bounded()
        # What float32 sums may add to a step's error, in clips; see above.
        self._narrow_error = 1.75 * 2.0**-10 - self.largest_step * 2.0**-23

    def clipped_sum(
        self, inputs: tuple[tf.Tensor, ...], mask: tf.Tensor
    ) -> list[tf.Tensor]:
        """See `ClippingEngine.clipped_sum`."""
        inputs = tuple(tf.convert_to_tensor(x) for x in inputs)
        blocks = self._blocks_for(inputs)
        if blocks is None:
            sums = self._loop.clipped_sum(inputs, mask)
            return [
                tf.cast(s, z.dtype) for s, z in zip(sums, self.zeros(), strict=True)
            ]
        rows = tf.cast(tf.reshape(tf.where(mask), [-1]), tf.int32)
        count = tf.size(rows)

        # Not inlined: it is called in two places, and optimised once.
        @functools.partial(
            tf.function,
            autograph=False,
            experimental_attributes={"_noinline": True},
        )
        def group(start: tf.Tensor) -> list[tf.Tensor]:
            return self._group_sum(blocks, inputs, rows[start : start + MOST_ROWS])

        def add_group(start: tf.Tensor, totals: list) -> tuple[tf.Tensor, list]:
            new = group(start)
            return start + MOST_ROWS, [
                total + tf.cast(part, tf.float64)
                for total, part in zip(totals, new, strict=True)
            ]

        def several_groups() -> list[tf.Tensor]:
            zeros = [tf.zeros(v.shape, tf.float64) for v in self.variables]
            _, totals = tf.while_loop(
                lambda start, _: start < count, add_group, (tf.constant(0), zeros)
            )
            return [
                tf.cast(t, z.dtype) for t, z in zip(totals, self.zeros(), strict=True)
            ]

        def some_rows() -> list[tf.Tensor]:
            return tf.cond(
                count <= MOST_ROWS, lambda: group(tf.constant(0)), several_groups
            )

        return tf.cond(count > 0, some_rows, self.zeros)

    def _group_sum(
        self,
        blocks: list[ExampleBlock],
        inputs: tuple[tf.Tensor, ...],
        rows: tf.Tensor,
    ) -> list[tf.Tensor]:
        """The sum over at least one and at most `MOST_ROWS` rows."""
        count = tf.size(rows)
        large, small = blocks[0], blocks[-1]
        # Three quarters of a large block's rows and fewer go through small ones.
        few = 3 * large.rows // (4 * small.rows) * small.rows

        def run(block: ExampleBlock, start: tf.Tensor) -> list[tf.Tensor]:
            places = start + tf.range(block.rows)
            taken = tf.gather(rows, tf.minimum(places, count - 1))
            examples = tuple(tf.gather(x, taken) for x in inputs)
            return tf.nest.flatten(block.clip(*examples, places < count))

        def add_block(start: tf.Tensor, parts: list) -> tuple[tf.Tensor, list]:
            fits = count - start > few
            new = tf.cond(fits, lambda: run(large, start), lambda: run(small, start))
            start += tf.where(fits, large.rows, small.rows)
            return start, [tf.concat(pair, 0) for pair in zip(parts, new, strict=True)]

        def several_blocks() -> list[tf.Tensor]:
            empty = [tf.zeros([0, *s[1:]], dtype) for dtype, s in large.signature]
            any_rows = [tf.TensorShape([None, *s[1:]]) for _, s in large.signature]
            _, parts = tf.while_loop(
                lambda start, _: start < count,
                add_block,
                (tf.constant(0), empty),
                (tf.TensorShape([]), any_rows),
                parallel_iterations=1,
            )
            return parts

        one_block = (count <= large.rows) & (count > few)
        parts = tf.cond(one_block, lambda: run(large, tf.constant(0)), several_blocks)
        *factors, mass, terms = parts
        if not (self._narrow and large.has_narrow_sums):
            return large.totals(factors, narrow=False)
        terms = tf.maximum(tf.reduce_sum(terms), float(large.narrow_terms))
        error = terms * 2.0**-24 * tf.reduce_sum(mass)
        share = tf.cast(count, tf.float64) / self.largest_step
        return tf.cond(
            error <= self._narrow_error * self.l2_norm_clip * share,
            lambda: large.totals(factors, narrow=True),
            lambda: large.totals(factors, narrow=False),
        )

    def _blocks_for(self, inputs: tuple[tf.Tensor, ...]) -> list[ExampleBlock] | None:
        """The traced blocks for inputs of this structure; None is the loop."""
        key = tuple((x.dtype, tuple(x.shape[1:])) for x in inputs)
        with self._lock:
            if self._loop is None and key not in self._blocks:
                try:
                    # Out of whatever graph is being built: blocks are run here.
                    with tf.init_scope():
                        self._blocks[key] = self._first_blocks_that_serve(key)
                except NoClosedForm as reason:
                    _LOG.warning(
                        "Clipping of %r falls back to the loop, which is slower: %s.",
                        self.model.name,
                        reason,
                    )
                    self._loop = make_engine(
                        "loop",
                        self.model,
                        self._per_example_loss,
                        self.l2_norm_clip,
                        self.largest_step,
                    )
            return self._blocks.get(key)

    def _first_blocks_that_serve(self, key: tuple) -> list[ExampleBlock]:
        small_steps = self.expected_step <= _FEW
        sizes = _BLOCK_SIZES_OF_FEW if small_steps else _BLOCK_SIZES
        for large_rows, small_rows in sizes:
            large = self._block(key, large_rows)
            try:
                large.check()
            except PlaceMatters as reason:
                why = reason
                continue
            small = self._block(key, small_rows)
            try:
                small.check(like=large)
            except PlaceMatters:
                return [large]
            return [large, small]
        raise why

    def _block(self, key: tuple, rows: int) -> ExampleBlock:
        return ExampleBlock(
            self.losses, self._keras_variables, self.l2_norm_clip, key, rows
        )
