"""The façade: lazy, complete, and clear about a Keras on another backend."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import tfpriv
from tfpriv import _backend


@pytest.mark.parametrize("name", tfpriv.__all__)
def test_every_exported_name_is_there_and_listed(name):
    assert getattr(tfpriv, name) is not None
    assert name in dir(tfpriv)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'DPSeqGan'"):
        _ = tfpriv.DPSeqGan


def _keras_on(backend: str) -> types.ModuleType:
    keras = types.ModuleType("keras")
    keras.config = types.SimpleNamespace(backend=lambda: backend)
    return keras


def test_keras_on_another_backend_is_refused_when_a_model_is_touched(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", _keras_on("jax"))
    with pytest.raises(ImportError, match=r"received 'jax'\. Import tfpriv before"):
        tfpriv.__getattr__("DPSeqGAN")
    assert tfpriv.__getattr__("accounting") is tfpriv.accounting


def test_keras_on_tensorflow_passes_whatever_the_environment_says(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", _keras_on("tensorflow"))
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    _backend.require_tensorflow()


@pytest.mark.parametrize(
    ("given", "expected"), [(None, "tensorflow"), ("torch", "torch")]
)
def test_import_sets_the_backend_only_if_unset(given, expected, monkeypatch):
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    if given:
        monkeypatch.setenv("KERAS_BACKEND", given)
    code = "import os, tfpriv; print(os.environ['KERAS_BACKEND'])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == expected


def test_another_backend_in_the_environment_is_refused_before_keras_loads(
    monkeypatch,
):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    with pytest.raises(ImportError, match=r"received 'torch'\. Unset"):
        tfpriv.__getattr__("dp_training")
