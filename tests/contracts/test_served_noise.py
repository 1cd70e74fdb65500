"""Noise of a served model cannot be replayed, and twins whose noise can.

A SavedModel is loaded as a server does, by TensorFlow and tensorflow-text alone.
"""

from __future__ import annotations

import itertools
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.serving.models import encode, load, noisy_model
from tfpriv.serving import export
from tfpriv.serving.graph_check import check_graph

TEXTS = ["she is good"] * 64
ALONE = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"tfpriv", "keras_nlp", "keras_hub"}:
            raise ImportError(name)

sys.meta_path.insert(0, Nothing())
import tensorflow as tf
import tensorflow_text

tf.random.set_seed(5)
model = tf.saved_model.load(sys.argv[1])
vectors = model.signatures["encode"](text=tf.constant(["she is good"] * 64))
sys.stdout.write(vectors["representation"].numpy().tobytes().hex())
"""


def all_differ(draws):
    for a, b in itertools.combinations(draws, 2):
        assert not np.array_equal(a, b)


def check_calls_and_reloads_differ(folder):
    draws = []
    for _ in range(2):
        tf.random.set_seed(5)
        signatures = load(folder)
        draws.append(encode(signatures, TEXTS))
        tf.random.set_seed(5)
        draws.append(encode(signatures, TEXTS))
    assert np.ptp(draws[0], axis=0).min() > 0  # rows too
    all_differ(draws)


def check_processes_differ(folder):
    done = [
        subprocess.run(
            [sys.executable, "-c", ALONE, str(folder)],
            capture_output=True,
            text=True,
            check=True,
        )
        for _ in range(2)
    ]
    draws = [np.frombuffer(bytes.fromhex(d.stdout), np.float32) for d in done]
    assert all(len(draw) and np.isfinite(draw).all() for draw in draws)
    all_differ(draws)


def check_the_graph_has_no_seed(folder):
    check_graph(folder)


CHECKS = [
    check_calls_and_reloads_differ,
    check_the_graph_has_no_seed,
    pytest.param(check_processes_differ, marks=pytest.mark.slow),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    tf.random.set_seed(3)
    keras.utils.set_random_seed(3)
    return export(noisy_model(), tmp_path_factory.mktemp("served") / "model")


@pytest.mark.parametrize("check", CHECKS)
def test_served_noise_is_fresh(served, check):
    check(served)


class SeedGeneratorNoise(keras.layers.Layer):
    """Keras's own way: the generator's state is saved with the model."""

    def __init__(self):
        super().__init__()
        self.seed_generator = keras.random.SeedGenerator()

    def call(self, inputs):
        shape = keras.ops.shape(inputs)
        return inputs + keras.random.normal(shape, seed=self.seed_generator)


class GlobalSeedNoise(keras.layers.Layer):
    """TensorFlow's own way, exported after a global seed."""

    def call(self, inputs):
        return inputs + tf.random.normal(tf.shape(inputs))


TWINS = {
    "keras.random.SeedGenerator": SeedGeneratorNoise,
    "tf.random": GlobalSeedNoise,
}


class Twin(tf.Module):
    def __init__(self, noise):
        super().__init__()
        self.noise = noise
        self.state = [variable.value for variable in noise.variables]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def encode(self, text):
        zeros = tf.zeros([tf.size(text), 8])
        return {"representation": self.noise(zeros)}


@pytest.fixture(scope="module", params=TWINS)
def twin(request, tmp_path_factory):
    tf.random.set_seed(3)
    twin = Twin(TWINS[request.param]())
    folder = tmp_path_factory.mktemp("twin") / "1"
    tf.saved_model.save(twin, str(folder), signatures={"encode": twin.encode})
    return folder


@pytest.mark.parametrize("check", CHECKS)
def test_a_twin_that_replays_is_rejected(twin, check):
    with pytest.raises((AssertionError, RuntimeError)):
        check(twin)


@pytest.mark.parametrize("noise", TWINS)
def test_a_model_whose_noise_replays_is_not_exported(noise, tmp_path):
    model = noisy_model(mask_rate=0.0)
    model.encoder.noise = TWINS[noise]()
    tf.random.set_seed(3)
    with pytest.raises(RuntimeError, match="seed"):
        export(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
