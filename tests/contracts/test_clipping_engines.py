"""What every clipping engine must satisfy, and twins that must be refused."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.dp_training import models
from tfpriv.dp_training import ClippingEngine, engine_names, make_engine

CLIP = 1.0
# Gradients (x, 1): longer than the clip, shorter in x, and shorter altogether.
ROWS = np.array([[3.0, 4.0], [0.5, 0.0], [-30.0, 10.0]], np.float32)


def clipped_by_hand(rows: np.ndarray) -> np.ndarray:
    gradients = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return (gradients * np.minimum(1.0, CLIP / norms)).sum(axis=0)


@functools.cache
def compiled(engine: ClippingEngine):
    signature = (tf.TensorSpec((None, 2)),), tf.TensorSpec((None,), tf.bool)
    return tf.function(engine.clipped_sum, signature, autograph=False)


def flat_sum(engine: ClippingEngine, rows: np.ndarray, mask: list[bool]) -> np.ndarray:
    sums = compiled(engine)((tf.constant(rows),), tf.constant(mask, tf.bool))
    return np.concatenate([np.ravel(s) for s in sums])


def check_sum_of_examples_clipped_one_by_one(engine: ClippingEngine) -> None:
    np.testing.assert_allclose(
        flat_sum(engine, ROWS, [True] * 3), clipped_by_hand(ROWS), rtol=1e-5
    )


def check_one_example_moves_the_sum_by_the_sensitivity(engine: ClippingEngine) -> None:
    wild = np.array([[1e6, -1e6]], np.float32)
    with_it = flat_sum(engine, np.concatenate([ROWS, wild]), [True] * 4)
    without = flat_sum(engine, ROWS, [True] * 3)
    assert engine.sensitivity == CLIP
    assert np.linalg.norm(with_it - without) <= CLIP * (1 + 1e-5)


def check_masked_rows_add_nothing(engine: ClippingEngine) -> None:
    rows = ROWS.copy()
    rows[1] = np.nan
    np.testing.assert_allclose(
        flat_sum(engine, rows, [True, False, True]),
        clipped_by_hand(ROWS[[0, 2]]),
        rtol=1e-5,
    )
    assert not np.any(flat_sum(engine, rows, [False] * 3))


def check_no_rows_sum_to_zero(engine: ClippingEngine) -> None:
    assert np.array_equal(flat_sum(engine, ROWS[:0], []), np.zeros(3))


CHECKS = [
    check_sum_of_examples_clipped_one_by_one,
    check_one_example_moves_the_sum_by_the_sensitivity,
    check_masked_rows_add_nothing,
    check_no_rows_sum_to_zero,
]


@pytest.fixture(scope="module", params=engine_names())
def engine(request) -> ClippingEngine:
    return make_engine(request.param, models.linear(), models.linear_loss, CLIP)


@pytest.mark.parametrize("check", CHECKS)
def test_engine(engine, check):
    check(engine)


class _Twin(ClippingEngine):
    """Per-example gradients (n, 3) of the linear model, written out."""

    def clipped_sum(self, inputs, mask):
        (rows,) = inputs
        gradients = tf.concat([rows, tf.ones_like(rows[:, :1])], axis=1)
        total = self.combine(gradients, tf.cast(mask, tf.float32)[:, None])
        return [total[:-1, None], total[-1:]]

    def clip(self, gradients):
        return tf.clip_by_norm(gradients, self.l2_norm_clip, axes=[1])

    def combine(self, gradients, weights):
        kept = tf.boolean_mask(gradients, weights[:, 0] > 0)
        return tf.reduce_sum(self.clip(kept), axis=0)


class ClipSkipped(_Twin):
    def clip(self, gradients):
        return gradients


class ClipByVariable(_Twin):
    def clip(self, gradients):
        kernel = tf.clip_by_norm(gradients[:, :-1], self.l2_norm_clip, axes=[1])
        bias = tf.clip_by_norm(gradients[:, -1:], self.l2_norm_clip, axes=[1])
        return tf.concat([kernel, bias], axis=1)


class Mean(_Twin):
    def combine(self, gradients, weights):
        return tf.reduce_mean(self.clip(gradients) * weights, axis=0)


class SumClipped(_Twin):
    def combine(self, gradients, weights):
        return tf.clip_by_norm(tf.reduce_sum(gradients * weights, 0), CLIP)


class MaskIgnored(_Twin):
    def combine(self, gradients, weights):
        return tf.reduce_sum(self.clip(gradients), axis=0)


class MaskMultiplied(_Twin):
    def combine(self, gradients, weights):
        return tf.reduce_sum(self.clip(gradients) * weights, axis=0)


def _passes(twin: type[ClippingEngine]) -> bool:
    engine = twin(models.linear(), models.linear_loss, CLIP)
    try:
        for check in CHECKS:
            check(engine)
    except AssertionError:
        return False
    return True


def test_the_twin_that_is_not_broken_passes():
    assert _passes(_Twin)


@pytest.mark.parametrize(
    "twin",
    [ClipSkipped, ClipByVariable, Mean, SumClipped, MaskIgnored, MaskMultiplied],
)
def test_broken_engine_is_refused(twin):
    assert not _passes(twin)
