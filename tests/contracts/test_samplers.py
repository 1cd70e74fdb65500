"""What Poisson sampling means, and samplers that only look like it."""

from __future__ import annotations

import numpy as np
import pytest

from tfpriv.dp_training.sampler import PoissonSampler, pad_to_physical_batches

RECORDS, RATE, DRAWS, PHYSICAL = 8, 0.25, 3000, 3


def membership(sampler) -> np.ndarray:
    """Which record is in which draw: bool (DRAWS, RECORDS)."""
    taken = np.zeros((DRAWS, RECORDS), int)
    for row in taken:
        for batch in sampler.draw(RECORDS):
            assert batch.indices.shape == batch.mask.shape == (PHYSICAL,)
            np.add.at(row, batch.indices[batch.mask], 1)
    assert taken.max() <= 1, "a record was in a draw twice"
    return taken.astype(bool)


def check_poisson(sampler) -> None:
    taken = membership(sampler)
    # Six standard deviations: a right sampler fails once in 10^8 runs.
    slack = 6 * np.sqrt(RATE * (1 - RATE) / DRAWS)
    np.testing.assert_allclose(taken.mean(axis=0), RATE, atol=slack)
    together = taken.T.astype(float) @ taken / DRAWS
    others = ~np.eye(RECORDS, dtype=bool)
    pairs = RATE**2
    slack = 6 * np.sqrt(pairs * (1 - pairs) / DRAWS)
    np.testing.assert_allclose(together[others], pairs, atol=slack)
    empty = (1 - RATE) ** RECORDS
    slack = 6 * np.sqrt(empty * (1 - empty) / DRAWS)
    np.testing.assert_allclose((~taken.any(axis=1)).mean(), empty, atol=slack)
    # One step after the other: a record that was read is as likely to come again.
    again = (taken[1:] & taken[:-1]).mean()
    slack = 6 * np.sqrt(pairs * (1 - pairs) / (DRAWS * RECORDS))
    np.testing.assert_allclose(again, pairs, atol=slack)


def check_nobody_can_replay_it(sampler) -> None:
    runs = []
    for _ in range(2):
        np.random.seed(7)  # noqa: NPY002
        runs.append([sampler.draw(10_000)[0].indices.tolist() for _ in range(3)])
    assert runs[0] != runs[1]


def check_a_rate_of_one_reads_every_record(sampler_of_rate) -> None:
    batches = sampler_of_rate(1.0).draw(RECORDS)
    rows = np.concatenate([batch.indices[batch.mask] for batch in batches])
    assert sorted(rows) == list(range(RECORDS))


def sound(rate: float = RATE) -> PoissonSampler:
    return PoissonSampler(rate, PHYSICAL)


def check_all(make) -> None:
    check_poisson(make())
    check_nobody_can_replay_it(make())
    check_a_rate_of_one_reads_every_record(make)


def test_poisson_sampler():
    check_all(sound)


class _Twin:
    def __init__(self, rate: float = RATE) -> None:
        self.rate = rate
        self.generator = np.random.default_rng()

    def rows(self, num_records: int) -> np.ndarray:
        return np.flatnonzero(self.generator.random(num_records) < self.rate)

    def draw(self, num_records: int, step: int = 0):
        return pad_to_physical_batches(self.rows(num_records), PHYSICAL)


class DropsSpill(_Twin):
    def draw(self, num_records, step=0):
        return super().draw(num_records)[:1]


class FixedSize(_Twin):
    def rows(self, num_records):
        size = round(self.rate * num_records)
        return self.generator.choice(num_records, size, replace=False)


class RedrawsEmpty(_Twin):
    def rows(self, num_records):
        while not len(rows := super().rows(num_records)):
            pass
        return rows


class OneCoinForAll(_Twin):
    def rows(self, num_records):
        everybody = self.generator.random() < self.rate
        return np.arange(num_records if everybody else 0)


class ShuffledEpochs(_Twin):
    order = np.zeros(0, int)

    def rows(self, num_records):
        if not len(self.order):
            self.order = self.generator.permutation(num_records)
        size = round(self.rate * num_records)
        rows, self.order = self.order[:size], self.order[size:]
        return rows


class DrawnOnce(_Twin):
    drawn = None

    def rows(self, num_records):
        if self.drawn is None or num_records != RECORDS:
            self.drawn = super().rows(num_records)
        return self.drawn


class Seeded(_Twin):
    def rows(self, num_records):
        return np.flatnonzero(np.random.rand(num_records) < self.rate)  # noqa: NPY002


def test_the_twin_that_is_not_broken_passes():
    check_all(_Twin)


@pytest.mark.parametrize(
    "twin",
    [
        DropsSpill,
        FixedSize,
        RedrawsEmpty,
        OneCoinForAll,
        ShuffledEpochs,
        DrawnOnce,
        Seeded,
    ],
)
def test_broken_sampler_is_refused(twin):
    with pytest.raises(AssertionError):
        check_all(twin)
