"""Tiny models whose every sequence can be enumerated."""

import pytest

from tfpriv.seqgan import Discriminator, Generator


@pytest.fixture
def generator():
    """Variable length: pad 0, start 1, end 2, and the words 3, 4, 5."""
    return Generator(6, 4, 3, 4, initializer_stddev=1.0, seed=3)


@pytest.fixture
def fixed_generator():
    """Four words, exactly three a sequence."""
    return Generator(4, 3, 3, 4, start_id=0, end_id=None, initializer_stddev=1, seed=3)


@pytest.fixture
def discriminator():
    return Discriminator(6, 4, 3, widths=(1, 2), filters=(4, 5), seed=5)
