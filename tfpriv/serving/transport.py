"""How a request gets to a server and back: what gRPC and REST have in common."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tfpriv._errors import InputError

# Nothing that a server says is shown: an error of TensorFlow may quote its input.
WITHHELD = "What the server said is not shown: it may quote a text."


class Unreachable(ConnectionError):
    """Nobody answered, or a server that is busy or starting: worth another try."""


@dataclasses.dataclass(frozen=True)
class Tls:
    """How a connection is encrypted.

    Attributes:
        root_certificates: PEM file of who vouches for the server; None is those of
            the system.
        client_certificate, client_key: PEM files, where the server asks for them.

    Raises:
        InputError: a file that is not there, or one of the pair without the other.
    """

    root_certificates: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            path = getattr(self, field.name)
            if path is not None and not os.path.isfile(path):
                raise InputError(
                    f"Expected a PEM file for {field.name}, received {path}: no such "
                    "file."
                )
        if (self.client_certificate is None) != (self.client_key is None):
            raise InputError(
                "Expected client_certificate and client_key together, received one of "
                "them."
            )


class Transport(Protocol):
    """Asks one model of one server; safe to use from several threads."""

    def predict(
        self, signature: str, inputs: Mapping[str, np.ndarray], timeout: float
    ) -> dict[str, np.ndarray]:
        """Returns the outputs of a signature.

        Raises:
            Unreachable: nobody there, or not now.
            TimeoutError: no answer within `timeout` seconds.
            InputError: no such model, version or signature.
            RuntimeError: anything else that a server answers.
        """

    def signatures(self, timeout: float) -> dict[str, dict[str, Any]]:
        """Returns name -> {"inputs": {name: shape}, "outputs": {name: shape}}.

        A shape is a tuple, -1 where it is free. Errors are those of `predict`.
        """

    def close(self) -> None:
        """Lets go of the connection."""


def not_found(address: str, model: str, version: int | None) -> InputError:
    """The error of a server that has no such model or version."""
    which = f"model {model!r}" + (f", version {version}" if version else "")
    return InputError(
        f"Expected a server at {address} that has {which}, received one without. "
        "Check the name and the version that it serves."
    )


def refused(address: str, signature: str, code: str) -> RuntimeError:
    """The error of a server that will not answer a request."""
    return RuntimeError(
        f"Expected an answer of signature {signature!r} from {address}, received "
        f"{code}. {WITHHELD}"
    )


def too_slow(address: str, timeout: float) -> TimeoutError:
    """The error of an answer that did not come."""
    return TimeoutError(
        f"Expected an answer from {address} within the deadline, received none after "
        f"{timeout:.3g} more seconds. Give a longer deadline or smaller batches; the "
        "server may have made the release all the same."
    )
