"""A SavedModel that `tfpriv export` wrote: what a release by it costs."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from tfpriv._errors import InputError
from tfpriv.serving.model_card import EXTRA, PRIVACY, SERVING, TRAINED_ON

if TYPE_CHECKING:
    import numpy as np

    from tfpriv.accounting import DataBudget, RepresentationStatement


class Files(Protocol):
    """How the files of a model are read; a file system may fail with OSError."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""

    def match(self, pattern: str) -> list[str]:
        """The files that a pattern with one "*" names."""

    def read(self, path: str) -> bytes:
        """The bytes of a file."""


class LocalFiles:
    """The files of this machine."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return os.path.isfile(path)

    def match(self, pattern: str) -> list[str]:
        """The files that a pattern with one "*" names."""
        folder, _, tail = pattern.partition("/*/")
        return [str(path) for path in Path(folder).glob(f"*/{tail}")]

    def read(self, path: str) -> bytes:
        """The bytes of a file."""
        return Path(path).read_bytes()


@dataclasses.dataclass(frozen=True)
class ExportedModel:
    """One version of an exported representation model.

    The folder may lie wherever `Files` and TensorFlow reach. A local one is checked:
    noise that can be replayed and weights that cannot be read are refused, before a
    release is paid for. A remote one was checked when it was exported.

    Attributes:
        folder: str. Of the version.
        name: str. Of the model.
        dimension: int. Numbers in a representation.
        privacy: mapping. What was exported as `privacy.json`.
        trained_on: mapping. Which data set with a budget the encoder learnt from, its
            `data_set` and the id of its `ledger`; None if there was none.

    Examples:
        >>> model = ExportedModel.find("saved_models/spam")
        >>> model.name, model.dimension, model.privacy_statement().epsilon
        ('spam', 2, 4.0)
    """

    folder: str
    name: str
    dimension: int
    privacy: Mapping[str, Any] = dataclasses.field(repr=False)
    trained_on: Mapping[str, str] | None = None

    @classmethod
    def find(
        cls,
        model_dir: str | os.PathLike,
        files: Files | None = None,
        *,
        checked: bool = True,
    ) -> Self:
        """Finds the highest version of a model, or reads the version given.

        Args:
            model_dir: what `tfpriv export` wrote, `NAME` or `NAME/<version>`.
            files: how to read there; None is this machine's disk.
            checked: whether a local model's graph and weights are checked.

        Raises:
            InputError: nothing exported there, a damaged file, a model that encodes
                no text, or one whose noise can be replayed.
        """
        files = files or LocalFiles()
        folder = _version(os.fspath(model_dir), files)
        privacy = _json(folder, PRIVACY, files)
        described = _json(folder, SERVING, files)
        try:
            kind = privacy["kind"]
            encode = described["signatures"].get("encode")
            dimension = encode["outputs"]["representation"][1][-1] if encode else None
            name = described["name"]
            trained_on = described.get(TRAINED_ON)
            if trained_on is not None:
                trained_on = {key: trained_on[key] for key in ("data_set", "ledger")}
        except (AttributeError, IndexError, KeyError, TypeError):
            raise _damaged(f"{folder}/{EXTRA}") from None
        if kind != "representation" or dimension is None:
            raise InputError(
                f"Expected a model that encodes text, received {model_dir}, a "
                "generator or the server's part of a split model. Export a "
                "representation model, whole or its client's part."
            )
        model = cls(folder, name, int(dimension), privacy, trained_on)
        model.privacy_statement()
        if checked and os.path.isdir(folder):
            _check_graph(folder)
            _check_weights(folder)
        return model

    @property
    def version(self) -> int | None:
        """Number of the version, 1 or more; None for a folder that has none."""
        name = self.folder.rstrip("/").rpartition("/")[2]
        return (int(name) or None) if name.isdecimal() else None

    def privacy_statement(self, *, releases: int = 1) -> RepresentationStatement:
        """What releases of a text guarantee to who wrote it."""
        from tfpriv.accounting import RepresentationStatement

        return RepresentationStatement.from_json({**self.privacy, "releases": releases})

    def training_budget(self, *, allowed: bool) -> DataBudget | None:
        """Finds the budget of the data set that the encoder learnt from unprotected.

        Args:
            allowed: whether what the encoder releases may leave nevertheless.

        Returns:
            The budget that has to be told; None if there is none, or if it is on
            another machine: that one was told when the model was exported.

        Raises:
            InputError: there is such a data set, and nothing may leave.
        """
        from tfpriv.accounting import DataBudget
        from tfpriv.accounting._state import budget_ids

        if self.trained_on is None:
            return None
        id = self.trained_on["data_set"]
        if not allowed:
            raise InputError(
                f"Expected an encoder that data set {id} paid for, received "
                f"{self.folder}, which learnt from it without a guarantee: what it "
                "releases tells about those records too. --unprotected-training "
                "(unprotected_training=True) lets it leave, and that budget says so "
                "from then on."
            )
        if id not in budget_ids():
            return None
        budget = DataBudget.load(id)
        # Another data set of that name is none of it.
        return budget if budget.ledger.id == self.trained_on["ledger"] else None

    def load(self) -> Callable[[Sequence[str]], np.ndarray]:
        """Loads the model.

        Returns:
            A function from n texts to releases of them, float32 (n, dimension): fresh
            noise with every call. Safe to call from several threads.
        """
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  its ops are in the graph

        loaded = tf.saved_model.load(self.folder)
        signature = loaded.signatures["encode"]

        def encode(texts: Sequence[str]) -> np.ndarray:
            return signature(text=tf.constant(list(texts), tf.string))[
                "representation"
            ].numpy()

        # A signature alone does not keep its variables alive.
        encode.model = loaded
        return encode


def is_exported(model_dir: str | os.PathLike) -> bool:
    """Whether a folder of this machine is an exported model, or a version of one."""
    return bool(_versions(os.fspath(model_dir), LocalFiles()))


def _versions(model_dir: str, files: Files) -> dict[int, str]:
    """Number -> folder of each version; of a version itself, 0 -> its folder."""
    model_dir = model_dir.rstrip("/") or "/"
    tail = f"{EXTRA}/{SERVING}"
    if files.exists(f"{model_dir}/{tail}"):
        return {0: model_dir}
    folders = [
        path.removesuffix(f"/{tail}") for path in files.match(f"{model_dir}/*/{tail}")
    ]
    return {
        int(number): folder
        for folder in folders
        if (number := folder.rpartition("/")[2]).isdecimal()
    }


def _version(model_dir: str, files: Files) -> str:
    try:
        versions = _versions(model_dir, files)
    except (OSError, ValueError) as error:
        raise InputError(
            f"Expected an exported model, received {model_dir}: "
            f"{type(error).__name__} when it was looked for."
        ) from None
    if not versions:
        raise InputError(
            f"Expected an exported model with a numbered version, received "
            f"{model_dir}. Name the folder that `tfpriv export` wrote."
        )
    return versions[max(versions)]


def _json(folder: str, name: str, files: Files) -> dict[str, Any]:
    path = f"{folder}/{EXTRA}/{name}"
    try:
        value = json.loads(files.read(path).decode())
    except (OSError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise _damaged(path)
    return value


def _damaged(path: str) -> InputError:
    return InputError(
        f"Expected {path} as tfpriv wrote it, received a file that is missing or "
        "damaged. Export the model again."
    )


def _check_graph(folder: str) -> None:
    from tfpriv.serving.graph_check import check_graph

    try:
        check_graph(folder)
    except RuntimeError as error:
        raise InputError(f"{error} (In {folder}.)") from None
    except (OSError, ValueError):
        raise _damaged(f"{folder}/saved_model.pb") from None
    except Exception as error:  # protobuf's own error is no ValueError
        if type(error).__name__ != "DecodeError":
            raise
        raise _damaged(f"{folder}/saved_model.pb") from None


def _check_weights(folder: str) -> None:
    import tensorflow as tf

    path = f"{folder}/variables/variables"
    try:
        weights = tf.train.load_checkpoint(path)
        for name in weights.get_variable_to_shape_map():
            weights.get_tensor(name)
    except (tf.errors.OpError, LookupError, OSError, RuntimeError, ValueError):
        raise _damaged(f"{path}.*") from None
