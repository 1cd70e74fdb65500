"""What one step of a private trainer must release, and twins that must be refused."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.dp_training import models
from tfpriv.accounting import DPSGDPlan
from tfpriv.dp_training import DPTrainer
from tfpriv.dp_training.noise import gaussian_tensors

DIMENSION, RECORDS = 2000, 8
CLIP = 3.0
NOISE = 5.0


def make(
    trainer: type[DPTrainer],
    noise_multiplier: float = 1e-9,
    batch_size: int = RECORDS,
    steps: int = 40,
) -> DPTrainer:
    plan = DPSGDPlan(
        num_examples=RECORDS,
        batch_size=batch_size,
        steps=steps,
        noise_multiplier=noise_multiplier,
        l2_norm_clip=CLIP,
    )
    return trainer(
        models.linear(DIMENSION),
        models.linear_loss,
        plan,
        learning_rate=1e-6,
        physical_batch_size=2,
    )


def records(length: float) -> np.ndarray:
    """Rows that all point the same way; a gradient is `length` long and one more."""
    rows = np.zeros((RECORDS, DIMENSION), np.float32)
    rows[:, 0] = length
    return rows


def norm(trainer: DPTrainer, length: float) -> float:
    return trainer.step((records(length),))["noised_gradient_norm"]


def check_every_record_is_clipped_and_none_is_lost(kind: type[DPTrainer]) -> None:
    trainer = make(kind)
    assert norm(trainer, 1e4) == pytest.approx(CLIP, rel=1e-4)
    assert norm(trainer, 1.0) == pytest.approx(np.sqrt(2), rel=1e-4)


def check_the_sum_is_divided_by_the_expected_size(kind: type[DPTrainer]) -> None:
    trainer = make(kind, batch_size=2)
    # Sums of 0 to 8 gradients of length CLIP, over 2 whatever was drawn. All 40
    # draws are of two sizes once in 10^9 runs.
    sizes = np.array([norm(trainer, 1e4) for _ in range(40)]) * 2 / CLIP
    np.testing.assert_allclose(sizes, sizes.round(), atol=1e-3)
    assert len(set(sizes.round())) > 2


def check_noise_comes_once_a_step(kind: type[DPTrainer]) -> None:
    expected = CLIP * NOISE * np.sqrt(DIMENSION) / RECORDS
    trainer = make(kind, noise_multiplier=NOISE)
    for _ in range(3):
        assert norm(trainer, 0.0) == pytest.approx(expected, rel=0.1)


CHECKS = [
    check_every_record_is_clipped_and_none_is_lost,
    check_the_sum_is_divided_by_the_expected_size,
    check_noise_comes_once_a_step,
]


@pytest.mark.parametrize("check", CHECKS)
def test_trainer(check):
    check(DPTrainer)


class ClipSkipped(DPTrainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.engine.l2_norm_clip = 1e30


class SpillDropped(DPTrainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        draw = self.sampler.draw
        self.sampler.draw = lambda *arguments: draw(*arguments)[:1]


class DividedByTheActualSize(DPTrainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        draw = self.sampler.draw

        def counted(*arguments):
            batches = draw(*arguments)
            size = sum(batch.mask.sum() for batch in batches)
            self.actual_size.assign(max(size, 1))
            return batches

        self.actual_size = tf.Variable(1.0)
        self.optimizer.expected_batch_size = self.actual_size
        self.sampler.draw = counted


class NoiseForEveryPhysicalBatch(DPTrainer):
    def _private_sums(self, inputs, num_records, step):
        sums = super()._private_sums(inputs, num_records, step)
        for _ in range(num_records // 2 - 1):
            noise = gaussian_tensors([x.shape for x in sums], CLIP * NOISE)
            pairs = zip(sums, noise, strict=True)
            sums = [tf.cast(total, draw.dtype) + draw for total, draw in pairs]
        return sums


class NoNoise(DPTrainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.optimizer.noise_multiplier = 0.0


@pytest.mark.parametrize(
    "twin",
    [
        ClipSkipped,
        SpillDropped,
        DividedByTheActualSize,
        NoiseForEveryPhysicalBatch,
        NoNoise,
    ],
)
def test_broken_step_is_refused(twin):
    def run_all() -> None:
        for check in CHECKS:
            check(twin)

    with pytest.raises(AssertionError):
        run_all()
