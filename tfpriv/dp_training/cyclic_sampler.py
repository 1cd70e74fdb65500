"""Every record once a pass, in a fixed order: nothing is claimed for sampling."""

from __future__ import annotations

import numpy as np

from tfpriv import _validation
from tfpriv._errors import InputError
from tfpriv.dp_training.sampler import PhysicalBatch, pad_to_physical_batches


class CyclicSampler:
    """Cuts the batches of all steps from passes that follow without a gap.

    A plan with `sampling="once_per_epoch"` needs only that a record is read at
    most once a pass; which step reads it may be known to everybody. So nothing is
    random here: the step number says which records are read, and a resumed run
    reads what the killed one would have read.

    A pass is over `num_places` places, a number that may be noisy. Record i sits
    at place i modulo that number; a place may be empty or hold several records.

    >>> sampler = CyclicSampler(num_places=5, batch_size=2, physical_batch_size=2)
    >>> [sampler.draw(5, step)[0].indices.tolist() for step in range(3)]
    [[0, 1], [2, 3], [0, 4]]

    Args:
        num_places: int. Places of a pass.
        batch_size: int. Places of a step, at most `num_places`.
        physical_batch_size: int. Rows a physical batch has, padding included.

    Raises:
        InputError: if an argument is out of range.
    """

    def __init__(
        self, num_places: int, batch_size: int, physical_batch_size: int
    ) -> None:
        _validation.integer(
            num_places=num_places,
            batch_size=batch_size,
            physical_batch_size=physical_batch_size,
        )
        if batch_size > num_places:
            # A step would read a record twice and pay for it once.
            raise InputError(
                f"Expected batch_size <= num_places={num_places}, received "
                f"batch_size={batch_size}. Use a smaller batch."
            )
        self.num_places = int(num_places)
        self.batch_size = int(batch_size)
        self.physical_batch_size = int(physical_batch_size)

    def draw(self, num_records: int, step: int) -> list[PhysicalBatch]:
        """Returns the records of step `step`, counted from 0, as physical batches."""
        _validation.integer(minimum=0, num_records=num_records, step=step)
        first = step * self.batch_size
        distance = (np.arange(num_records) - first) % self.num_places
        rows = np.flatnonzero(distance < self.batch_size)
        return pad_to_physical_batches(rows, self.physical_batch_size)
