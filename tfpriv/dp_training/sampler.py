"""Which private records a step reads, in batches of one fixed shape."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tfpriv import _validation
from tfpriv.dp_training.noise import fresh_generator


class PhysicalBatch(NamedTuple):
    """Row numbers padded to a fixed length, and which of them are real.

    Attributes:
        indices: int64 array (physical_batch_size,). Padding repeats row 0.
        mask: bool array (physical_batch_size,). False on padding.
    """

    indices: np.ndarray
    mask: np.ndarray


def pad_to_physical_batches(
    rows: np.ndarray, physical_batch_size: int
) -> list[PhysicalBatch]:
    """Cuts `rows` into as many fixed-shape batches as they need, at least one.

    No row is dropped: a draw that is larger than one batch goes on in the next
    batch of the same step. No rows give one batch of padding alone.
    """
    count = max(1, math.ceil(len(rows) / physical_batch_size))
    indices = np.zeros(count * physical_batch_size, np.int64)
    mask = np.zeros(count * physical_batch_size, bool)
    indices[: len(rows)] = rows
    mask[: len(rows)] = True
    return [
        PhysicalBatch(part_indices, part_mask)
        for part_indices, part_mask in zip(
            np.split(indices, count), np.split(mask, count), strict=True
        )
    ]


class PoissonSampler:
    """True Poisson sampling: every record joins a step with the same probability.

    Each record is in a step's draw independently of all others and of all other
    steps; draws of size 0 are steps like any other. This, with the sum divided
    by the EXPECTED size, is the sampling that the amplified accounting is proven
    for (Abadi et al. 2016, arXiv:1607.00133, algorithm 1; Zhu and Wang 2019).
    Randomness comes from the operating system and cannot be seeded.

    >>> sampler = PoissonSampler(sampling_rate=0.1, physical_batch_size=16)
    >>> batches = sampler.draw(num_records=100)
    >>> {batch.indices.shape for batch in batches}
    {(16,)}

    Args:
        sampling_rate: float in (0, 1]. 1 reads every record in every step.
        physical_batch_size: int. Rows a batch has, padding included.

    Raises:
        InputError: if an argument is out of range.
    """

    def __init__(self, sampling_rate: float, physical_batch_size: int) -> None:
        _validation.rate(sampling_rate=sampling_rate)
        _validation.integer(physical_batch_size=physical_batch_size)
        self.sampling_rate = float(sampling_rate)
        self.physical_batch_size = int(physical_batch_size)

    def draw(self, num_records: int, step: int = 0) -> list[PhysicalBatch]:
        """Draws the records of one step.

        Args:
            num_records: int. How many private records there are; 0 is allowed.
            step: int. Ignored: a Poisson draw knows no past.

        Returns:
            One or more physical batches that hold every drawn record once.
        """
        del step
        _validation.integer(minimum=0, num_records=num_records)
        if self.sampling_rate == 1.0:
            rows = np.arange(num_records)
        else:
            # A binomial size and then a uniform subset of that size is the same
            # distribution as one coin a record, at a cost that does not grow
            # with the number of records.
            generator = fresh_generator()
            size = generator.binomial(num_records, self.sampling_rate)
            rows = generator.choice(num_records, size, replace=False, shuffle=False)
        return pad_to_physical_batches(rows, self.physical_batch_size)
