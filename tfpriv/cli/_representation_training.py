"""Training of a representation that survives a kill, and what it wrote down."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv._files import (
    DAMAGED,
    PRIVATE,
    PUBLIC,
    atomic_write,
    raise_if_of_the_system,
    write_json,
)
from tfpriv.cli._common import say
from tfpriv.cli._representation_run import (
    MODEL,
    load_model,
    save_model,
    targets,
)

if TYPE_CHECKING:
    from tfpriv.cli.run_folder import RunFolder
    from tfpriv.datasets import Splits

_CHECKPOINT = re.compile(r"checkpoint-(\d+)\.weights\.h5")
# Weights, and the moments of the optimizers.
_COPIES = 3


def finished(folder: RunFolder) -> dict[str, Any] | None:
    """What a finished run prints, or None."""
    whole = [folder.release / name for name in ("privacy.json", "statement.txt")]
    path = folder.internal / "evaluation.json"
    if not all(file.exists() for file in (path, *whole, folder.internal / MODEL)):
        return None
    evaluation = json.loads(path.read_text(encoding="utf-8"))
    return _result(folder, evaluation, finished_before=True)


def train_and_release(
    model: Any,
    parts: Splits,
    folder: RunFolder,
    config: Mapping[str, Any],
    *,
    tensorboard: bool = True,
) -> dict[str, Any]:
    """Trains or goes on training, evaluates, and writes the release's statement.

    Returns:
        What a command shows or prints as JSON.
    """
    internal = folder.internal
    if (internal / MODEL).exists():
        model = load_model(folder.path)
    else:
        _fit(model, parts, internal, config, tensorboard=tensorboard)
        save_model(model, internal)
    for path in internal.glob("checkpoint-*"):
        path.unlink()
    evaluation = evaluate(model, parts, config)
    write_json(internal / "evaluation.json", evaluation, mode=PRIVATE)
    statement = model.privacy_statement()
    with folder.staged_release() as staged:
        statement.save(staged / "privacy.json")
        with atomic_write(staged / "statement.txt", mode=PUBLIC) as file:
            file.write(str(statement) + "\n")
    return _result(folder, evaluation, finished_before=False)


def check_room(model: Any, folder: Path) -> None:
    """Refuses a disk that cannot hold two checkpoints and the model."""
    size = 4 * sum(math.prod(weight.shape) for weight in model.weights)
    needed = (2 * _COPIES + 1) * size
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise InputError(
            f"Expected {needed >> 20} MB of free disk under {folder} for checkpoints, "
            f"received {free >> 20} MB. Free some, or name another folder."
        )


def evaluate(
    model: Any, parts: Splits, config: Mapping[str, Any]
) -> dict[str, float | int]:
    """Task scores on the test part, each text released once.

    Macro-F1 is scikit-learn's mean over the classes that are in the test part or
    predicted; a class that only the test part has has an F1 of 0.
    """
    import numpy as np
    from sklearn.metrics import accuracy_score, f1_score

    truth = targets(parts.test, config)["label"]
    guess = model.predict(list(parts.test.texts), verbose=0).argmax(axis=1)
    constant = max(
        f1_score(truth, np.full_like(truth, c), average="macro", zero_division=0)
        for c in np.unique(truth)
    )
    return {
        "test_rows": len(truth),
        "task_macro_f1": float(
            f1_score(truth, guess, average="macro", zero_division=0)
        ),
        "task_accuracy": float(accuracy_score(truth, guess)),
        "constant_macro_f1": float(constant),
    }


def fit_with_bar(
    model: Any,
    parts: Splits,
    config: Mapping[str, Any],
    *,
    initial_epoch: int = 0,
    on_epoch_end: Callable[[int, dict[str, float]], None] = lambda epoch, logs: None,
) -> None:
    """Fits from one epoch to the last, with a progress bar and a line an epoch."""
    import keras

    from tfpriv.seqgan.progress_bar import terminal_report

    epochs = config["epochs"]
    steps = math.ceil(len(parts.train) / config["batch_size"])
    current = initial_epoch
    with terminal_report() as report:

        def start(epoch: int, logs: Any = None) -> None:
            nonlocal current
            current = epoch
            report(f"epoch {epoch + 1} of {epochs}", epoch / epochs)

        def advance(batch: int, logs: Any = None) -> None:
            done = (current + (batch + 1) / steps) / epochs
            report(f"epoch {current + 1} of {epochs}", done)

        def end(epoch: int, logs: dict[str, Any] | None = None) -> None:
            values = {name: float(value) for name, value in (logs or {}).items()}
            say(f"epoch {epoch + 1} of {epochs}: {_line(values)}")
            on_epoch_end(epoch, values)

        watch = keras.callbacks.LambdaCallback(
            on_epoch_begin=start, on_train_batch_end=advance, on_epoch_end=end
        )
        model.fit(
            list(parts.train.texts),
            targets(parts.train, config),
            batch_size=config["batch_size"],
            epochs=epochs,
            initial_epoch=initial_epoch,
            validation_data=(
                list(parts.validation.texts),
                targets(parts.validation, config),
            ),
            callbacks=[watch],
            verbose=0,
        )


def write_scalars(folder: Path, step: int, logs: Mapping[str, float]) -> None:
    """Adds an epoch's figures to TensorBoard's files, under Keras' names for them.

    Keras' own callback needs TensorBoard to be installed, and can write graphs, which
    hold the vocabulary. Here nothing but numbers gets in.
    """
    import tensorflow as tf

    metadata = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars"),
        data_class="DATA_CLASS_SCALAR",
    )
    for part in ("train", "validation"):
        writer = tf.summary.create_file_writer(str(folder / part))
        with writer.as_default():
            for name, value in logs.items():
                if name.startswith("val_") == (part == "validation"):
                    tag = f"epoch_{name.removeprefix('val_')}"
                    value = tf.constant(value, tf.float32)
                    tf.summary.write(tag, value, step=step, metadata=metadata)
        writer.close()


def _fit(
    model: Any,
    parts: Splits,
    internal: Path,
    config: Mapping[str, Any],
    *,
    tensorboard: bool,
) -> None:
    """Trains, with a checkpoint after every epoch.

    Not Keras' BackupAndRestore: a kill while it writes its first files leaves a
    folder that it cannot read again. Here a checkpoint has its name when it is whole.
    """
    done = _restore(model, internal)
    if done >= config["epochs"]:
        return
    if done:
        say(f"going on from epoch {done + 1} of {config['epochs']}.")
    path = internal / "history.json"
    history = []
    if done:
        history = json.loads(path.read_text(encoding="utf-8"))[:done]

    def keep(epoch: int, logs: dict[str, float]) -> None:
        finite = {n: v if math.isfinite(v) else None for n, v in logs.items()}
        history.append({"epoch": epoch + 1, **finite})
        write_json(path, history, mode=PRIVATE)
        if tensorboard:
            write_scalars(internal / "tensorboard", epoch, logs)
        _save(model, internal, epoch + 1)

    fit_with_bar(
        model,
        parts,
        config,
        initial_epoch=done,
        on_epoch_end=keep,
    )


def _checkpoints(internal: Path) -> dict[int, Path]:
    found = {}
    for path in internal.iterdir():
        match = _CHECKPOINT.fullmatch(path.name)
        if match:
            found[int(match[1])] = path
    return found


def _restore(model: Any, internal: Path) -> int:
    """Loads the latest checkpoint; returns how many epochs it has behind it."""
    found = _checkpoints(internal)
    if not found:
        return 0
    done = max(found)
    try:
        model.load_weights(found[done])
    except DAMAGED as error:
        raise_if_of_the_system(error)
        raise InputError(
            f"Expected {found[done]} as this run wrote it, received a damaged file. "
            "Remove it to train from the start, or name a new output folder."
        ) from None
    return done


def _save(model: Any, internal: Path, done: int) -> None:
    name = f"checkpoint-{done}.weights.h5"
    staged = internal / f".{name}"
    model.save_weights(staged)
    os.chmod(staged, PRIVATE)
    os.replace(staged, internal / name)
    for epoch, path in _checkpoints(internal).items():
        if epoch < done:
            path.unlink()


def _line(logs: Mapping[str, float]) -> str:
    parts = [f"task macro-F1 {logs['task_f1']:.3f}"]
    if "val_task_f1" in logs:
        parts.append(f"validation {logs['val_task_f1']:.3f}")
    if "private_f1" in logs:
        parts.append(f"adversary macro-F1 {logs['private_f1']:.3f}")
        if "val_private_f1" in logs:
            parts.append(f"validation {logs['val_private_f1']:.3f}")
    return ", ".join(parts)


def _result(
    folder: RunFolder, evaluation: dict[str, Any], *, finished_before: bool
) -> dict[str, Any]:
    statement = json.loads(
        (folder.release / "privacy.json").read_text(encoding="utf-8")
    )
    return {
        "privacy": str(folder.release / "privacy.json"),
        "statement": str(folder.release / "statement.txt"),
        "model": str(folder.internal / MODEL),
        "history": str(folder.internal / "history.json"),
        "evaluation": str(folder.internal / "evaluation.json"),
        "finished_before": finished_before,
        **evaluation,
        "method": statement["method"],
        "epsilon": statement["epsilon"],
        "delta": statement["delta"],
        "claimed_epsilon": statement["claimed_epsilon"],
        "statement_text": (folder.release / "statement.txt")
        .read_text(encoding="utf-8")
        .rstrip(),
    }
