"""What is said about private records without training.

Each mechanism owns its sensitivity, its noise and its accounting event. Noise comes
from OpenDP's secure generator, or from the operating system's, and cannot be seeded.

- `GaussianCounts`: noisy sums over a public list of bins.
- `RandomizedResponse`: labels of which each may be another one.
- `select_partitions`: bins whose very names are private.
"""

from tfpriv.mechanisms.gaussian_counts import GaussianCounts
from tfpriv.mechanisms.partition_selection import (
    SelectedPartitions,
    select_partitions,
    selection_threshold,
)
from tfpriv.mechanisms.randomized_response import RandomizedResponse

__all__ = [
    "GaussianCounts",
    "RandomizedResponse",
    "SelectedPartitions",
    "select_partitions",
    "selection_threshold",
]
