"""A stand-in for an exported model, served on loopback by gRPC and by REST."""

from __future__ import annotations

import contextlib

import pytest

from tests.serving.models import save_stand_in
from tests.serving.servers import Model, serve_grpc, serve_rest


@pytest.fixture(scope="session")
def stand_in_folder(tmp_path_factory):
    return save_stand_in(tmp_path_factory.mktemp("stand_in") / "stand_in", version=3)


@pytest.fixture
def stand_in(stand_in_folder):
    return Model(stand_in_folder)


@pytest.fixture(params=["grpc", "rest"])
def address(request, stand_in):
    serve = {"grpc": serve_grpc, "rest": serve_rest}[request.param]
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(serve(stand_in))
