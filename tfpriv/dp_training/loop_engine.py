"""The plain clipping engine: one example after the other, any model."""

from __future__ import annotations

import tensorflow as tf

from tfpriv.dp_training.clipping import ClippingEngine, register_engine, wide_dtype


@register_engine("loop")
class LoopEngine(ClippingEngine):
    """Takes one gradient an example in a graph loop and adds it where it belongs.

    It makes no assumption about the layers, so it is the engine that faster ones
    are compared with and fall back to. Inside a tf.function the loop is a graph
    loop: no Python runs per example. Padding costs nothing, since masked rows
    are never looked at. Gradients of embedding tables stay sparse: only the rows
    that the example's tokens name are normed and kept, repeated tokens being
    summed before they are normed; the table is filled once, when the loop is done.
    Sums are exact: see `ClippingEngine.to_units`.
    """

    rounding = 0.0

    def clipped_sum(
        self, inputs: tuple[tf.Tensor, ...], mask: tf.Tensor
    ) -> list[tf.Tensor]:
        """See `ClippingEngine.clipped_sum`."""
        rows = tf.cast(tf.reshape(tf.where(mask), [-1]), tf.int32)
        count = tf.size(rows)
        # Whose gradients are sparse is known once the loop's body was traced.
        tables = {i: v.shape for i, v in enumerate(self.variables) if v.shape.rank == 2}
        sparse: set[int] = set()

        def add_example(
            step: tf.Tensor, totals: list, places: dict, parts: dict
        ) -> tuple[tf.Tensor, list, dict, dict]:
            totals, places, parts = list(totals), dict(places), dict(parts)
            example = tuple(x[rows[step]][tf.newaxis] for x in inputs)
            gradients = self._example_gradients(example)
            for i, gradient in gradients.items():
                if isinstance(gradient, tf.IndexedSlices):
                    if i in tables:
                        sparse.add(i)
                        named, gradient = _each_row_once(gradient)
                        places[i] = places[i].write(step, named)
                    gradients[i] = tf.convert_to_tensor(gradient)
            units = self.to_units([*gradients.values()])
            for i, unit in zip(gradients, units, strict=True):
                if i in sparse:
                    parts[i] = parts[i].write(step, unit)
                else:
                    totals[i] = totals[i] + unit
            return step + 1, totals, places, parts

        start = (
            tf.constant(0),
            # A scalar 0 takes a variable's shape when an example is added to it.
            [tf.constant(0, tf.int64) for _ in self.variables],
            {i: _rows_of_examples(count) for i in tables},
            {i: _rows_of_examples(count, shape[1]) for i, shape in tables.items()},
        )
        any_shape = tf.nest.map_structure(lambda _: tf.TensorShape(None), start)
        _, totals, places, parts = tf.while_loop(
            lambda step, *_: step < count, add_example, start, any_shape
        )
        for i in sparse:
            totals[i] = tf.math.unsorted_segment_sum(
                parts[i].concat(), places[i].concat(), tables[i][0]
            )
        return [
            self.from_units(tf.broadcast_to(total, variable.shape))
            for total, variable in zip(totals, self.variables, strict=True)
        ]

    def zeros(self) -> list[tf.Tensor]:
        """See `ClippingEngine.zeros`."""
        return [tf.zeros(v.shape, tf.float64) for v in self.variables]

    def _example_gradients(
        self, example: tuple[tf.Tensor, ...]
    ) -> dict[int, tf.Tensor | tf.IndexedSlices]:
        """The gradients of one example by number of the variable, where it has one."""
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self.variables)
            losses = self.losses(example)
        gradients = tape.gradient(losses, self.variables)
        return {i: _widened(g) for i, g in enumerate(gradients) if g is not None}


def _rows_of_examples(count: tf.Tensor, *width: int) -> tf.TensorArray:
    """An array with an element an example: its rows of a table, as many as it has."""
    return tf.TensorArray(
        tf.int64, size=count, infer_shape=False, element_shape=(None, *width)
    )


def _widened(gradient: tf.Tensor | tf.IndexedSlices) -> tf.Tensor | tf.IndexedSlices:
    # A norm taken in half precision would let an example be clipped too little.
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.cast(gradient.values, wide_dtype(gradient.dtype))
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return tf.cast(gradient, wide_dtype(gradient.dtype))


def _each_row_once(gradient: tf.IndexedSlices) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the distinct rows of a table that a gradient names, and their sums."""
    rows, position = tf.unique(tf.cast(gradient.indices, tf.int64))
    sums = tf.math.unsorted_segment_sum(gradient.values, position, tf.size(rows))
    return rows, sums
