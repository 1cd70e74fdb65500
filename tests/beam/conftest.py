"""A model of a moment's work, and runs of the command in this process."""

from __future__ import annotations

import pytest

pytest.importorskip("apache_beam")

from tests.beam.models import replayed, save_model


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models") / "light")


@pytest.fixture(scope="session")
def twin(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("models") / "twin", replayed)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("TFPRIV_STATE_DIR", str(tmp_path / "state"))
