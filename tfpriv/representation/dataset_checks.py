"""Checks of a tf.data.Dataset: its kind before any work, its values batch by batch.

A stream can be checked no earlier than it is read. TensorFlow's own complaints come
later still and print the labels of a whole batch; these name a row and a batch.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from tfpriv._errors import InputError

_WEIGHTS = "sample_weight"
_TOLD = re.compile(r"assertion failed: \[(Expected [^\]]*)\]")


def check_dataset(dataset: tf.data.Dataset) -> None:
    """Refuses a data set of single texts, or whose first component is no text."""
    spec = dataset.element_spec
    spec = spec[0] if isinstance(spec, tuple) else spec
    rank = {tf.string: 1, tf.int32: 2}.get(getattr(spec, "dtype", None))
    if rank is None:
        raise InputError(
            f"Expected a data set of (texts, targets), received {dataset.element_spec}."
        )
    if spec.shape.rank is not None and spec.shape.rank != rank:
        raise InputError(
            "Expected a data set of batches of texts, received one of single texts. "
            "Call .batch(32) on it."
        )


def checked_texts(dataset: tf.data.Dataset, vocabulary: int) -> tf.data.Dataset:
    """Returns the texts, or word pieces, of a data set, each batch checked.

    Args:
        dataset: of batches of texts, alone or before other components.
        vocabulary: word pieces there are.

    Raises:
        InputError: `check_dataset` refuses it.
    """
    check_dataset(dataset)

    def check(number: tf.Tensor, element: Any) -> tf.Tensor:
        texts = element[0] if isinstance(element, tuple) else element
        return _checked_ids(texts, vocabulary, number)

    return dataset.enumerate().map(check)


def checked_dataset(
    dataset: tf.data.Dataset,
    classes: Mapping[str, int | None],
    *,
    vocabulary: int,
    needed: tuple[str, ...],
) -> tf.data.Dataset:
    """Returns batches (texts, targets) or (texts, targets, weights), each checked.

    Args:
        dataset: its targets are a dict by name, a tuple in the order of `classes`, or
            the first alone. A wrong value is told when its batch is reached.
        classes: name -> number of classes, or None for a target that is not used.
        vocabulary: word pieces there are.
        needed: names of the targets that must be there.

    Returns:
        The same batches; targets as a dict of int32 (B,), weights float32 (B,).

    Raises:
        InputError: a component that is missing, or of another dtype or shape.
    """
    check_dataset(dataset)
    spec = dataset.element_spec
    if not isinstance(spec, tuple) or len(spec) not in (2, 3):
        parts = len(spec) if isinstance(spec, tuple) else 1
        raise InputError(
            "Expected a data set of (texts, targets) or (texts, targets, weights), "
            f"received {parts} components."
        )
    used = {name: size for name, size in classes.items() if size is not None}
    specs = _named(spec[1], classes)
    for name in needed:
        if name not in specs:
            raise InputError(f"Expected targets {sorted(used)}, received no {name!r}.")
    used = {name: size for name, size in used.items() if name in specs}
    for name in used:
        _check_spec(f"targets {name!r}", "whole numbers", specs[name])
    if _WEIGHTS in specs and len(spec) == 2:
        spec = (*spec, specs[_WEIGHTS])
    if len(spec) == 3:
        _check_spec("sample weights", "numbers", spec[2])

    def check(number: tf.Tensor, element: tuple) -> tuple:
        texts = _checked_ids(element[0], vocabulary, number)
        named = _named(element[1], classes)
        count = tf.shape(texts)[0]
        targets = {
            name: _checked_target(name, named[name], size, count, number)
            for name, size in used.items()
        }
        if len(spec) == 2:
            return texts, targets
        weights = element[2] if len(element) == 3 else named[_WEIGHTS]
        return texts, targets, _checked_weights(weights, count, number)

    return dataset.enumerate().map(check)


@contextlib.contextmanager
def values_told() -> Iterator[None]:
    """Makes an InputError of what a checked data set found in one of its batches."""
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        found = _TOLD.search(str(error))
        if found is None:
            raise
        # TensorFlow escapes quotes.
        raise InputError(found[1].replace("\\'", "'")) from None


def _named(targets: Any, classes: Mapping[str, int | None]) -> dict[str, Any]:
    if isinstance(targets, Mapping):
        return dict(targets)
    parts = targets if isinstance(targets, tuple | list) else (targets,)
    return dict(zip(classes, parts, strict=False))


def _check_spec(what: str, kind: str, spec: Any) -> None:
    dtype = getattr(spec, "dtype", None)
    numeric = isinstance(spec, tf.TensorSpec) and (
        dtype.is_integer or dtype.is_floating or dtype.is_bool
    )
    if not numeric:
        received = dtype.name if dtype is not None else type(spec).__name__
        raise InputError(
            f"Expected {kind} as {what}, received {received}. Number the classes."
            if what.startswith("targets")
            else f"Expected {kind} as {what}, received {received}."
        )
    if spec.shape.rank not in (None, 1):
        raise InputError(
            f"Expected {what} of shape (batch,), one a text, received shape "
            f"{spec.shape}."
        )


def _checked_ids(texts: tf.Tensor, vocabulary: int, number: tf.Tensor) -> tf.Tensor:
    if texts.dtype == tf.string:
        return texts
    good = tf.reduce_all((texts >= 0) & (texts < vocabulary), axis=1)
    return _asserted(
        texts, good, f"Expected word pieces from 0 to {vocabulary - 1}", number
    )


def _checked_target(
    name: str, values: tf.Tensor, size: int, count: tf.Tensor, number: tf.Tensor
) -> tf.Tensor:
    values = _one_a_text(values, count, f"targets '{name}'", number)
    whole = tf.cast(values, tf.int64)
    good = (whole >= 0) & (whole < size)
    if values.dtype.is_floating:
        # False for NaN, whatever that is cast to.
        good &= tf.cast(whole, values.dtype) == values
    expected = f"Expected whole numbers from 0 to {size - 1} as targets '{name}'"
    return _asserted(tf.cast(whole, tf.int32), good, expected, number)


def _checked_weights(
    values: tf.Tensor, count: tf.Tensor, number: tf.Tensor
) -> tf.Tensor:
    values = _one_a_text(values, count, "sample weights", number)
    values = tf.cast(values, tf.float32)
    good = tf.math.is_finite(values) & (values >= 0)
    return _asserted(values, good, "Expected finite sample weights >= 0", number)


def _one_a_text(
    values: tf.Tensor, count: tf.Tensor, what: str, number: tf.Tensor
) -> tf.Tensor:
    message = tf.strings.format(
        f"Expected as many {what} as texts, received another number in batch {{}}.",
        number,
    )
    # Of a shape that was not known before, too.
    good = tf.reduce_all(tf.equal(tf.size(values), count)) & (tf.rank(values) == 1)
    with tf.control_dependencies([tf.debugging.Assert(good, [message])]):
        return tf.reshape(tf.identity(values), [-1])


def _asserted(
    values: tf.Tensor, good: tf.Tensor, expected: str, number: tf.Tensor
) -> tf.Tensor:
    """The values, once all rows are good; else the first other row is named."""
    row = tf.argmin(tf.cast(good, tf.int32)) if good.shape.rank else 0
    message = tf.strings.format(
        f"{expected}, received another in row {{}} of batch {{}}.", (row, number)
    )
    check = tf.debugging.Assert(tf.reduce_all(good), [message])
    with tf.control_dependencies([check]):
        return tf.identity(values)
