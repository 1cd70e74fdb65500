from __future__ import annotations

import numpy as np
import pytest

from tfpriv._errors import InputError
from tfpriv.dp_training import CyclicSampler, PoissonSampler


def rows(batches) -> list[int]:
    return np.concatenate([b.indices[b.mask] for b in batches]).tolist()


def test_a_large_draw_spills_into_more_batches_of_one_shape():
    batches = PoissonSampler(1.0, physical_batch_size=4).draw(9)
    assert [b.indices.shape for b in batches] == [(4,)] * 3
    assert [int(b.mask.sum()) for b in batches] == [4, 4, 1]
    assert rows(batches) == list(range(9))


@pytest.mark.parametrize("rate", [1e-12, 1.0])
def test_no_records_are_one_batch_of_padding(rate):
    (batch,) = PoissonSampler(rate, physical_batch_size=4).draw(0)
    assert not batch.mask.any()
    assert batch.indices.shape == (4,)


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1, float("nan")])
def test_a_rate_outside_its_range_is_refused(rate):
    with pytest.raises(InputError, match="sampling_rate"):
        PoissonSampler(rate, 4)


@pytest.mark.parametrize(("places", "records"), [(10, 10), (10, 7), (10, 23), (6, 6)])
def test_a_cyclic_pass_reads_every_record_once(places, records):
    batch_size = 4
    sampler = CyclicSampler(places, batch_size, physical_batch_size=3)
    passes = 2 * batch_size  # whole passes end together with whole steps
    steps = passes * places // batch_size
    taken = [sorted(rows(sampler.draw(records, step))) for step in range(steps)]
    assert all(len(set(step)) == len(step) for step in taken)
    counts = np.bincount(np.concatenate(taken), minlength=records)
    np.testing.assert_array_equal(counts, passes)
    assert taken[0] == sorted(rows(sampler.draw(records, 0)))


def test_a_step_larger_than_a_pass_is_refused():
    with pytest.raises(InputError, match="batch_size"):
        CyclicSampler(4, 5, physical_batch_size=3)
