"""A SavedModel that `tfpriv export` wrote, and what a release by it costs."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from tfpriv._errors import InputError
from tfpriv.beam._require import require_beam

if TYPE_CHECKING:
    import numpy as np

    from tfpriv.accounting import RepresentationStatement

# TensorFlow Serving's own name for what lies beside a model.
_EXTRA = "assets.extra"


@dataclasses.dataclass(frozen=True)
class ExportedModel:
    """One version of an exported representation model.

    The folder may lie wherever Beam's file systems and TensorFlow reach. The graph of
    a local one is checked: noise that can be replayed is refused. A remote one was
    checked when it was exported.

    Attributes:
        folder: str. Of the version.
        name: str. Of the model.
        dimension: int. Numbers in a representation.
        privacy: mapping. What was exported as `privacy.json`.

    Examples:
        >>> model = ExportedModel.find("saved_models/spam")
        >>> model.name, model.dimension, model.privacy_statement().epsilon
        ('spam', 2, 4.0)
    """

    folder: str
    name: str
    dimension: int
    privacy: dict[str, Any] = dataclasses.field(repr=False)

    @classmethod
    def find(cls, model_dir: str | os.PathLike) -> Self:
        """Finds the highest version of a model, or reads the version given.

        Args:
            model_dir: what `tfpriv export` wrote, `NAME` or `NAME/<version>`.

        Raises:
            InputError: nothing exported there, a damaged file, a model that encodes
                no text, or one whose noise can be replayed.
        """
        folder = _version(os.fspath(model_dir))
        privacy = _json(folder, "privacy.json")
        described = _json(folder, "serving.json")
        try:
            kind = privacy["kind"]
            encode = described["signatures"].get("encode")
            dimension = encode["outputs"]["representation"][1][-1] if encode else None
            name = described["name"]
        except (AttributeError, IndexError, KeyError, TypeError):
            raise _damaged(f"{folder}/{_EXTRA}") from None
        if kind != "representation" or dimension is None:
            raise InputError(
                f"Expected a model that encodes text, received {model_dir}, a "
                "generator or the server's part of a split model. Export a "
                "representation model, whole or its client's part."
            )
        model = cls(folder, name, int(dimension), privacy)
        model.privacy_statement()
        if os.path.isdir(folder):
            _check_graph(folder)
        return model

    def privacy_statement(self) -> RepresentationStatement:
        """What one release of a text guarantees to who wrote it."""
        from tfpriv.accounting import RepresentationStatement

        return RepresentationStatement.from_json({**self.privacy, "releases": 1})

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


def _version(model_dir: str) -> str:
    require_beam()
    from apache_beam.io.filesystems import FileSystems

    model_dir = model_dir.rstrip("/") or "/"
    tail = f"{_EXTRA}/serving.json"
    try:
        if FileSystems.exists(f"{model_dir}/{tail}"):
            return model_dir
        found = FileSystems.match([f"{model_dir}/*/{tail}"])[0].metadata_list
    except (OSError, ValueError) as error:
        raise InputError(
            f"Expected an exported model, received {model_dir}: "
            f"{type(error).__name__} when it was looked for."
        ) from None
    folders = [metadata.path.removesuffix(f"/{tail}") for metadata in found]
    versions = {
        int(number): folder
        for folder in folders
        if (number := folder.rpartition("/")[2]).isdecimal()
    }
    if not versions:
        raise InputError(
            f"Expected an exported model with a numbered version, received "
            f"{model_dir}. Name the folder that `tfpriv export` wrote."
        )
    return versions[max(versions)]


def _json(folder: str, name: str) -> dict[str, Any]:
    from apache_beam.io.filesystems import FileSystems

    path = f"{folder}/{_EXTRA}/{name}"
    try:
        with FileSystems.open(path) as file:
            value = json.loads(file.read().decode())
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
