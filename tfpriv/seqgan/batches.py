"""Endless batches of one size whose order follows from a seed and a counter."""

from __future__ import annotations

import numpy as np

from tfpriv._validation import integer


def batch_indices(count: int, batch_size: int, step: int, seed: int) -> np.ndarray:
    """Rows of batch number `step` of shuffled passes over `count` rows.

    Pass follows pass without a gap, so every batch is full and every row comes
    once a pass. Nothing is remembered: a training run that was killed goes on from
    its step count alone.

    Args:
        count: int. Rows there are.
        batch_size: int.
        step: int from 0.
        seed: int.

    Returns:
        int64 (batch_size,).
    """
    integer(count=count, batch_size=batch_size)
    position = step * batch_size
    parts, missing = [], batch_size
    while missing:
        number, offset = divmod(position, count)
        order = np.random.default_rng([seed, number]).permutation(count)
        part = order[offset : offset + missing]
        parts.append(part)
        position += len(part)
        missing -= len(part)
    return np.concatenate(parts)
