"""A trained model as a folder that TensorFlow Serving loads."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv._files import PRIVATE, PUBLIC
from tfpriv._validation import integer, one_of
from tfpriv.serving.graph_check import TEXT_OPS, check_graph
from tfpriv.serving.model_card import EXTRA, write_extra
from tfpriv.serving.warm_up import (
    replay_warm_up,
    require_serving_api,
    write_warm_up,
)

if TYPE_CHECKING:
    from tfpriv.accounting import DataBudget

PARTS = ("whole", "client", "server")

# Public texts that a server warms up with: none, some, and a full batch.
_TEXTS = ("Great song!", "", "Check my channel, it's 100 % free: example.com")
_BATCHES = (1, len(_TEXTS), 32)


def export(
    model: Any,
    path: str | os.PathLike,
    version: int | None = None,
    *,
    label_names: Sequence[str] | None = None,
    part: str = "whole",
    trained_on: DataBudget | None = None,
) -> Path:
    """Writes a model to `path/<version>/`, whole or not at all.

    A server needs TensorFlow and tensorflow-text, and nothing of tfpriv. The
    signatures are those of `ServedRepresentation` or `ServedGenerator`; the privacy
    statement, the label names, a model card and warm-up requests lie in
    `assets.extra`. Before the folder gets its name, its graph is checked
    (`check_graph`), it is loaded, and the warm-up requests are read back and answered.

    Args:
        model: a representation model (`tfpriv.RMAT`, ...) or a fitted
            `tfpriv.DPSeqGAN`.
        path: folder of the model's versions; its name is the model's.
        version: int >= 1; None is one more than the highest there is.
        label_names: of the task's classes, in order; None is "0", "1", .... A
            DP-SeqGAN has its own.
        part: "whole"; or "client", which turns text into representations, and
            "server", which turns these into labels and holds no weight of the
            encoder. A generator has no parts.
        trained_on: budget of the data set that the encoder learnt from without a
            guarantee; what is written names it, so that whoever encodes with it is
            asked. None if it has none.

    Returns:
        The folder of the version. Weights that were fitted to private text without a
        guarantee are there for the owner alone: files have mode 0600.

    Raises:
        InputError: a model of another kind, a version that is there already, label
            names that do not fit, or a folder that holds something else.
        RuntimeError: a graph that cannot be served; nothing is left behind.
    """
    path, version = checked_target(path, version)
    if trained_on is not None and not hasattr(trained_on, "ledger"):
        raise InputError(
            "Expected trained_on as a DataBudget, received "
            f"{type(trained_on).__name__}. DataBudget.find(FILE) opens that of a file."
        )
    require_serving_api()
    served, labels, kind = _served(model, label_names, part)
    statement = model.privacy_statement()
    with _staged(path, version, private=_is_private(model, statement)) as folder:
        _save(served, folder)
        ops = check_graph(folder)
        write_extra(
            folder,
            path.name,
            kind=kind,
            part=part,
            statement=statement,
            label_names=labels,
            signatures=served.saved,
            ops=sorted(ops & TEXT_OPS),
            trained_on=trained_on,
        )
        write_warm_up(folder, path.name, _warm_up(served))
        replay_warm_up(folder)
    return path / str(version)


def _served(
    model: Any, label_names: Sequence[str] | None, part: str
) -> tuple[Any, list[str], str]:
    """Returns what is to be saved, the label names, and the kind of the model."""
    one_of(PARTS, part=part)
    if hasattr(model, "encoder") and hasattr(model, "task_head"):
        from tfpriv.serving.served_representation import ServedRepresentation

        labels = _labels(label_names, model.num_classes)
        return ServedRepresentation(model, labels, part), labels, "representation"
    if hasattr(model, "method") and hasattr(model, "generate"):
        from tfpriv.serving.served_generator import ServedGenerator

        if part != "whole" or label_names is not None:
            raise InputError(
                "Expected neither part nor label_names for a generator, which has "
                f"labels of its own, received part={part!r}."
            )
        served = ServedGenerator(model)
        return served, list(served.label_names), "generator"
    raise InputError(
        "Expected a representation model or a DPSeqGAN, received "
        f"{type(model).__name__}. Give tfpriv.RMAT, DPNR, ADS, CAPE or DPSeqGAN."
    )


def _labels(label_names: Sequence[str] | None, count: int) -> list[str]:
    if label_names is None:
        return [str(number) for number in range(count)]
    names = list(label_names)
    if isinstance(label_names, str) or not all(isinstance(n, str) for n in names):
        raise InputError("Expected label_names as a list of texts, received another.")
    if len(names) != count or len(set(names)) != count:
        raise InputError(
            f"Expected {count} different label names, one a class in order, received "
            f"{len(names)}."
        )
    return names


def checked_target(
    path: str | os.PathLike, version: int | None = None
) -> tuple[Path, int]:
    """Returns the folder of the model and the version to write.

    Raises:
        InputError: a version that is there, or a folder that holds something else
            than versions: a server could not watch it.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_dir():
        raise InputError(f"Expected a folder for the model, received the file {path}.")
    there = next(folder for folder in (path, *path.parents) if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"Expected a folder that can be written for the model, received {path}."
        )
    names = sorted(p.name for p in path.iterdir()) if path.exists() else []
    # Of an export that was killed; a server does not look at it either.
    others = [n for n in names if not n.isdecimal() and not n.startswith(".")]
    if others:
        raise InputError(
            f"Expected a new folder or one of numbered versions, received {path}, "
            f"which holds {others[0]!r}. Name another."
        )
    known = sorted(int(n) for n in names if n.isdecimal())
    if version is None:
        return path, known[-1] + 1 if known else 1
    integer(version=version)
    if version in known:
        raise InputError(
            f"Expected a version that is not there, received version={version}, which "
            f"{path} has. Leave it out for the next one."
        )
    return path, int(version)


