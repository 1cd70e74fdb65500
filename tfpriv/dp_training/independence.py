"""Whether a model treats every example alone: what per-example privacy rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

from tfpriv._errors import InputError

_ROWS = 4
# Far above what another order of float32 sums makes, far below what mixing does.
_TOLERANCE = 1e-3

Inputs = Sequence[tf.Tensor]


def refuse_layers_that_mix(model: keras.Model) -> None:
    """Refuses layers that are known to mix examples, or to carry them along.

    Raises:
        InputError: with the name of the layer.
    """
    for layer in model._flatten_layers():
        # Its moving averages would take in private activations without any noise,
        # and an example's gradient would depend on the others of its batch. A frozen
        # one does neither.
        if isinstance(layer, keras.layers.BatchNormalization) and layer.trainable:
            raise InputError(
                f"Expected layers that treat every example alone, received "
                f"BatchNormalization {layer.name!r}. Use LayerNormalization or "
                f"GroupNormalization."
            )
        if getattr(layer, "stateful", False):
            raise InputError(
                f"Expected layers without memory of earlier batches, received "
                f"{type(layer).__name__} {layer.name!r} with stateful=True. Use "
                f"stateful=False."
            )


def refuse_what_mixes(
    model: keras.Model,
    call: Callable[..., tf.Tensor],
    losses: Callable[..., tf.Tensor],
    specs: Sequence[tf.TensorSpec],
) -> None:
    """Runs model and loss on made-up examples, in training mode, and compares.

    The first example stays, the others change: neither the outputs and losses of
    the first nor any state of the model may change with them.

    Args:
        model: keras.Model, built.
        call: `(model, *inputs)` -> what the model returns in training mode.
        losses: `(model, *inputs)` -> (batch,).
        specs: one an input, shape without the batch.

    Raises:
        InputError: with the name of the layer, where the model is functional.
    """
    one, other = _made_up(specs)
    before = [np.array(v) for v in model.non_trainable_variables]
    try:
        first = _first_rows(model, call, one)
        _refuse_new_state(model, before)
        if not _same(first, _first_rows(model, call, other)):
            raise InputError(_words(_first_mixing_layer(model, specs) or model))
        loss = losses(model, *one)
        if loss.shape.rank != 1 or loss.shape[0] != _ROWS:
            raise InputError(
                f"Expected a loss of each example, shape ({_ROWS},) for {_ROWS}, "
                f"received {tuple(loss.shape)}. Leave the mean over the batch out."
            )
        if not _same(
            _first_rows(model, losses, one), _first_rows(model, losses, other)
        ):
            raise InputError(
                "Expected a loss of each example alone, received one that changes with "
                "the other examples of its batch. Use a loss without pairs."
            )
    finally:
        for variable, value in zip(model.non_trainable_variables, before, strict=True):
            variable.assign(value)


def _made_up(specs: Sequence[tf.TensorSpec]) -> tuple[list, list]:
    generator, one, other = np.random.default_rng(0), [], []
    for spec in specs:
        shape = (_ROWS, *spec.shape)
        if spec.dtype.is_floating:
            drawn = [generator.normal(size=shape) for _ in range(2)]
        else:
            # Ids that every table has.
            drawn = [generator.integers(0, 2, shape) for _ in range(2)]
            drawn[1][1:] = 1 - drawn[0][1:]
        drawn[1][0] = drawn[0][0]
        one.append(tf.constant(drawn[0].astype(spec.dtype.as_numpy_dtype)))
        other.append(tf.constant(drawn[1].astype(spec.dtype.as_numpy_dtype)))
    return one, other


def _first_rows(
    model: keras.Model, run: Callable[..., tf.Tensor], inputs: Inputs
) -> list[np.ndarray]:
    """What `run` gives for the first example, dropout being drawn alike each time."""
    for variable in _seed_states(model):
        variable.assign(np.ones(variable.shape))
    return [np.asarray(x)[:1] for x in keras.tree.flatten(run(model, *inputs))]


def _seed_states(model: keras.Model) -> Iterator[keras.Variable]:
    return (v for v in model.non_trainable_variables if "seed_generator" in v.path)


def _refuse_new_state(model: keras.Model, before: list[np.ndarray]) -> None:
    seeds = {id(v) for v in _seed_states(model)}
    for variable, value in zip(model.non_trainable_variables, before, strict=True):
        if id(variable) not in seeds and not np.array_equal(np.array(variable), value):
            raise InputError(
                f"Expected layers that keep nothing of the examples, received "
                f"{variable.path!r}, which a forward pass changes. Freeze the layer or "
                f"leave it out."
            )


def _same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(
        np.allclose(x, y, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
        for x, y in zip(one, other, strict=True)
    )


def _first_mixing_layer(
    model: keras.Model, specs: Sequence[tf.TensorSpec]
) -> keras.layers.Layer | None:
    """The first layer whose output mixes examples; None where there is no order."""
    model = getattr(model, "_functional", None) or model  # of a Sequential
    if not hasattr(model, "operations"):
        return None
    one, other = _made_up(specs)
    count = len(model.inputs)
    for operation in model.operations:
        if isinstance(operation, keras.layers.InputLayer):
            continue
        part = keras.Model(model.inputs, operation.output)
        run = lambda part, *x: part(list(x[:count]), training=True)  # noqa: E731
        if not _same(_first_rows(part, run, one), _first_rows(part, run, other)):
            return operation
    return None


def _words(layer: keras.layers.Layer) -> str:
    return (
        f"Expected layers that treat every example alone, received "
        f"{type(layer).__name__} {layer.name!r}, whose output changes with the other "
        f"examples of the batch. Leave it out."
    )
