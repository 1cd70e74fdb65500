"""What the noise of a private step must be, and draws that must be refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfpriv.dp_training import DPKerasAdamOptimizer, gaussian_noise, stock_dp_adam

SHAPES = [(40, 50), (40, 50)]
STDDEV = 3.0

Draw = Callable[[Sequence[tuple[int, ...]], float], list[np.ndarray]]


def check_noise(draw: Draw) -> None:
    def run() -> np.ndarray:
        keras.utils.set_random_seed(3)  # Python, numpy and TensorFlow
        return np.stack([draw(SHAPES, STDDEV) for _ in range(2)])

    noise = np.stack([run(), run()])  # (run, draw, tensor, 40, 50)
    assert np.isfinite(noise).all()
    lines = noise.reshape(8, -1)
    # Coordinates, tensors, draws and seeded runs are independent of each other.
    correlation = np.corrcoef(lines) - np.eye(8)
    assert np.abs(correlation).max() < 6 / np.sqrt(lines.shape[1])
    assert len(np.unique(noise)) > 0.99 * noise.size
    neighbours = np.corrcoef(lines[:, :-1].ravel(), lines[:, 1:].ravel())[0, 1]
    assert abs(neighbours) < 6 / np.sqrt(noise.size)
    assert abs(noise.mean()) < 6 * STDDEV / np.sqrt(noise.size)
    assert abs(noise.std() / STDDEV - 1) < 6 / np.sqrt(2 * noise.size)
    # Gaussian and not only of the right width: the fourth moment is 3.
    kurtosis = ((noise / STDDEV) ** 4).mean()
    assert abs(kurtosis - 3) < 6 * np.sqrt(96 / noise.size)


def optimizer_draw(graph: bool) -> Draw:
    def noised_zeros(shapes, stddev):
        optimizer = DPKerasAdamOptimizer(2.0, stddev * 4.0 / 2.0, 4.0)
        zeros = [tf.zeros(shape) for shape in shapes]
        run = lambda: optimizer.noised_mean(zeros)  # noqa: E731
        return tf.function(run, autograph=False) if graph else run

    made = {}

    def draw(shapes, stddev):
        if stddev not in made:
            made[stddev] = noised_zeros(shapes, stddev)
        return [n.numpy() for n in made[stddev]()]

    return draw


@pytest.mark.parametrize(
    "draw",
    [gaussian_noise, optimizer_draw(graph=False), optimizer_draw(graph=True)],
    ids=["noise", "optimizer, eager", "optimizer, tf.function"],
)
def test_noise(draw):
    check_noise(draw)


def _reference(shapes, stddev):
    generator = np.random.default_rng()
    return [generator.normal(0, stddev, shape) for shape in shapes]


def too_small(shapes, stddev):
    return _reference(shapes, stddev * 2 / 3)


def too_large(shapes, stddev):
    return _reference(shapes, stddev * 3 / 2)


def laplace(shapes, stddev):
    generator = np.random.default_rng()
    return [generator.laplace(0, stddev / np.sqrt(2), shape) for shape in shapes]


def one_draw_for_all_coordinates(shapes, stddev):
    value = np.random.default_rng().normal(0, stddev)
    return [np.full(shape, value) for shape in shapes]


def one_draw_for_all_tensors(shapes, stddev):
    return [_reference(shapes[:1], stddev)[0]] * len(shapes)


def seeded(shapes, stddev):
    return [np.random.normal(0, stddev, shape) for shape in shapes]  # noqa: NPY002


def drawn_once() -> Draw:
    kept = _reference(SHAPES, STDDEV)
    return lambda shapes, stddev: kept


def drawn_while_tracing() -> Draw:
    @tf.function(autograph=False)
    def run():
        return [tf.constant(n) for n in gaussian_noise(SHAPES, STDDEV)]

    return lambda shapes, stddev: [n.numpy() for n in run()]


def stock_optimizer(shapes, stddev):
    """TF-Privacy's own step: its noise hangs on TensorFlow's global seed."""
    optimizer = stock_dp_adam(1.0, stddev)
    variables = [tf.Variable(tf.zeros(shape)) for shape in shapes]
    with tf.GradientTape(persistent=True) as tape:
        losses = tf.add_n([tf.reduce_sum(0.0 * v) for v in variables])[tf.newaxis]
    gradients = optimizer._compute_gradients(losses, variables, tape=tape)
    return [g.numpy() for g, _ in gradients]


def test_the_twin_that_is_not_broken_passes():
    check_noise(_reference)


@pytest.mark.parametrize(
    "draw",
    [
        too_small,
        too_large,
        laplace,
        one_draw_for_all_coordinates,
        one_draw_for_all_tensors,
        seeded,
        drawn_once(),
        drawn_while_tracing(),
        stock_optimizer,
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_broken_noise_is_refused(draw):
    with pytest.raises(AssertionError):
        check_noise(draw)