def _is_private(model: Any, statement: Any) -> bool:
    """Whether weights have to stay with the owner: what `save` does says so."""
    trained = getattr(statement, "encoder_trained_on_private_text", None)
    return model.mode != "guaranteed" if trained is None else trained


@contextlib.contextmanager
def _staged(path: Path, version: int, *, private: bool) -> Iterator[Path]:
    new = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=path, prefix=f".{version}."))
    try:
        (folder / EXTRA).mkdir()
        yield folder
        for inner in folder.rglob("*"):
            if inner.is_dir():
                inner.chmod(0o700 if private else 0o755)
            else:
                inner.chmod(PRIVATE if private else PUBLIC)
        folder.chmod(0o700 if private else 0o755)
        # Onto a version that appeared meanwhile it fails: that one is not empty.
        os.rename(folder, path / str(version))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if new:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def _save(served: Any, folder: Path) -> None:
    import tensorflow as tf

    served.saved = {
        name: function.get_concrete_function()
        for name, function in served.signatures().items()
    }
    # Not the model, which would bring all that Keras keeps with it.
    holder = tf.Module()
    holder.weights = served.weights
    try:
        tf.saved_model.save(holder, str(folder), signatures=served.saved)
    except AssertionError:
        raise RuntimeError(
            "Expected a graph that reads weights alone, received one that reads "
            "another variable: the state of a seed generator maybe, which replays "
            "noise after every reload. Build the model without it."
        ) from None


def _warm_up(served: Any) -> dict[str, list[dict[str, Any]]]:
    """Signature -> the inputs of its requests, one a batch size."""
    requests: dict[str, list] = {}
    for size in _BATCHES:
        texts = [_TEXTS[number % len(_TEXTS)] for number in range(size)]
        for name, inputs in served.examples(texts).items():
            requests.setdefault(name, []).append(inputs)
    return requests
