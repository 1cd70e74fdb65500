"""Finds where trainable variables meet the activations of examples, in a graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import keras
import tensorflow as tf

from tfpriv.dp_training.closed_forms import outer_products, table_rows, whole_gradients
from tfpriv.dp_training.closed_forms.form import GradientForm
from tfpriv.dp_training.closed_forms.outer_products import OuterProducts, Windows
from tfpriv.dp_training.closed_forms.table_rows import TableRows
from tfpriv.dp_training.closed_forms.whole_gradients import WholeGradients

# What hands on a variable's entries in their order.
_VIEWS = frozenset(
    {"ReadVariableOp", "Identity", "Cast", "Reshape", "ExpandDims", "Squeeze"}
)
# Larger ones are not written out for every example.
_LARGEST_SCALE = 2**20


class NoClosedForm(Exception):
    """A variable is used in a way for which there is no closed form here."""


def gradient_forms(
    variables: Sequence[keras.Variable], losses: tf.Tensor, rows: int
) -> list[GradientForm | None]:
    """The gradients of each example by each variable.

    Call it while the graph that `losses` belongs to is built. It reads that graph
    and adds the backward pass to it, no further than to what the variables meet:
    no gradient by a variable is computed.

    Args:
        variables: trainable variables.
        losses: (rows,), one an example.
        rows: int. How many examples there are, the first axis of activations.

    Returns:
        One form a variable; None where the losses do not depend on it.

    Raises:
        NoClosedForm: with the variable's path and what it meets.
    """
    graph = losses.graph
    met = [list(_meetings(graph.capture(v.value.handle))) for v in variables]
    outputs = [y for uses in met for op, _ in uses for y in op.outputs if _flows(y)]
    # What is looked up below is None where the losses do not depend on it.
    deltas = {}
    if outputs:
        slopes = tf.gradients(
            losses,
            outputs,
            # Two at a time, whose order changes no bit: see `sum_in_order`.
            aggregation_method=tf.AggregationMethod.EXPERIMENTAL_TREE,
        )
        deltas = {y.ref(): d for y, d in zip(outputs, slopes, strict=True)}
    forms = []
    for variable, uses in zip(variables, met, strict=True):
        found = []
        for op, view in uses:
            reached = [y for y in op.outputs if deltas.get(y.ref()) is not None]
            if not reached:
                continue
            maker = _MAKERS.get(op.type)
            form = None
            if maker is not None and deltas[reached[0].ref()].shape.is_fully_defined():
                delta = tf.convert_to_tensor(deltas[reached[0].ref()])
                form = maker(op, view, delta, rows, tuple(variable.shape))
            if form is None:
                raise NoClosedForm(f"{variable.path} meets {op.type}")
            found.append(form)
        forms.append(_one_form(found, variable.path))
    unused = [v for v, form in zip(variables, forms, strict=True) if form is None]
    slopes = tf.gradients(losses, [v.value for v in unused]) if unused else []
    for variable, slope in zip(unused, slopes, strict=True):
        if slope is not None:
            raise NoClosedForm(f"{variable.path} is used out of sight")
    return forms


def _flows(tensor: tf.Tensor) -> bool:
    """Whether gradients may flow through a tensor."""
    return tensor.dtype.is_floating or tensor.dtype == tf.variant


def _meetings(tensor: tf.Tensor) -> Iterator[tuple[tf.Operation, tf.Tensor]]:
    """The operations in which a variable's entries meet something else."""
    for op in {id(op): op for op in tensor.consumers()}.values():
        if op.type in _VIEWS and op.inputs[0] is tensor:
            yield from _meetings(op.outputs[0])
        else:
            yield op, tensor


def _one_form(found: list[GradientForm], path: str) -> GradientForm | None:
    if not found:
        return None
    if all(isinstance(form, TableRows) for form in found):
        return table_rows.joined(found)
    if any(isinstance(form, TableRows) for form in found):
        raise NoClosedForm(f"{path} is tied: both a table and a matrix")
    if all(isinstance(form, OuterProducts) for form in found):
        form = outer_products.joined(found)
        return form.written_out() if form.is_small else form
    return whole_gradients.added(
        [f.written_out() if isinstance(f, OuterProducts) else f for f in found]
    )


def _of_product(op, view, delta, rows, shape) -> OuterProducts | None:  # noqa: ANN001
    x = op.inputs[0]
    if op.inputs[1] is not view or x is view or op.get_attr("transpose_a"):
        return None
    return _product(x, delta, rows, shape, op.get_attr("transpose_b"))


