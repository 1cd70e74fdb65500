"""Asks TensorFlow Serving for representations and labels."""

from __future__ import annotations

import ipaddress
import os
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from tfpriv._errors import InputError
from tfpriv._validation import boolean, integer, positive
from tfpriv.serving.grpc_transport import GrpcTransport
from tfpriv.serving.release_memory import ReleaseMemory
from tfpriv.serving.rest_transport import RestTransport
from tfpriv.serving.transport import Tls, Transport, Unreachable

_SCHEMES = ("http://", "https://")
# Bytes of text in a request; a longer text goes alone.
_MOST_BYTES = 2**21
_FIRST_PAUSE = 0.1


class ServingClient:
    """A client of one exported model on one server, by gRPC or REST.

    Each text that a server reads is released once, at the cost that the model's
    `privacy.json` states. A request that failed is tried again only if nobody was
    there or the server was busy; then, too, the server may have drawn noise for it,
    but no answer was seen.

    With `remember`, a text that is asked for again is answered with what was released
    of it before, at no cost. It is off by default since it shows what a certificate
    does not cover: whoever sees two equal vectors knows that the texts were equal. Use
    it for one person's own texts, asked for repeatedly, and not where two rows may be
    two people's.

    Args:
        address: "host:port" is gRPC; "http://host:port", "https://host:port" REST.
        model: name of the model at the server.
        version: of the model; None is the one that the server prefers.
        deadline: seconds that a request may take, all tries together.
        retries: tries after the first one.
        tls: encrypts gRPC, as https does REST. Naming a certificate implies it.
        root_certificates: PEM file of who vouches for the server.
        client_certificate, client_key: PEM files, where the server asks for them.
        batch_size: texts a request.
        remember: how many texts are remembered; 0 none, True a hundred thousand.

    Raises:
        InputError: an argument that cannot be used.

    Examples:
        >>> client = ServingClient("localhost:8500", "spam")
        >>> client.encode(["Great song!"]).shape  # doctest: +SKIP
        (1, 2)
    """

    def __init__(
        self,
        address: str,
        model: str,
        *,
        version: int | None = None,
        deadline: float = 10.0,
        retries: int = 2,
        tls: bool = False,
        root_certificates: str | os.PathLike | None = None,
        client_certificate: str | os.PathLike | None = None,
        client_key: str | os.PathLike | None = None,
        batch_size: int = 64,
        remember: bool | int = False,
    ) -> None:
        positive(deadline=deadline)
        boolean(tls=tls)
        integer(0, retries=retries)
        integer(batch_size=batch_size)
        if version is not None:
            integer(version=version)
        if not isinstance(model, str) or not model:
            raise InputError(f"Expected the name of a model, received {model!r}.")
        if isinstance(remember, bool):
            remember = 100_000 if remember else 0
        integer(0, remember=remember)
        self.address = _checked_address(address)
        self.model = model
        self.deadline = float(deadline)
        self.retries = retries
        self.batch_size = batch_size
        files = (root_certificates, client_certificate, client_key)
        given = Tls(*(None if path is None else Path(path) for path in files))
        rest = self.address.startswith(_SCHEMES)
        self.encrypted = self.address.startswith("https://")
        if not rest:
            self.encrypted = tls or any(files)
        elif (tls or any(files)) and not self.encrypted:
            raise InputError(
                f"Expected https:// for TLS, received {self.address!r}. Write https."
            )
        kind = RestTransport if rest else GrpcTransport
        self._transport: Transport = kind(
            self.address, model, version, given if self.encrypted else None
        )
        self._memory = ReleaseMemory(remember) if remember else None
        self._lock = threading.Lock()
        self._known: dict[str, dict[str, Any]] | None = None

    @property
    def readable_on_the_way(self) -> bool:
        """Whether texts go, not encrypted, to a machine that is not this one."""
        return not self.encrypted and not _is_this_machine(self.address)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Releases a representation of each text, in order.

        Args:
            texts: n str, at least one.

        Returns:
            float32 (n, d).

        Raises:
            InputError: a row that is no text; no such model or signature.
            ConnectionError, TimeoutError: nobody answered, or not in time.
            RuntimeError: the server refused, or answered something else.
        """
        texts = _checked_texts(texts)
        dimension = self._expect("encode", "text", "representation")[-1]
        if self._memory is None:
            return self._released(texts, dimension)
        with self._lock:
            # A text that stands in two rows is released once as well.
            found = {text: self._memory.recall(text) for text in texts}
            missing = [text for text, vector in found.items() if vector is None]
            for part in self._batches(missing) if missing else ():
                for text, vector in zip(
                    part, self._released(part, dimension), strict=True
                ):
                    found[text] = vector
                    self._memory.keep(text, vector)
            return np.stack([found[text] for text in texts])

    def predict(self, texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
        """Predicts the label of each text from a release of it, which is not seen.

        Args:
            texts: n str, at least one.

        Returns:
            n label names and float32 probabilities (n, C). Errors as of `encode`.
        """
        texts = _checked_texts(texts)
        self._expect("serving_default", "text", "probabilities")
        parts = [
            self._ask("serving_default", {"text": _strings(part)})
            for part in self._batches(texts)
        ]
        return _told(parts, len(texts))

    def classify(self, representations: Any) -> tuple[list[str], np.ndarray]:
        """Predicts labels from representations that were released before.

        Args:
            representations: float (n, d), at least one.

        Returns:
            n label names and float32 probabilities (n, C). Errors as of `encode`.
        """
        values = np.asarray(representations)
        dimension = self._expect("classify", "representation", "probabilities", 0)[-1]
        right = values.ndim == 2 and len(values) and values.shape[1] == dimension
        if not _are_numbers(values) or not right:
            raise InputError(
                f"Expected representations, finite numbers of shape (n, {dimension}), "
                f"received {values.dtype} of shape {values.shape}."
            )
        values = values.astype(np.float32)
        parts = [
            self._ask("classify", {"representation": values[i : i + self.batch_size]})
            for i in range(0, len(values), self.batch_size)
        ]
        return _told(parts, len(values))

    def signatures(self) -> dict[str, dict[str, Any]]:
        """Returns name -> {"inputs": {name: shape}, "outputs": {name: shape}}.

        Asked once; a way to find out whether the server is there. Errors as of
        `encode`.
        """
        if self._known is None:
            self._known = self._try(self._transport.signatures)
        return self._known

    def close(self) -> None:
        """Lets go of the connection."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- Parts -----------------------------------------------------------------

    def _released(self, texts: list[str], dimension: int) -> np.ndarray:
        vectors = []
        for part in self._batches(texts):
            outputs = self._ask("encode", {"text": _strings(part)})
            # By REST a single output has no name.
            vector = outputs.get("representation", outputs.get(""))
            shape = (len(part), dimension)
            if vector is None or vector.shape != shape or not _are_numbers(vector):
                raise RuntimeError(
                    f"Expected finite representations of shape {shape} from "
                    f"{self.address}, received others."
                )
            vectors.append(vector.astype(np.float32))
        return np.concatenate(vectors)

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        part: list[str] = []
        size = 0
        for text in texts:
            length = len(text.encode())
            if part and (len(part) == self.batch_size or size + length > _MOST_BYTES):
                yield part
                part, size = [], 0
            part.append(text)
            size += length
        yield part

    def _expect(
        self, signature: str, source: str, result: str, side: int = 1
    ) -> tuple[int, ...]:
        """Returns the shape of an output (or input) that the server has to have."""
        known = self.signatures()
        found = known.get(signature, {"inputs": {}, "outputs": {}})
        if not found["inputs"].get(source) or not found["outputs"].get(result):
            raise InputError(
                f"Expected model {self.model!r} at {self.address} to have signature "
                f"{signature!r} from {source!r} to {result!r}, received one with "
                f"{', '.join(sorted(known)) or 'none'}. Is it another model, or the "
                "other part of a split one?"
            )
        return found["outputs"][result] if side else found["inputs"][source]

    def _ask(
        self, signature: str, inputs: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        return self._try(
            lambda timeout: self._transport.predict(signature, inputs, timeout)
        )

    def _try(self, call: Callable[[float], Any]) -> Any:
        """Calls with what is left of the deadline, again while nobody is there."""
        end = time.monotonic() + self.deadline
        pause = _FIRST_PAUSE
        for attempt in range(self.retries + 1):
            left = end - time.monotonic()
            try:
                return call(max(left, 1e-3))
            except Unreachable:
                left = end - time.monotonic()
                if attempt == self.retries or left <= pause:
                    raise
            time.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")


def _checked_address(address: str) -> str:
    if not isinstance(address, str):
        raise InputError(
            f"Expected host:port or http://host:port, received {address!r}."
        )
    bare = _bare(address)
    port = bare.partition("/")[0].rpartition(":")[2]
    known = address.startswith(_SCHEMES) or "://" not in address
    named = bare.partition("/")[0].rpartition(":")[0]
    if not known or not named or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise InputError(
            "Expected host:port (gRPC) or http://host:port, https://host:port (REST), "
            f"received {address!r}."
        )
    return address


def _bare(address: str) -> str:
    return address.partition("://")[2] if "://" in address else address


def _is_this_machine(address: str) -> bool:
    try:
        host = urllib.parse.urlsplit(f"//{_bare(address)}").hostname
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_texts(texts: Any) -> list[str]:
    if isinstance(texts, str | bytes | Mapping) or not hasattr(texts, "__len__"):
        raise InputError(
            f"Expected a list of texts, received {type(texts).__name__}. Wrap one "
            "text: [text]."
        )
    rows = []
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(
                f"Expected a text in every row, received {type(text).__name__} in row "
                f"{number}."
            )
        # A lone surrogate has no UTF-8.
        rows.append(text.encode("utf-8", "replace").decode("utf-8"))
    if not rows:
        raise InputError("Expected at least one text, received none.")
    return rows


def _strings(texts: Sequence[str]) -> np.ndarray:
    return np.array([text.encode() for text in texts], object)


def _told(
    parts: list[dict[str, np.ndarray]], count: int
) -> tuple[list[str], np.ndarray]:
    """Returns labels and probabilities of several answers."""
    try:
        labels = [name.decode() for part in parts for name in part["label"]]
        probabilities = np.concatenate([part["probabilities"] for part in parts])
        right = probabilities.ndim == 2 and _are_numbers(probabilities)
    except (AttributeError, KeyError, TypeError, ValueError):
        labels, right = [], False
    if not right or len(labels) != count or len(probabilities) != count:
        raise RuntimeError(
            f"Expected a label and finite probabilities of each of {count} rows, "
            "received others."
        )
    return labels, probabilities.astype(np.float32)


def _are_numbers(values: np.ndarray) -> bool:
    return values.dtype.kind in "fiu" and bool(np.isfinite(values).all())
