"""Checks of texts and targets before any work; a message names the row, no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import non_negative


def check_texts(texts: Any) -> list[str]:
    """Returns the texts as a list of str.

    Raises:
        InputError: one text instead of several, none at all, or a row that is no text.
    """
    if isinstance(texts, str | bytes):
        raise InputError(
            "Expected a list of texts, received one text. Wrap it: [text]."
        )
    if texts is None or not hasattr(texts, "__len__"):
        raise InputError(
            f"Expected a list of texts, received {type(texts).__name__}. Give a list, "
            "an array or a tf.data.Dataset of batches."
        )
    if isinstance(texts, Mapping):
        raise InputError("Expected a list of texts, received a dict.")
    texts = texts.numpy() if hasattr(texts, "numpy") else texts
    rows = []
    for number, text in enumerate(texts):
        if isinstance(text, bytes):
            try:
                text = text.decode("utf-8")
            except UnicodeDecodeError:
                raise InputError(
                    f"Expected UTF-8 texts, received other bytes in row {number}."
                ) from None
        if not isinstance(text, str):
            raise InputError(
                f"Expected a text in every row, received {type(text).__name__} in row "
                f"{number}."
            )
        # A lone surrogate has no UTF-8; TensorFlow would refuse the whole batch.
        rows.append(text.encode("utf-8", "replace").decode("utf-8"))
    if not rows:
        raise InputError("Expected at least one text, received none.")
    return rows


def check_targets(
    targets: Any, count: int, classes: Mapping[str, int | None]
) -> dict[str, np.ndarray]:
    """Returns the targets as int32 arrays (count,).

    Args:
        targets: {"label": ..., "private": ...}, or that in this order in a tuple.
        count: n, texts.
        classes: name -> number of classes, or None for a target that is not used.

    Raises:
        InputError: a target that is missing, of another length or out of range.
    """
    if isinstance(targets, tuple):
        targets = dict(zip(classes, targets, strict=False))
    if not isinstance(targets, Mapping):
        targets = {"label": targets}
    checked = {}
    for name, size in classes.items():
        if size is None:
            continue
        if targets.get(name) is None:
            raise InputError(
                f"Expected targets {sorted(n for n, s in classes.items() if s)}, "
                f"received no {name!r}."
            )
        values = np.asarray(targets[name])
        if values.shape != (count,):
            raise InputError(
                f"Expected {count} targets {name!r}, one a text, received shape "
                f"{values.shape}."
            )
        whole = values.astype(np.int64, copy=True) if _numeric(values) else None
        if whole is None or (whole != values).any():
            raise InputError(
                f"Expected whole numbers from 0 to {size - 1} as targets {name!r}, "
                f"received {values.dtype}. Number the classes."
            )
        wrong = np.flatnonzero((whole < 0) | (whole >= size))
        if len(wrong):
            raise InputError(
                f"Expected targets {name!r} from 0 to {size - 1}, received another in "
                f"row {wrong[0]}."
            )
        checked[name] = whole.astype(np.int32)
    return checked


def check_validation_data(given: Any) -> tuple[Any, Any, Any]:
    """Returns (texts, targets, weights or None) of `fit`'s validation data.

    Raises:
        InputError: something else than two or three parts.
    """
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        parts = f" of {len(given)}" if isinstance(given, tuple | list) else ""
        raise InputError(
            "Expected validation_data=(texts, targets), a third part for weights, or a "
            f"tf.data.Dataset, received a {type(given).__name__}{parts}."
        )
    texts, targets, *weights = given
    return texts, targets, weights[0] if weights else None


def check_weights(weights: Any, count: int) -> np.ndarray:
    """Returns the weights of the records, float32 (count,).

    Raises:
        InputError: another shape, or a weight that is no finite number >= 0.
    """
    values = np.asarray(weights)
    if values.shape != (count,) or not _numeric(values) or (values < 0).any():
        raise InputError(
            f"Expected {count} finite sample weights >= 0, one a text, received shape "
            f"{values.shape} of {values.dtype} or another value."
        )
    return values.astype(np.float32)


def check_class_weights(
    given: Mapping[str, Sequence[float]], classes: Mapping[str, int | None]
) -> dict[str, list[float]]:
    """Returns the weights of the classes of each target, as lists of float.

    Raises:
        InputError: a target that is not known, or weights that do not fit it.
    """
    if not isinstance(given, Mapping):
        raise InputError(
            'Expected class_weights as {"label": [...]}, received '
            f"{type(given).__name__}."
        )
    for name, values in given.items():
        if classes.get(name) is None:
            known = " and ".join(n for n, size in classes.items() if size)
            raise InputError(f"Expected class_weights of {known}, received {name!r}.")
        count = len(values) if hasattr(values, "__len__") else 1
        if count != classes[name] or isinstance(values, str):
            raise InputError(
                f"Expected {classes[name]} class_weights of {name!r}, received {count}."
            )
        for value in values:
            non_negative(class_weights=value)
    return {name: [float(v) for v in values] for name, values in given.items()}


def _numeric(values: np.ndarray) -> bool:
    return values.dtype.kind in "iub" or (
        values.dtype.kind == "f" and bool(np.isfinite(values).all())
    )