def _of_batched_product(op, view, delta, rows, shape) -> OuterProducts | None:  # noqa: ANN001
    x = op.inputs[0]
    if op.inputs[1] is not view or x is view or op.get_attr("adj_x"):
        return None
    if math.prod(view.shape[:-2]) != 1 or x.shape[0] != rows:
        return None
    return _product(x, delta, rows, shape, op.get_attr("adj_y"))


def _product(
    x: tf.Tensor,
    delta: tf.Tensor,
    rows: int,
    shape: tuple[int, ...],
    transposed: bool,
) -> OuterProducts | None:
    if not x.shape.is_fully_defined() or not _rows_first(x, rows):
        return None
    x = tf.reshape(x, [rows, -1, x.shape[-1]])
    delta = tf.reshape(delta, [rows, -1, delta.shape[-1]])
    if math.prod(shape) != x.shape[-1] * delta.shape[-1]:
        return None
    return OuterProducts(*((delta, x) if transposed else (x, delta)), shape)


def _of_convolution(op, view, delta, rows, shape) -> OuterProducts | None:  # noqa: ANN001
    x = op.inputs[0]
    padding = op.get_attr("padding").decode()
    channels_last = op.get_attr("data_format") == b"NHWC"
    if op.inputs[1] is not view or x is view or not channels_last:
        return None
    if padding == "EXPLICIT" or not x.shape.is_fully_defined():
        return None
    # Groups share a kernel between channels.
    if x.shape[0] != rows or x.shape[3] != view.shape[2]:
        return None
    windows = Windows(
        tuple(view.shape[:2]),
        tuple(op.get_attr("strides")[1:3]),
        tuple(op.get_attr("dilations")[1:3]),
        padding,
    )
    delta = tf.reshape(delta, [rows, -1, delta.shape[-1]])
    return OuterProducts(x, delta, shape, windows)


def _of_lookup(op, view, delta, rows, shape) -> TableRows | None:  # noqa: ANN001
    ids = op.inputs[1]
    if op.inputs[0] is not view or len(shape) != 2 or op.get_attr("batch_dims"):
        return None
    if op.type == "GatherV2" and tf.get_static_value(op.inputs[2]) != 0:
        return None
    if op.type == "GatherV2" and tuple(view.shape) != shape:
        return None
    if not ids.shape.is_fully_defined() or not _rows_first(ids, rows):
        return None
    ids = tf.reshape(ids, [rows, -1])
    return TableRows(ids, tf.reshape(delta, [rows, -1, shape[1]]), shape)


def _of_elementwise(op, view, delta, rows, shape) -> WholeGradients | None:  # noqa: ANN001
    first, second = op.inputs
    if first is second or not _rows_first(op.outputs[0], rows):
        return None
    if op.type == "BiasAdd" and op.get_attr("data_format") != b"NHWC":
        return None
    other = second if view is first else first
    entering = tuple(view.shape)
    if delta.shape[0] != rows:
        # Positions were folded into the rows: what enters must not see them.
        if len(entering) >= delta.shape.rank and entering[0] != 1:
            return None
        if op.type == "Mul":
            other = tf.broadcast_to(other, delta.shape)
            other = tf.reshape(other, [rows, -1, *delta.shape[1:]])
        if len(entering) == delta.shape.rank:
            entering = entering[1:]
        delta = tf.reshape(delta, [rows, -1, *delta.shape[1:]])
    elif len(entering) == delta.shape.rank and entering[0] != 1:
        return None
    if math.prod(entering) != math.prod(shape) or math.prod(shape) > _LARGEST_SCALE:
        return None
    if op.type == "Sub" and view is second:
        delta = -delta
    return whole_gradients.elementwise_gradients(
        delta, other if op.type == "Mul" else None, entering, shape
    )


def _rows_first(tensor: tf.Tensor, rows: int) -> bool:
    """Whether a tensor has the examples first, positions perhaps folded in."""
    for _ in range(64):
        shape = tensor.shape
        if shape.rank is None or shape.rank == 0 or not shape[0] or shape[0] % rows:
            return False
        if shape[0] == rows:
            return True
        op = tensor.op
        if not op.inputs:
            return False
        same = [x for x in op.inputs if x.shape.rank and x.shape[0] == shape[0]]
        if op.type != "Reshape" and not same:
            return False
        tensor = op.inputs[0] if op.type == "Reshape" else same[0]
    return False


_MAKERS = {
    "MatMul": _of_product,
    "BatchMatMul": _of_batched_product,
    "BatchMatMulV2": _of_batched_product,
    "BatchMatMulV3": _of_batched_product,
    "Conv2D": _of_convolution,
    "GatherV2": _of_lookup,
    "ResourceGather": _of_lookup,
    **dict.fromkeys(("Add", "AddV2", "BiasAdd", "Sub", "Mul"), _of_elementwise),
}
