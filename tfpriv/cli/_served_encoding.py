"""`tfpriv encode --server`: releases that a server makes, at a price known here."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv.cli._common import quiet_import, warn
from tfpriv.cli._representation_run import read_config

if TYPE_CHECKING:
    import numpy as np

    from tfpriv.accounting import RepresentationStatement
    from tfpriv.serving import ServingClient


# TensorFlow Serving's own name for what lies beside a model.
_EXTRA = "assets.extra"


@dataclasses.dataclass(frozen=True)
class Server:
    """Where a model is served, as options say it.

    Attributes:
        address: host:port, http://host:port or https://host:port.
        model: its name there; None is that of the exported folder.
        root_certificates: PEM file of who vouches for the server.
        deadline: seconds a request may take.
    """

    address: str
    model: str | None
    root_certificates: Path | None
    deadline: float


class ServedModel:
    """What `encode` asks of a model, answered by a server.

    Args:
        directory: a run of `tfpriv rmat train`, or an exported model (its folder, or
            that of a version): what one release costs is read there.
        server: Server.

    Raises:
        InputError: no statement there, no name for the model, or a server that is
            not there or has another model.
    """

    def __init__(self, directory: Path, server: Server) -> None:
        statement, name, shape = _described(directory)
        name = server.model or name
        if name is None:
            raise InputError(
                f"Expected --model NAME, the name of the model at {server.address}: "
                f"the run {directory} does not tell it."
            )
        self._statement = statement
        with quiet_import():
            from tfpriv.serving import ServingClient

            self._client: ServingClient = ServingClient(
                server.address,
                name,
                deadline=server.deadline,
                root_certificates=server.root_certificates,
            )
        self._check(name, shape)
        if self._client.readable_on_the_way:
            warn(
                f"the texts go to {server.address} without encryption: whoever is on "
                "the way can read them. Take https:// or --tls-ca."
            )

    def privacy_statement(self, *, releases: int = 1) -> RepresentationStatement:
        """What each release by the server costs, as the exported model says."""
        from tfpriv.accounting import RepresentationStatement

        return RepresentationStatement.from_json(
            {**self._statement, "releases": releases}
        )

    def encode(self, texts: list[str], *, releases: int = 1) -> np.ndarray:
        """Releases by the server, float32 (n, d), or (n, r, d) for more than one."""
        import numpy as np

        released = [self._client.encode(texts) for _ in range(releases)]
        return released[0] if releases == 1 else np.stack(released, axis=1)

    def _check(self, name: str, shape: list | None) -> None:
        try:
            found = self._client.signatures().get("encode")
        except (OSError, RuntimeError) as error:
            raise InputError(str(error)) from None
        dimension = found["outputs"].get("representation", (0,))[-1] if found else None
        if dimension is None or shape not in (None, [None, dimension]):
            raise InputError(
                f"Expected model {name!r} at {self._client.address} to be the one that "
                "the statement is of, with its signature 'encode', received another."
            )


def run_behind(directory: Path) -> dict[str, Any] | None:
    """The config of a run; None for an exported model.

    Raises:
        InputError: it is neither.
    """
    if _exported(directory) is not None:
        return None
    if not (directory / "internal").is_dir():
        raise InputError(
            f"Expected an exported model with a numbered version, or a run of `tfpriv "
            f"rmat train`, received {directory}. Name the folder that `tfpriv export` "
            "wrote."
        )
    return read_config(directory)


def _exported(directory: Path) -> Path | None:
    """The `assets.extra` of an exported model, of its highest version; else None."""
    if (directory / _EXTRA).is_dir():
        return directory / _EXTRA
    versions = []
    if directory.is_dir():
        versions = [int(p.name) for p in directory.iterdir() if p.name.isdecimal()]
    for version in sorted(versions, reverse=True):
        if (directory / str(version) / _EXTRA).is_dir():
            return directory / str(version) / _EXTRA
    return None


def _described(directory: Path) -> tuple[dict[str, Any], str | None, list | None]:
    """Returns statement, name of the model, and shape of a representation."""
    extra = _exported(directory)
    if extra is None:
        return _json(directory / "release" / "privacy.json"), None, None
    statement = _json(extra / "privacy.json")
    described = _json(extra / "serving.json")
    if statement.get("kind") != "representation":
        raise InputError(
            f"Expected an exported representation model, received {directory}, which "
            "is a generator."
        )
    encode = described["signatures"].get("encode")
    if encode is None:
        raise InputError(
            f"Expected a model that encodes text, received {directory}, the server's "
            "part of a split one."
        )
    return statement, described["name"], encode["outputs"]["representation"][1]


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise InputError(
            f"Expected {path} as tfpriv wrote it, received a file that is missing or "
            "damaged. Export the model again."
        )
    return value
