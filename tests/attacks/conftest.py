"""One thread: on small data the threads of OpenMP wait for each other."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(limits=1):
        yield
