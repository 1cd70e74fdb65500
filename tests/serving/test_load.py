"""Ten thousand requests of eight clients: no error, no growth, no noise twice."""

from __future__ import annotations

import concurrent.futures
import pathlib
import resource

import numpy as np
import pytest

from tests.serving.models import LABELS, noisy_model
from tests.serving.servers import Model, serve_grpc
from tfpriv.serving import ServingClient, export

CLIENTS, REQUESTS = 8, 10_000
# Of what a leak of a kilobyte a request would add, in bytes.
MOST_GROWTH = 1000 * REQUESTS


def resident():
    """Memory of this process now, server and clients, in bytes."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def ask(address, requests):
    texts = ["she is good", "", "unbelievable doors !", "he was bad " * 20]
    with ServingClient(address, "model", deadline=120, retries=0) as client:
        return [client.encode([texts[i % len(texts)]])[0] for i in range(requests)]


def storm(address, requests):
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        share = [requests // CLIENTS] * CLIENTS
        found = pool.map(ask, [address] * CLIENTS, share)
        return np.array([vector for vectors in found for vector in vectors])


@pytest.mark.slow
def test_ten_thousand_requests_of_eight_clients(tmp_path):
    export(noisy_model(), tmp_path / "model", label_names=LABELS)
    with serve_grpc(Model(tmp_path / "model")) as address:
        storm(address, REQUESTS // 5)  # what allocators and threads take once
        before = resident()
        vectors = storm(address, REQUESTS)
        grown = resident() - before
    print(f"grown by {grown / 2**20:.1f} MiB over {len(vectors):,} requests")
    assert vectors.shape == (REQUESTS, 8)
    assert np.isfinite(vectors).all()
    assert len(np.unique(vectors, axis=0)) == REQUESTS
    assert grown < MOST_GROWTH
