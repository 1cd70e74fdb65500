"""Releases by an exported model, here or on a server, at a price known here."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfpriv._errors import InputError
from tfpriv.cli._common import quiet_import, warn

if TYPE_CHECKING:
    import numpy as np

    from tfpriv.accounting import RepresentationStatement
    from tfpriv.serving import ExportedModel, ServingClient


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
        exported: the exported model there; None for a run.
        server: Server.

    Raises:
        InputError: no statement there, no name for the model, or a server that is
            not there or has another model.
    """

    def __init__(
        self, directory: Path, exported: ExportedModel | None, server: Server
    ) -> None:
        self._statement = exported.privacy if exported else _of_run(directory)
        name = server.model or (exported.name if exported else None)
        if name is None:
            raise InputError(
                f"Expected --model NAME, the name of the model at {server.address}: "
                f"the run {directory} does not tell it."
            )
        with quiet_import():
            from tfpriv.serving import ServingClient

            self._client: ServingClient = ServingClient(
                server.address,
                name,
                # What is charged is what this version costs; another may cost more.
                version=exported.version if exported else None,
                deadline=server.deadline,
                root_certificates=server.root_certificates,
            )
        self._check(name, exported.dimension if exported else None)
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

    def _check(self, name: str, expected: int | None) -> None:
        try:
            found = self._client.signatures().get("encode")
        except (OSError, RuntimeError) as error:
            raise InputError(str(error)) from None
        shape = found["outputs"].get("representation") if found else None
        if not shape or expected not in (None, shape[-1]):
            raise InputError(
                f"Expected model {name!r} at {self._client.address} to be the one that "
                "the statement is of, with its signature 'encode', received another."
            )


class LoadedModel:
    """What `encode` asks of a model, answered by an exported one on this machine.

    Args:
        exported: ExportedModel.
    """

    def __init__(self, exported: ExportedModel) -> None:
        self._exported = exported
        with quiet_import():
            self._encode = exported.load()

    def privacy_statement(self, *, releases: int = 1) -> RepresentationStatement:
        """What each release costs, as the exported model says."""
        return self._exported.privacy_statement(releases=releases)

    def encode(self, texts: list[str], *, releases: int = 1) -> np.ndarray:
        """Releases, float32 (n, d), or (n, r, d) for more than one."""
        import numpy as np

        released = [self._encode(texts) for _ in range(releases)]
        return released[0] if releases == 1 else np.stack(released, axis=1)


def exported_at(directory: Path, *, checked: bool) -> ExportedModel | None:
    """The exported model at a folder; None for the run of `tfpriv rmat train`.

    Args:
        directory: of the model, of one of its versions, or of the run.
        checked: whether its graph is to be run here, and has to be a good one.

    Raises:
        InputError: it is neither, or a model that cannot encode.
    """
    from tfpriv.serving.exported_model import ExportedModel, is_exported

    if is_exported(directory):
        with quiet_import():
            return ExportedModel.find(directory, checked=checked)
    if not (directory / "internal").is_dir():
        raise InputError(
            f"Expected an exported model with a numbered version, or a run of `tfpriv "
            f"rmat train`, received {directory}. Name the folder that `tfpriv export` "
            "or `tfpriv rmat train` wrote."
        )
    return None


def _of_run(directory: Path) -> dict[str, Any]:
    path = directory / "release" / "privacy.json"
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise InputError(
            f"Expected {path} as tfpriv wrote it, received a file that is missing or "
            "damaged. Train again."
        )
    return value
