"""TensorFlow Serving's REST API, by the standard library."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tfpriv._errors import InputError
from tfpriv.serving.transport import (
    Tls,
    Unreachable,
    not_found,
    refused,
    too_slow,
)

_BUSY = (429, 502, 503, 504)
# What reading an answer raises that another program, or another version, gave.
_OTHERWISE = (AttributeError, KeyError, TypeError, ValueError)


class RestTransport:
    """A `Transport` that opens a connection for every request.

    Args:
        address: http://host:port or https://host:port.
        model: name of the model.
        version: of the model; None is the one that the server prefers.
        tls: certificates for https; None takes the system's.

    Raises:
        InputError: an address without a host, or certificates that cannot be read.
    """

    def __init__(
        self, address: str, model: str, version: int | None, tls: Tls | None
    ) -> None:
        self.address, self.model, self.version = address, model, version
        parts = urllib.parse.urlsplit(address)
        if not parts.hostname:
            raise InputError(
                f"Expected http://host:port or https://host:port, received {address!r}."
            )
        self._host, self._port = parts.hostname, parts.port
        self._context = _context(tls) if parts.scheme == "https" else None
        self._path = f"{parts.path.rstrip('/')}/v1/models/{urllib.parse.quote(model)}"
        if version is not None:
            self._path += f"/versions/{version}"

    def predict(
        self, signature: str, inputs: Mapping[str, np.ndarray], timeout: float
    ) -> dict[str, np.ndarray]:
        """See `Transport.predict`."""
        body = {
            "signature_name": signature,
            "inputs": {name: _plain(values) for name, values in inputs.items()},
        }
        path = f"{self._path}:predict"
        answer = self._call("POST", path, body, signature, timeout)
        return self._read(_outputs, answer, signature)

    def signatures(self, timeout: float) -> dict[str, dict[str, Any]]:
        """See `Transport.signatures`."""
        path = f"{self._path}/metadata"
        answer = self._call("GET", path, None, "metadata", timeout)
        return self._read(_defined, answer, "metadata")

    def close(self) -> None:
        """Does nothing: no connection is kept."""

    def _call(
        self, method: str, path: str, body: Any, signature: str, timeout: float
    ) -> Any:
        problem: Exception
        try:
            status, answer = self._exchange(method, path, body, timeout)
            if status == 200:
                return json.loads(answer)
            if status == 404:
                problem = not_found(self.address, self.model, self.version)
            elif status in _BUSY:
                problem = self._unreachable(f"HTTP {status}")
            else:
                problem = refused(self.address, signature, f"HTTP {status}")
        except TimeoutError:
            problem = too_slow(self.address, timeout)
        except (OSError, http.client.HTTPException) as error:
            problem = self._unreachable(type(error).__name__)
        except ValueError:
            problem = refused(self.address, signature, "an answer that is no JSON")
        # Outside of the handlers: what is raised must hold neither text nor answer.
        raise problem

    def _read(self, read: Callable[[Any], Any], answer: Any, signature: str) -> Any:
        """What an answer says, or the error of one that says it otherwise."""
        with contextlib.suppress(*_OTHERWISE):
            return read(answer)
        raise refused(self.address, signature, "an answer of another form")

    def _exchange(
        self, method: str, path: str, body: Any, timeout: float
    ) -> tuple[int, bytes]:
        if self._context is None:
            connection = http.client.HTTPConnection(
                self._host, self._port, timeout=timeout
            )
        else:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout, context=self._context
            )
        try:
            data = None if body is None else json.dumps(body).encode()
            headers = {"Content-Type": "application/json"}
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _unreachable(self, what: str) -> Unreachable:
        return Unreachable(
            f"Expected TensorFlow Serving's REST at {self.address}, received {what}. "
            "Is it running there, on this port, with this TLS?"
        )


def _context(tls: Tls | None) -> ssl.SSLContext:
    tls = tls or Tls()
    try:
        context = ssl.create_default_context(cafile=tls.root_certificates)
        if tls.client_certificate is not None:
            context.load_cert_chain(tls.client_certificate, tls.client_key)
    except ssl.SSLError:
        raise InputError(
            "Expected certificates and keys in PEM, received files of another kind."
        ) from None
    return context


def _outputs(answer: Any) -> dict[str, np.ndarray]:
    outputs = answer["outputs"]
    # One output comes without its name.
    named = outputs if isinstance(outputs, dict) else {"": outputs}
    return {name: _array(values) for name, values in named.items()}


def _defined(answer: Any) -> dict[str, dict[str, Any]]:
    defined = answer["metadata"]["signature_def"]["signature_def"]
    return {
        name: {side: _shapes(d[side]) for side in ("inputs", "outputs")}
        for name, d in defined.items()
    }


def _plain(values: np.ndarray) -> list:
    if values.dtype == object:
        return [value.decode() for value in values]
    return values.tolist()


def _array(values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind == "U":
        return np.array([value.encode() for value in values], object)
    return array.astype(np.float32)


def _shapes(tensors: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(int(dim["size"]) for dim in info["tensor_shape"].get("dim", ()))
        for name, info in tensors.items()
    }
