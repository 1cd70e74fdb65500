"""One cell: one arm on one data set at one seed, trained, released and measured."""

from __future__ import annotations

import gc
import math
import time
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from experiments._cells.machine import machine, versions
from experiments._cells.progress import say
from experiments.rmat_tables import data, measures, models
from experiments.rmat_tables.settings import Arm, Settings
from tfpriv.datasets.md_gender import SENTIMENTS
from tfpriv.representation import PrivateTextModel

Json = dict[str, Any]
_MORE_VERSIONS = ("keras-nlp", "vaderSentiment")


def run_cell(settings: Settings, dataset: str, arm: Arm, seed: int) -> Json:
    """Trains and measures one arm.

    Args:
        settings: Settings.
        dataset: key of `settings.DATASETS`.
        arm: Arm.
        seed: of initialisation and the order of batches.

    Returns:
        JSON of one cell; see `experiments/rmat_tables/__init__.py`.
    """
    start = time.monotonic()
    # It warns of functions that are traced again: each cell has a model of its own.
    tf.get_logger().setLevel("ERROR")
    limit = settings.front_limit if arm.method == "front" else settings.limit
    train, test = data.load_parts(dataset, limit, settings.test_limit)
    # What the model learns: of the arm "second" a symbol for each pair.
    learned = train.joint() if arm.method == "second" else train.labels
    epochs = settings.epochs_on(arm, dataset)
    model = models.make_model(
        arm,
        settings,
        classes=len(data.JOINT) if arm.method == "second" else len(SENTIMENTS),
        private_classes=data.private_classes(dataset),
        steps=epochs * math.ceil(len(train.texts) / settings.batch_size),
        seed=seed,
    )
    history = model.fit(
        list(train.texts),
        {"label": learned, "private": train.private},
        batch_size=settings.batch_size,
        epochs=epochs,
        verbose=0,
        callbacks=[keras.callbacks.LambdaCallback(on_epoch_end=_say_epoch)],
    ).history
    cell: Json = {
        "experiment": "rmat_tables",
        "dataset": dataset,
        "arm": arm.key,
        "seed": seed,
        "sizes": {"train": len(train.texts), "test": len(test.texts)},
        "epochs": epochs,
        # Of cells without these entries see the report's remarks.
        "jit_compile": False,
        "whole_gradients": True,
        "history": {
            name: [float(x) if np.isfinite(x) else None for x in values]
            for name, values in history.items()
        },
        "floors": measures.floors(train.labels, test.labels, len(SENTIMENTS)),
        "fit_seconds": round(time.monotonic() - start, 1),
    }
    if settings.attack_rows is not None:
        train = _some(train, settings.attack_rows)
    if not np.isfinite(history["loss"]).all():
        cell["diverged"] = True
    elif arm.method in models.CODES:
        cell |= _measure_codes(settings, arm, model, train, test)
    else:
        cell |= _measure(settings, arm, model, train, test)
    cell["seconds"] = round(time.monotonic() - start, 1)
    _forget()
    cell["machine"], cell["versions"] = machine(), versions(*_MORE_VERSIONS)
    cell["finished"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return cell


def _say_epoch(epoch: int, logs: dict[str, float]) -> None:
    figures = ", ".join(f"{name} {value:.3f}" for name, value in logs.items())
    say(f"epoch {epoch + 1}: {figures}")


def _measure(
    settings: Settings,
    arm: Arm,
    model: PrivateTextModel,
    train: data.Part,
    test: data.Part,
) -> Json:
    """One release of each text: its reader and its attacker see the same."""
    released = model.encode(train.texts), model.encode(test.texts)
    certificate = model.certificate()
    cell = {
        "certificate": certificate.to_json() if certificate else None,
        "task": _task(model, released, train, test),
        "attack": measures.attack(
            settings, (released[0], train.private), (released[1], test.private)
        ),
    }
    if arm.method == "none":
        cell["counts"] = {
            name: _counts(model, part, _guess(model, seen), len(SENTIMENTS))
            for name, part, seen in zip(
                ("train", "test"), (train, test), released, strict=True
            )
        }
    return cell


def _measure_codes(
    settings: Settings,
    arm: Arm,
    model: PrivateTextModel,
    train: data.Part,
    test: data.Part,
) -> Json:
    """The codes of one encoder, released at each certified epsilon."""
    codes = models.silent_codes(model, train.texts, test.texts)
    second = arm.method == "second"
    certified = {}
    for epsilon in settings.certified_epsilons:
        # The encoder's own noise, on codes that took one pass of the backbone.
        encoder = models.at_epsilon(model, epsilon).encoder
        released = tuple(encoder.noise(part).numpy() for part in codes)
        certified[f"{epsilon:g}"] = {
            "certificate": encoder.certificate().to_json(),
            "task": _task(model, released, train, test, joint=second),
            "attack": measures.attack(
                settings, (released[0], train.private), (released[1], test.private)
            ),
        }
        if second:
            certified[f"{epsilon:g}"]["intensity"] = _intensity(
                model, released, train, test
            )
    cell: Json = {
        "certified": certified,
        # Before randomised response: what the codes could give at most.
        "codes": _task(model, codes, train, test, joint=second),
        "codes_in_use": int((codes[1].sum(0) > 0).sum()),
    }
    if second:
        cell["codes_intensity"] = _intensity(model, codes, train, test)
        cell["counts"] = {
            name: _counts(model, part, _guess(model, seen), len(data.JOINT))
            for name, part, seen in zip(
                ("train", "test"), (train, test), codes, strict=True
            )
        }
    return cell


def _task(
    model: PrivateTextModel,
    released: tuple[np.ndarray, np.ndarray],
    train: data.Part,
    test: data.Part,
    *,
    joint: bool = False,
) -> Json:
    """Sentiment by the model's own head, and by a reader trained afresh."""
    guess = _guess(model, released[1])
    if joint:
        guess = np.array([pair[0] for pair in data.JOINT])[guess]
    return _scored(guess, released, train.labels, test.labels, classes=len(SENTIMENTS))


def _intensity(
    model: PrivateTextModel,
    released: tuple[np.ndarray, np.ndarray],
    train: data.Part,
    test: data.Part,
) -> Json:
    guess = np.array([pair[1] for pair in data.JOINT])[_guess(model, released[1])]
    learned, truth = train.intensities(), test.intensities()
    classes = len(data.INTENSITIES)
    return {
        **_scored(guess, released, learned, truth, classes=classes),
        "floors": measures.floors(learned, truth, classes),
    }


def _scored(
    guess: np.ndarray,
    released: tuple[np.ndarray, np.ndarray],
    learned: np.ndarray,
    truth: np.ndarray,
    *,
    classes: int,
) -> Json:
    afresh = measures.read_afresh(released[0], learned, released[1])
    reader = measures.task_score(truth, afresh, classes)
    return {**measures.task_score(truth, guess, classes), "reader": reader}


def _guess(model: PrivateTextModel, released: np.ndarray) -> np.ndarray:
    """The task head on what was released, not on a new release."""
    return model.task_head(released, training=False).numpy().argmax(1)


def _counts(
    model: PrivateTextModel, part: data.Part, guess: np.ndarray, classes: int
) -> list:
    """Rows by (private label, label, intensity, prediction)."""
    shape = (
        model.num_private_classes,
        len(SENTIMENTS),
        len(data.INTENSITIES),
        classes,
    )
    counts = np.zeros(shape, np.int64)
    np.add.at(counts, (part.private, part.labels, part.intensities(), guess), 1)
    return counts.tolist()


def _some(part: data.Part, rows: int) -> data.Part:
    if len(part.texts) <= rows:
        return part
    kept = np.linspace(0, len(part.texts) - 1, rows).astype(int)
    texts = tuple(part.texts[i] for i in kept)
    return data.Part(texts, part.labels[kept], part.private[kept])


def _forget() -> None:
    """Drops graphs: dozens of cells in one process would fill the memory."""
    keras.backend.clear_session(free_memory=True)
    gc.collect()
