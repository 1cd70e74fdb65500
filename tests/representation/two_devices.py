"""Run as a program: trains the same models on one device and on two logical ones.

Prints one JSON object: case -> what `tests/representation/test_replicas.py` compares.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

# Not where pytest looks for doctests: devices are there already then.
if __name__ == "__main__":
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * 2,
    )
    # It has to be made before anything is computed.
    _WORKERS = tf.distribute.MultiWorkerMirroredStrategy()
    # One for all: TensorFlow takes the sums of two of them for each other's.
    _TWO = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

import keras
import keras_nlp

from tests.representation.conftest import VOCABULARY, make_backbone
from tfpriv.dp_training import DPModel
from tfpriv.layers import LaplaceNoise
from tfpriv.representation import ADS, CAPE, RMAT, adversarial_steps, replicas
from tfpriv.seqgan.dp_seqgan import DPSeqGAN

TEXTS = [
    "I love the great table!",
    "he hate it .",
    "the unbelievable door",
    "she plays , it was awful",
    "a",
    "a man sees the woman",
    "we walks",
    "fine car !",
    "bad bad bad door",
    "you was good",
    "sad",
]
TARGETS = {
    "label": np.array([2, 0, 1, 0, 1, 1, 2, 2, 0, 1, 0]),
    "private": np.array([0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1]),
}
WEIGHTS = np.linspace(0.1, 3.0, len(TEXTS)).astype(np.float32)
# 5, 5 and a last one of 1, of which the second replica gets nothing.
BATCH = 5

# Codes are trained on as an expectation: nothing is drawn.
QUIET = {"mask_rate": 0.0, "dropout": 0.0}
CASES = {
    "rmat": (RMAT, QUIET, {"adversary_weight": 0.5}),
    "rmat-uncapped": (
        RMAT,
        {**QUIET, "cap_adversary": False},
        {"adversary_weight": 0.5, "adversary_steps": 2},
    ),
    "rmat-xla": (RMAT, QUIET, {"jit_compile": True}),
    "rmat-classes": (
        RMAT,
        QUIET,
        {"class_weights": {"label": [1, 2, 3], "private": [3, 1]}},
    ),
    "rmat-l1": (RMAT, {**QUIET, "scale": "l1", "dimension": 4}, {}),
    "ads": (ADS, {"dropout": 0.0}, {}),
    "cape": (
        CAPE,
        {"dropout": 0.0, "post_units": (8,)},
        {},
    ),
}


def made(case: str) -> keras.Model:
    method, settings, options = CASES[case]
    keras.utils.set_random_seed(1)
    tokenizer = keras_nlp.models.BertTokenizer(vocabulary=VOCABULARY, lowercase=True)
    model = method(
        make_backbone(dropout=0.0),
        tokenizer,
        num_classes=3,
        num_private_classes=2,
        public_backbone=True,
        **settings,
    )
    # With Adam a gradient of twice the size would make the same step.
    sgd = keras.optimizers.SGD
    model.compile(sgd(0.3), sgd(0.2), **options)
    return model


def trained(case: str, strategy: Any, weights: bool) -> dict[str, Any]:
    with strategy.scope():
        model = made(case)
    before = flat(model)
    history = model.fit(
        TEXTS,
        TARGETS,
        batch_size=BATCH,
        shuffle=False,
        sample_weight=WEIGHTS if weights else None,
        validation_data=(TEXTS, TARGETS),
        verbose=0,
    ).history
    return {
        "moved": float(np.abs(flat(model) - before).max()),
        "weights": flat(model),
        "steps": int(model.trained_steps.numpy()),
        # Of CAPE and RMAT with noise, what is validated on is drawn.
        "history": {k: v[0] for k, v in history.items() if "val" not in k},
        "probabilities": model.predict(TEXTS, verbose=0).shape,
    }


def flat(model: keras.Model) -> np.ndarray:
    return np.concatenate([w.numpy().ravel() for w in model.trainable_variables])


def compared(case: str, weights: bool = False) -> dict[str, Any]:
    one = trained(case, tf.distribute.get_strategy(), weights)
    two = trained(case, _TWO, weights)
    return {
        "moved": one["moved"],
        "apart": float(np.abs(one["weights"] - two["weights"]).max()),
        "steps": [one["steps"], two["steps"]],
        "history": [one["history"], two["history"]],
    }


def own_mean(self: Any, values: tf.Tensor) -> tf.Tensor:
    """The twin: a replica's mean over its own records."""
    return tf.reduce_mean(values)


def noise_of_replicas() -> list[list[float]]:
    """What two replicas release of one text, of which both hold a copy."""
    strategy = _TWO
    with strategy.scope():
        keras.utils.set_random_seed(1)
        tokenizer = keras_nlp.models.BertTokenizer(
            vocabulary=VOCABULARY, lowercase=True
        )
        model = RMAT(
            make_backbone(dropout=0.0),
            tokenizer,
            num_classes=3,
            num_private_classes=2,
            scale="l1",
            dimension=4,
        )
    ids = model.encoder.word_pieces(tf.constant(["a man sees the woman"] * 50))
    released = strategy.run(tf.function(lambda: model.release(ids, training=True)))
    return [part.numpy().tolist() for part in released.values]


def refused_on_several_workers() -> dict[str, str]:
    """Entry -> what it says under MultiWorkerMirroredStrategy."""
    strategy = _WORKERS
    with strategy.scope():
        model = made("rmat")
        linear = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    entries = {
        "RMAT.fit": lambda: model.fit(TEXTS, TARGETS, verbose=0),
        "DPModel": lambda: DPModel(linear, epsilon=8.0, delta=1e-5),
        "DPSeqGAN.fit": lambda: DPSeqGAN(8.0).fit(None),
    }
    found = {}
    for name, entry in entries.items():
        try:
            with strategy.scope():
                entry()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
        else:
            found[name] = "nothing"
    return found


def main(cases: list[str]) -> None:
    found: dict[str, Any] = {}
    for case in cases:
        sys.stderr.write(f"{case}\n")
        with pytest.MonkeyPatch.context() as patch:
            if case == "noise":
                found[case] = noise_of_replicas()
                continue
            if case == "refused":
                found[case] = refused_on_several_workers()
                continue
            # What is compared draws nothing.
            patch.setattr(LaplaceNoise, "call", lambda self, x, **_: x)
            name, _, how = case.partition(":")
            if how == "own mean":
                patch.setattr(replicas.BatchWeights, "mean", own_mean)
            elif how == "own cap":
                patch.setattr(adversarial_steps, "_capped", tf.minimum)
            found[case] = compared(name, weights=how == "weighted")
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
