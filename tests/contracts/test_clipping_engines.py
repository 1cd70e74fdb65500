"""What every clipping engine must satisfy, and twins that must be refused."""

from __future__ import annotations

import functools
from fractions import Fraction

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
    assert CLIP <= engine.sensitivity <= CLIP * (1 + 2**-8)
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


def exact_sum(engine: ClippingEngine, rows: np.ndarray) -> list[Fraction]:
    """The sum as rational numbers, so that nothing is rounded in a comparison."""
    return [Fraction(float(x)) for x in flat_sum(engine, rows, [True] * len(rows))]


def check_a_sum_is_that_of_its_parts_in_any_order(engine: ClippingEngine) -> None:
    # On the bias one gradient is 1 long and the others are 3e-8: less than half of
    # what is between 1 and the next float32.
    large, tiny = np.zeros((1, 2), np.float32), np.array([[0.0, 1 / 3e-8]], np.float32)
    parts = zip(exact_sum(engine, large), exact_sum(engine, tiny), strict=True)
    expected = [one + 1000 * other for one, other in parts]
    rows = np.concatenate([large, np.repeat(tiny, 1000, axis=0)])
    assert exact_sum(engine, tiny)[-1] > 0
    assert exact_sum(engine, rows) == expected
    assert exact_sum(engine, rows[::-1]) == expected


def check_one_example_keeps_the_sensitivity_to_the_last_bit(
    engine: ClippingEngine,
) -> None:
    generator = np.random.default_rng(0)
    sizes = 10.0 ** generator.uniform(-3, 6, (200, 1))
    rows = (generator.normal(size=(200, 2)) * sizes).astype(np.float32)
    crowd = exact_sum(engine, rows)
    for i in range(100):
        rest = exact_sum(engine, np.delete(rows, i, axis=0))
        moved = [a - b for a, b in zip(crowd, rest, strict=True)]
        assert sum(x * x for x in moved) <= Fraction(engine.sensitivity) ** 2


def check_sums_are_as_near_as_the_engine_says(engine: ClippingEngine) -> None:
    # Each of what makes up a sum alone, added up in rational numbers.
    rows = np.random.default_rng(1).normal(size=(engine.largest_step, 2)) * 5
    rows = rows.astype(np.float32)
    parts = [exact_sum(engine, rows[i : i + 1]) for i in range(len(rows))]
    sums = [sum(part) for part in zip(*parts, strict=True)]
    away = [a - b for a, b in zip(exact_sum(engine, rows), sums, strict=True)]
    # One example is rounded as well.
    allowed = Fraction(engine.rounding * engine.l2_norm_clip) + len(rows) * Fraction(
        engine.l2_norm_clip * 2.0**-24
    ) * (engine.rounding > 0)
    assert sum(x * x for x in away) <= allowed**2


CHECKS = [
    check_sum_of_examples_clipped_one_by_one,
    check_one_example_moves_the_sum_by_the_sensitivity,
    check_masked_rows_add_nothing,
    check_no_rows_sum_to_zero,
]
# With rounding that is known, and with none.
KNOWN = [
    check_one_example_keeps_the_sensitivity_to_the_last_bit,
    check_sums_are_as_near_as_the_engine_says,
]
EXACT = [check_a_sum_is_that_of_its_parts_in_any_order]


@pytest.fixture(scope="module", params=engine_names())
def engine(request) -> ClippingEngine:
    return make_engine(request.param, models.linear(), models.linear_loss, CLIP)


@pytest.mark.parametrize("check", CHECKS)
def test_engine(engine, check):
    check(engine)


@pytest.mark.parametrize("check", KNOWN)
def test_engine_whose_rounding_is_known(engine, check):
    if engine.rounding is None:
        pytest.skip(f"{engine.name} does not say")
    check(engine)


@pytest.mark.parametrize("check", EXACT)
def test_engine_that_does_not_round(engine, check):
    if engine.rounding != 0:
        pytest.skip(f"{engine.name} does")
    check(engine)


def test_the_rounding_of_engines_for_a_ledger_is_known():
    rounding = {
        name: make_engine(name, models.linear(), models.linear_loss, CLIP).rounding
        for name in engine_names()
    }
    assert rounding == {"bookkeeping": 2**-9, "jacobian": None, "loop": 0.0}


class _Twin(ClippingEngine):
    """Per-example gradients (n, 3) of the linear model, written out."""

    rounding = 0.0

    def clipped_sum(self, inputs, mask):
        (rows,) = inputs
        gradients = tf.concat([rows, tf.ones_like(rows[:, :1])], axis=1)
        gradients = tf.cast(gradients, tf.float64)
        total = self.combine(gradients, tf.cast(mask, tf.float64)[:, None])
        return [total[:-1, None], total[-1:]]

    def clip(self, gradients):
        short = tf.clip_by_norm(gradients, self.l2_norm_clip * (1 - 1e-7), axes=[1])
        return tf.cast(tf.cast(short / self.unit, tf.int64), tf.float64) * self.unit

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
    def clip(self, gradients):
        return tf.clip_by_norm(gradients, self.l2_norm_clip, axes=[1])

    def combine(self, gradients, weights):
        return tf.reduce_sum(self.clip(gradients) * weights, axis=0)


class Float32Sums(_Twin):
    def combine(self, gradients, weights):
        kept = tf.boolean_mask(gradients, weights[:, 0] > 0)
        total = tf.reduce_sum(tf.cast(self.clip(kept), tf.float32), axis=0)
        return tf.cast(total, tf.float64)


class Float32Clipping(_Twin):
    def clip(self, gradients):
        narrow = tf.cast(gradients, tf.float32)
        return tf.cast(tf.clip_by_norm(narrow, CLIP, axes=[1]), tf.float64)


class RoundedToTheNearestUnit(_Twin):
    def clip(self, gradients):
        short = tf.clip_by_norm(gradients, self.l2_norm_clip, axes=[1])
        return tf.round(short / self.unit) * self.unit


def _passes(twin: type[ClippingEngine]) -> bool:
    engine = twin(models.linear(), models.linear_loss, CLIP)
    try:
        for check in CHECKS + KNOWN + EXACT:
            check(engine)
    except AssertionError:
        return False
    return True


def test_the_twin_that_is_not_broken_passes():
    assert _passes(_Twin)


@pytest.mark.parametrize(
    "twin",
    [
        ClipSkipped,
        ClipByVariable,
        Mean,
        SumClipped,
        MaskIgnored,
        MaskMultiplied,
        Float32Sums,
        Float32Clipping,
        RoundedToTheNearestUnit,
    ],
)
def test_broken_engine_is_refused(twin):
    assert not _passes(twin)


@pytest.mark.parametrize(
    ("twin", "check"),
    [
        (Float32Sums, check_a_sum_is_that_of_its_parts_in_any_order),
        (Float32Clipping, check_one_example_keeps_the_sensitivity_to_the_last_bit),
        (
            RoundedToTheNearestUnit,
            check_one_example_keeps_the_sensitivity_to_the_last_bit,
        ),
    ],
)
def test_rounding_that_breaks_the_sensitivity_is_refused(twin, check):
    engine = twin(models.linear(), models.linear_loss, CLIP)
    for coarse in CHECKS:
        coarse(engine)
    with pytest.raises(AssertionError):
        check(engine)
