"""The contract of fresh noise on an exported RMAT, masks and Laplace noise in it."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.beam.test_privatize import (
    check_a_retry_behind_the_noise_reads_the_same_draws,
    check_two_runs_differ_in_every_vector,
)
from tests.serving.models import noisy_model
from tfpriv import serving
from tfpriv.layers import _randomness

pytest.importorskip("tensorflow_serving", reason="needs tfpriv[serving]")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rmat") / "rmat"
    serving.export(noisy_model(), folder)
    return folder


def test_two_runs_differ_in_every_vector(exported):
    check_two_runs_differ_in_every_vector(exported)


def test_a_retry_behind_the_noise_reads_the_same_draws(exported):
    check_a_retry_behind_the_noise_reads_the_same_draws(exported)


def test_an_encoder_whose_bits_are_constant_is_rejected(tmp_path, monkeypatch):
    def constant(shape):
        words = tf.fill(tf.cast(shape, tf.int32), 2**31 + 12345)
        return tf.cast(words, tf.uint32)

    monkeypatch.setattr(_randomness, "fresh_words", constant)
    serving.export(noisy_model(), tmp_path / "twin")
    monkeypatch.undo()
    with pytest.raises(AssertionError):
        check_two_runs_differ_in_every_vector(tmp_path / "twin")
