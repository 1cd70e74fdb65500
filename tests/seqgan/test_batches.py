"""Batches: full ones, every row once a pass, from the step count alone."""

import numpy as np
import pytest

from tfpriv.seqgan.batches import batch_indices


@pytest.mark.parametrize(("count", "size"), [(10, 3), (3, 10), (7, 7), (1, 4)])
def test_every_row_comes_once_a_pass(count, size):
    stream = np.concatenate([batch_indices(count, size, s, seed=0) for s in range(20)])
    assert len(stream) == 20 * size
    for start in range(0, len(stream) - count + 1, count):
        assert sorted(stream[start : start + count]) == list(range(count))


def test_passes_and_seeds_have_orders_of_their_own():
    first, second = (batch_indices(50, 50, step, seed=0) for step in (0, 1))
    assert (first != second).any()
    assert (first != batch_indices(50, 50, 0, seed=1)).any()
    np.testing.assert_array_equal(first, batch_indices(50, 50, 0, seed=0))
